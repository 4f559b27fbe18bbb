"""Clean input before anything is asked of it: one form for one meaning.

Recognisers and writers put the same words in many dresses: full-width letters, stray
punctuation, zero-width marks, another word for the same thing. Rules and prompts see one form, so
that a perturbed input gives the same structured answer.
"""

import json
import re
import unicodedata
from functools import lru_cache
from importlib.resources import files

_LONGEST_SYNONYM_WORDS = 3
_CACHED_TEXTS = 8192
"""A line of text is compared with all that is said near it."""
_SPACES = re.compile(r"\s+")
_REPEATED_MARKS = re.compile(r"([.,;:!?*~=#|^-])(?:\s*\1)+")
_LONE_MARKS = re.compile(r"(?:(?<=\s)|^)[^\w\s\"'(\[{<&$€£%+\-#@/]+(?=\s|$)")
_SPACE_BEFORE_MARK = re.compile(r"\s+([,.;:!?])")
_WORD = re.compile(r"\d+(?:[.,:]\d+)+|\w+(?:'\w+)*")
_QUOTES = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
    }
)

_STOP_WORDS = (
    "a about after all also an and any are as at be been before but by can could did do does for "
    "from get go had has have he her here him his how i if in into is it its just like me more "
    "my no not now of on one or other our out over own shall she should so some than that the "
    "their them then there these they this to too up us very was we were what when where which "
    "who will with would you your"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing about a topic; English, since the default recogniser is."""


def normalise(text: str) -> str:
    """One form of the same words; the words themselves stay.

    Unicode NFKC (full-width letters, ligatures), plain quotes and dashes, no control or
    zero-width characters, no lone or repeated punctuation, single spaces on one line.

    Args:
        text: words as recognised or typed, any Unicode.

    Returns:
        The cleaned text, on one line; may be empty.
    """
    folded = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    if not folded.isprintable():
        folded = _without_invisible(folded)
    joined = _SPACE_BEFORE_MARK.sub(r"\1", _SPACES.sub(" ", folded).strip())
    marks = _LONE_MARKS.sub(" ", _REPEATED_MARKS.sub(r"\1", joined))
    return _SPACES.sub(" ", marks).strip()


def _without_invisible(text: str) -> str:
    """The text without controls, joiners and lone surrogates; every kind of space is a space."""
    # Cc, Cf, Cs, Co, Cn: controls, zero-width joiners and direction marks, lone surrogates.
    return "".join(
        " " if c.isspace() else c
        for c in text
        if c.isspace() or not unicodedata.category(c).startswith("C")
    )


@lru_cache(maxsize=1)
def synonyms() -> dict[str, str]:
    """The table of synonyms: lower-case phrase (up to three words) to standard term."""
    text = (files("engines.prompts") / "synonyms.json").read_text(encoding="utf-8")
    return {str(k): str(v) for k, v in json.loads(text).items()}


def words(text: str) -> tuple[str, ...]:
    """The words and numbers of a text after ``normalise``, lower case, without punctuation."""
    return tuple(_WORD.findall(normalise(text).casefold()))


@lru_cache(maxsize=_CACHED_TEXTS)
def canonical_words(text: str) -> tuple[str, ...]:
    """``words`` with synonyms replaced by their standard term, longest phrase first."""
    table = synonyms()
    given = words(text)
    out: list[str] = []
    i = 0
    while i < len(given):
        for length in range(min(_LONGEST_SYNONYM_WORDS, len(given) - i), 0, -1):
            term = table.get(" ".join(given[i : i + length]))
            if term is not None:
                out.append(term)
                i += length
                break
        else:
            out.append(given[i])
            i += 1
    return tuple(out)


def terms(text: str) -> tuple[str, ...]:
    """Canonical words that carry a topic: no stop words, no single letters."""
    return tuple(w for w in canonical_words(text) if len(w) > 1 and w not in STOP_WORDS)
