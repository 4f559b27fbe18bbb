"""When two readings are of the same line: the same text but for reading errors, in one place."""

import numpy as np

from engines.vision.ocr_engine import Quad, Reading

_CONFUSED = str.maketrans(
    {"o": "0", "q": "0", "i": "1", "l": "1", "|": "1", "!": "1", "s": "5", "b": "8", "z": "2"}
)
"""Glyphs that recognisers take for each other."""
_UNSURE = 0.85
_SHORT = 3
_LETTERS_PER_ERROR = 5
_SAME_HEIGHT = 1.6
_NEAR_LINES = 0.6


def folded(text: str) -> str:
    """Text without what recognisers confuse: case, spaces, look-alike glyphs."""
    return "".join(text.casefold().split()).translate(_CONFUSED)


def edit_distance(a: str, b: str) -> int:
    """Fewest insertions, deletions and replacements (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (left != right))
    return row[-1]


def same_text(a: Reading, b: Reading) -> bool:
    """Whether two readings say the same but for errors of the recogniser.

    Digits are not forgiven where both readings are sure of them: a counter that has moved on is
    another text, however alike it looks.
    """
    left, right = folded(a.text), folded(b.text)
    if left == right:
        return True
    longer = max(len(left), len(right))
    if longer <= _SHORT or not left or not right:
        return False
    if edit_distance(left, right) > max(1, longer // _LETTERS_PER_ERROR):
        return False
    return not _counts_on(left, right) or min(a.score, b.score) < _UNSURE


def same_pattern(a: str, b: str) -> bool:
    """Whether two texts differ in their digits alone, as two states of a counter do."""
    return a != b and any(c.isdigit() for c in a) and _shape(a) == _shape(b)


def near(a: Quad, b: Quad) -> bool:
    """Whether two quadrangles are one line's place: centres apart by less than a line's height."""
    high = max(line_height(a), line_height(b), 1.0)
    rise = abs(float(a[:, 1].mean() - b[:, 1].mean()))
    left = max(float(a[:, 0].min()), float(b[:, 0].min()))
    right = min(float(a[:, 0].max()), float(b[:, 0].max()))
    shorter = min(float(np.ptp(a[:, 0])), float(np.ptp(b[:, 0])))
    return rise < _NEAR_LINES * high and right - left > shorter / 2


def same_height(a: Quad, b: Quad) -> bool:
    """Whether two lines may be one that moved: letters of like size."""
    low, high = sorted((max(line_height(a), 1.0), max(line_height(b), 1.0)))
    return high / low < _SAME_HEIGHT


def line_height(quad: Quad) -> float:
    """Length of the shorter pair of sides, pixels."""
    sides = np.linalg.norm(quad - np.roll(quad, -1, axis=0), axis=1)
    return float(min(sides[0] + sides[2], sides[1] + sides[3]) / 2)


def _counts_on(left: str, right: str) -> bool:
    """Whether a digit became another digit; one that became a letter is a reading error."""
    if len(left) == len(right):
        return any(a != b and a.isdigit() and b.isdigit() for a, b in zip(left, right, strict=True))
    return [c for c in left if c.isdigit()] != [c for c in right if c.isdigit()]


def _shape(text: str) -> str:
    return "".join("0" if c.isdigit() else c for c in text.casefold() if not c.isspace())
