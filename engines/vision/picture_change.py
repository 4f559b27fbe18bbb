"""Whether a picture shows anything else than an earlier one, cheaply."""

from collections import deque
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from engines.vision.label_engine import Picture

_WIDTH = 160
_CELL = 4
_FULL_RANGE = 255.0
_LOCAL = 10.0
_CUT = 3.0

_STROKE_WIDTH = 320
_STROKE = 5
"""Widest line, at 320 pixels width, that counts as a stroke of a letter."""
_STROKE_CELL = 8
_SIDE = 2
_RISE = 20.0
_RISE_RATIO = 3.0
_REMEMBERED = 8

Cells = npt.NDArray[np.float32]


def thumbnail(picture: Picture) -> Cells:
    """Luma at 160 pixels width, float32 [h, 160], 0-255.

    Wide enough that one line of small letters changes several pixels clearly.
    """
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    height = max(_CELL, round(picture.shape[0] * _WIDTH / picture.shape[1]))
    small: Cells = cv2.resize(grey, (_WIDTH, height), interpolation=cv2.INTER_AREA).astype(
        np.float32
    )
    return small


@dataclass(frozen=True)
class Change:
    """Mean luma difference of two pictures over cells of 4 x 4, 0-255."""

    largest: float
    """In the cell that changed most: a line of text that appears is a small part of a picture."""
    typical: float
    """In the median cell: what movement of the camera does everywhere."""


def change(a: Cells, b: Cells) -> Change:
    """How far two thumbnails differ; of different sizes: by the full range."""
    if a.shape != b.shape:
        return Change(_FULL_RANGE, _FULL_RANGE)
    size = (max(1, a.shape[1] // _CELL), max(1, a.shape[0] // _CELL))
    cells = cv2.resize(np.abs(a - b), size, interpolation=cv2.INTER_AREA)
    return Change(float(cells.max()), float(np.median(cells)))


def appears(now: Change, before: Change | None, threshold: float) -> bool:
    """Whether something came up between two samples, rather than moved on.

    Either in one place while the rest stayed, or everywhere at once (a cut) while little had
    changed between the samples before.
    """
    if now.largest <= threshold:
        return False
    local = now.largest > _LOCAL * max(now.typical, 1.0)
    cut = before is not None and now.typical > _CUT * max(before.typical, 1.0)
    return local or cut


class StrokeWatch:
    """Notices strokes, as letters are made of, where none were near: also while the camera moves.

    A line of letters changes a moving picture no more than the movement does. But what moves was
    somewhere near before, and a line that comes up was not.
    """

    def __init__(self) -> None:
        """Nothing seen yet."""
        self._before: Cells | None = None
        self._rises: deque[float] = deque(maxlen=_REMEMBERED)

    def appear(self, picture: Picture) -> bool:
        """Whether this picture, next in time, has strokes far beyond what usually comes up."""
        now = strokes(picture)
        before, self._before = self._before, now
        if before is None or before.shape != now.shape:
            return False
        fresh = now - cv2.dilate(before, np.ones((3, 3), np.uint8))
        # What a turning camera brings in at the sides was never in the picture before.
        rise = float(fresh[:, _SIDE : fresh.shape[1] - _SIDE].max())
        usual = float(np.median(self._rises)) if self._rises else rise
        self._rises.append(rise)
        return rise > max(_RISE, _RISE_RATIO * usual)


def strokes(picture: Picture) -> Cells:
    """How much of thin lines, light on dark or dark on light, lies in cells of 8 x 8 at 320 width.

    Source: top-hat transforms (Serra, "Image Analysis and Mathematical Morphology", 1982).

    Args:
        picture: uint8 [h, w, 3] RGB.
    """
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    height = max(_STROKE_CELL, round(grey.shape[0] * _STROKE_WIDTH / grey.shape[1]))
    small = cv2.resize(grey, (_STROKE_WIDTH, height), interpolation=cv2.INTER_AREA)
    kernel = np.ones((_STROKE, _STROKE), np.uint8)
    light = cv2.morphologyEx(small, cv2.MORPH_TOPHAT, kernel)
    dark = cv2.morphologyEx(small, cv2.MORPH_BLACKHAT, kernel)
    size = (_STROKE_WIDTH // _STROKE_CELL, max(1, height // _STROKE_CELL))
    cells: Cells = cv2.resize(
        np.maximum(light, dark).astype(np.float32), size, interpolation=cv2.INTER_AREA
    )
    return cells
