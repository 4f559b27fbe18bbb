"""The frame around words that come from a video: data, never instructions.

Two defences, independent of each other. Every untrusted text is escaped, so that it can neither
close its data field nor imitate an evidence id or a chat role. And text that reads like an order
to a model is found by patterns (a data file), withheld from prompts and claims, and flagged.
"""

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

from engines.contracts.reasoning import EvidenceItem
from engines.prompts.normalise import normalise

INSTRUCTION_LIKE = "instruction_like_text"
"""The flag on evidence and answers."""
WITHHELD = "(withheld: reads like instructions to a model)"
MAX_UNTRUSTED_CHARS = 400
"""Longer lines are cut: a recogniser that loops must not fill the whole prompt."""

_JOINED_LINES = 3
_JOIN_GAP_S = 2.0
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "[": "&#91;", "]": "&#93;", "`": "&#96;"}
)
_NOT_ALNUM = re.compile(r"[\W_]+")
_Patterns = tuple[tuple[str, re.Pattern[str]], ...]


def escape(text: str, max_chars: int = MAX_UNTRUSTED_CHARS) -> str:
    """Text that cannot end its data field, start a line, or look like an id or a tag.

    Args:
        text: untrusted words.
        max_chars: longer text is cut, before escaping.

    Returns:
        One line, with the characters ``& < > [ ] `` and the back-tick as entities.
    """
    line = normalise(text)
    if len(line) > max_chars:
        line = line[:max_chars].rstrip() + "…"
    return line.translate(_ESCAPES)


def fence(text: str, max_chars: int = MAX_UNTRUSTED_CHARS) -> str:
    """The escaped text inside the data field that the prompts speak of."""
    return f"<untrusted>{escape(text, max_chars)}</untrusted>"


@lru_cache(maxsize=1)
def _patterns() -> tuple[_Patterns, _Patterns]:
    source = (files("engines.prompts") / "instruction_patterns.json").read_text(encoding="utf-8")
    table = json.loads(source)
    spaced, compact = (
        tuple((row["name"], re.compile(row["pattern"])) for row in table[part])
        for part in ("spaced", "compact")
    )
    return spaced, compact


def _plain(text: str) -> str:
    """NFKC, lower case, no accents-by-combination tricks, no zero-width marks; tags stay."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if not folded.isprintable():
        folded = "".join(
            c for c in folded if c.isspace() or not unicodedata.category(c).startswith("C")
        )
    return " ".join(folded.split())


def instruction_like(text: str) -> tuple[str, ...]:
    """Names of the tricks that a text shows; empty for ordinary words.

    Matched on the normalised text, and once more with every separator taken out, which catches
    letters spaced apart.
    """
    return _tricks(_plain(text))


def _tricks(plain: str) -> tuple[str, ...]:
    spaced, compact = _patterns()
    found = {name for name, pattern in spaced if pattern.search(plain)}
    squeezed = _NOT_ALNUM.sub("", plain)
    found |= {name for name, pattern in compact if pattern.search(squeezed)}
    return tuple(sorted(found))


def instruction_like_refs(items: Iterable[EvidenceItem]) -> frozenset[str]:
    """Refs of items that read like instructions, alone or joined with neighbours.

    Names of classes and events are looked at as well: a model of the user's own may be made to
    name a thing by what stands on it. An order can be split over lines that follow each other or
    stand together on the screen, so up to three untrusted neighbours of one kind are also read as
    one text.
    """
    found: set[str] = set()
    plain: dict[str, str] = {}
    by_kind: dict[str, list[EvidenceItem]] = {}
    for item in items:
        if instruction_like(f"{item.text} {item.note}"):
            found.add(item.ref)
        if not item.untrusted:
            continue
        plain[item.ref] = _plain(item.text)
        by_kind.setdefault(item.ref.split(":")[0], []).append(item)
    for group in by_kind.values():
        for size in range(2, _JOINED_LINES + 1):
            for start in range(len(group) - size + 1):
                window = group[start : start + size]
                if any(i.ref in found for i in window) or not _adjacent(window):
                    continue
                if _tricks(" ".join(plain[i.ref] for i in window)):
                    found.update(i.ref for i in window)
    return frozenset(found)


def _adjacent(window: list[EvidenceItem]) -> bool:
    return all(b.start_s - a.end_s <= _JOIN_GAP_S for a, b in pairwise(window))
