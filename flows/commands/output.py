"""Writing for a person or for a program: with ``--json`` one document on stdout and no more."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python


def say(text: str = "") -> None:
    """A line of the answer."""
    sys.stdout.write(_printable(text) + "\n")
    sys.stdout.flush()


def tell(text: str) -> None:
    """A line about progress: on stderr, so that it never mixes with an answer."""
    sys.stderr.write(_printable(text) + "\n")
    sys.stderr.flush()


def dump(document: BaseModel | Sequence[Any] | dict[str, Any]) -> None:
    """The one JSON document."""
    say(json.dumps(to_jsonable_python(document), indent=2, ensure_ascii=False))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns of text, as wide as they need to be; cells never break a line."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]
    say("  ".join(name.ljust(width) for name, width in zip(columns, widths, strict=True)).rstrip())
    say("  ".join("-" * width for width in widths))
    for row in cells:
        say("  ".join(c.ljust(width) for c, width in zip(row, widths, strict=True)).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict | list):
        return json.dumps(to_jsonable_python(value), ensure_ascii=False)
    return " ".join(str(value).split())


def _printable(text: str) -> str:
    """Text from outside may hold escape sequences that would drive the terminal."""
    encoding = sys.stdout.encoding or "utf-8"
    safe = "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)
    return safe.encode(encoding, "backslashreplace").decode(encoding)
