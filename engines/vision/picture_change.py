"""Whether a picture shows anything else than an earlier one, cheaply."""

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
