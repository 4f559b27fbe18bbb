"""The one boundary where text and numbers from outside are made fit to store.

Models and files yield NUL bytes, half surrogate pairs, NaN and infinity; Postgres takes none of
them in text or jsonb, and one bad row must not lose the other 499. So every document passes here
before it is hashed: bad characters become U+FFFD, numbers that are not finite become null, and
the fact says so in its flags. A literal backslash-u0000 that somebody typed stays as typed.
"""

import math
import re
from typing import Any, TypeVar

from pydantic import ValidationError

from engines.contracts.base import StageDocument
from engines.errors import NotFiniteError

D = TypeVar("D", bound=StageDocument)

_UNFIT = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean_document(document: D) -> D:
    """The document itself when it is fit to store; else a clean copy with its facts flagged.

    Raises:
        NotFiniteError: a number that must be there is NaN or infinite.
    """
    changed: list[str] = []
    tree = _clean(document.model_dump(), "", changed)
    if not changed:
        return document
    try:
        return type(document).model_validate(tree)
    except ValidationError as error:
        where = "; ".join(".".join(map(str, e["loc"])) for e in error.errors()[:3])
        msg = f"a number that must be finite is not: {where}"
        raise NotFiniteError(msg) from error


def _clean(node: Any, path: str, changed: list[str]) -> Any:
    match node:
        case str() if _UNFIT.search(node):
            changed.append(path)
            return _UNFIT.sub(_REPLACEMENT, node)
        case float() if not math.isfinite(node):
            changed.append(path)
            return None
        case dict():
            return _clean_mapping(node, path, changed)
        case list() | tuple():
            return [_clean(item, path, changed) for item in node]
        case _:
            return node


def _clean_mapping(node: dict[Any, Any], path: str, changed: list[str]) -> dict[Any, Any]:
    here: list[str] = []
    clean = {
        _clean(key, path, here): _clean(value, f"{path}.{key}" if path else str(key), here)
        for key, value in node.items()
    }
    if here and "flags" in clean and "span" in clean:
        fields = sorted({name.rsplit(".", 1)[-1] for name in here})
        marks = [f"cleaned:{field}" for field in fields]
        clean["flags"] = [*clean["flags"], *(m for m in marks if m not in clean["flags"])]
    changed.extend(here)
    return clean
