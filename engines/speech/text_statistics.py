"""Signs in the text itself that a recogniser was looping or making things up."""

import re
import zlib
from collections.abc import Sequence
from itertools import groupby

MAX_COMPRESSION_RATIO = 2.4
"""Whisper's own bound: text that packs better than this repeats itself."""
_MIN_COMPRESSIBLE_BYTES = 80
_MIN_REPEATS = {1: 8, 2: 6}
_MIN_PHRASE_REPEATS = 4
_MAX_PHRASE_WORDS = 16
_MIN_EQUAL_RUN = 4
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_STUTTER = re.compile(r"([^\W\d_])\1{5,}")


def tokens(text: str) -> list[str]:
    """Lower-case words without punctuation."""
    return _TOKEN.findall(text.lower())


def compression_ratio(text: str) -> float:
    """UTF-8 bytes over zlib bytes; 1 for text too short to say anything."""
    raw = text.encode("utf-8", "replace")
    if len(raw) < _MIN_COMPRESSIBLE_BYTES:
        return 1.0
    return len(raw) / len(zlib.compress(raw))


def repeats_phrase(words: Sequence[str]) -> bool:
    """Whether some phrase follows itself so often that nobody would say it.

    One word 8 times, two words 6 times, a longer phrase (to 16 words) 4 times in a row.
    """
    for length in range(1, _MAX_PHRASE_WORDS + 1):
        needed = _MIN_REPEATS.get(length, _MIN_PHRASE_REPEATS)
        equal = 0
        for index in range(length, len(words)):
            equal = equal + 1 if words[index] == words[index - length] else 0
            if equal >= length * (needed - 1):
                return True
    return False


def is_loop(text: str) -> bool:
    """Whether the text repeats itself as a recogniser in a loop does."""
    return compression_ratio(text) > MAX_COMPRESSION_RATIO or repeats_phrase(tokens(text))


def is_humming(text: str) -> bool:
    """Whether the text is one letter held (``Hmmmmmmm``): what is written for a hum or a roar."""
    words = tokens(text)
    return bool(words) and all(_STUTTER.search(word) for word in words)


def equal_runs(texts: Sequence[str]) -> list[bool]:
    """Marks each text that stands in a run of 4 or more equal ones (case, punctuation aside)."""
    marks: list[bool] = []
    for key, group in groupby(texts, key=lambda text: tuple(tokens(text))):
        length = len(list(group))
        marks.extend([bool(key) and length >= _MIN_EQUAL_RUN] * length)
    return marks


def similarity(a: str, b: str) -> float:
    """Share of words in common, in order: 2 x longest common subsequence over both lengths."""
    left, right = tokens(a), tokens(b)
    return 2 * _common(left, right) / (len(left) + len(right)) if left and right else 0.0


def containment(part: str, whole: str) -> float:
    """Share of the words of ``part`` that stand in ``whole`` in the same order."""
    left = tokens(part)
    return _common(left, tokens(whole)) / len(left) if left else 0.0


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(right) + 1)
    for word in left:
        diagonal = 0
        for j, other in enumerate(right, 1):
            diagonal, row[j] = row[j], diagonal + 1 if word == other else max(row[j], row[j - 1])
    return row[-1]
