"""Finds people in whole pictures: BlazePose's detector (Bazarevsky et al. 2020, arXiv:2006.10204).

A single-shot detector over 2254 anchors; each says how likely a person's face is there, its box,
and four points, of which the first two give the square round the whole body. Boxes that overlap
are blended by score, not cut: that keeps them still from one picture to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from scipy.special import expit

from engines.actions.pose.geometry import BodySquare, Floats, Picture, cells, is_other, overlap
from engines.actions.pose.networks import DETECTOR_SIZE, NUM_ANCHORS
from engines.runtime.batching import BatchRunner
from engines.runtime.session import Session

_CELLS = ((28, 2), (14, 2), (7, 6))
"""Cells along a side and anchors in each cell, finest first."""
_CANDIDATE_SCORE = 0.2
_SAME_OVERLAP = 0.3
_COORDINATES = 12
_VIEW_CELLS = (56, 56)


@dataclass(frozen=True, eq=False)
class Detection:
    """One person as the detector sees them."""

    score: float
    box: Floats
    """float32 [4]: left, top, right, bottom of the face in pixels of the picture."""
    square: BodySquare
    """Round the whole body, seen or not."""


@dataclass(frozen=True)
class View:
    """A square part of a picture as the network is shown it."""

    x: float
    y: float
    size: float

    def holds(self, x: float, y: float) -> bool:
        """Whether a point of the picture lies in it."""
        return 0 <= x - self.x <= self.size and 0 <= y - self.y <= self.size

    def show(self, picture: Picture) -> Picture:
        """uint8 [224, 224, 3]; what lies outside of the picture is grey: the network's zero."""
        scale = DETECTOR_SIZE / self.size
        left, top = max(0, round(self.x)), max(0, round(self.y))
        part = picture[top : round(self.y + self.size), left : round(self.x + self.size)]
        width = max(1, min(DETECTOR_SIZE, round(part.shape[1] * scale)))
        height = max(1, min(DETECTOR_SIZE, round(part.shape[0] * scale)))
        how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        shown = np.full((DETECTOR_SIZE, DETECTOR_SIZE, 3), 127, np.uint8)
        x0, y0 = round((left - self.x) * scale), round((top - self.y) * scale)
        x0, y0 = min(x0, DETECTOR_SIZE - width), min(y0, DETECTOR_SIZE - height)
        shown[y0 : y0 + height, x0 : x0 + width] = cv2.resize(
            part, (width, height), interpolation=how
        )
        return shown


@dataclass(frozen=True, eq=False)
class _Remembered:
    """What the network last saw in a view, and what it found."""

    cells: Floats
    found: tuple[Floats, Floats]
    """Scores [n] and points [n, 6, 2] of its candidates."""

    def looks_other(self, shown: Picture) -> bool:
        return is_other(self.cells, cells(shown, _VIEW_CELLS))


class PersonDetector:
    """See the module."""

    def __init__(self, session: Session, *, min_score: float, batch_size: int) -> None:
        """Keep the network.

        Args:
            session: the network of ``engines.actions.pose.networks.DETECTOR``.
            min_score: people with less are left out.
            batch_size: views per run.
        """
        self._runner = BatchRunner(session, batch_size)
        self._min_score = min_score
        self._anchors = anchors()
        self._memory: dict[View, _Remembered] = {}

    def detect(self, picture: Picture, views: Sequence[View]) -> list[Detection]:
        """People in some views of a picture, surest first.

        A view that shows what it showed when the network last saw it is not shown again.

        Args:
            picture: uint8 [h, w, 3] RGB.
            views: one and more of ``whole`` and ``tiles``.
        """
        self._look(picture, [view for view in views if self._is_news(view, picture)])
        found = [self._memory[view].found for view in views]
        scores = np.concatenate([s for s, _ in found])
        return self._blend(scores, np.concatenate([p for _, p in found]))

    def _is_news(self, view: View, picture: Picture) -> bool:
        """Whether a view shows something else than when the network last saw it."""
        return view not in self._memory or self._memory[view].looks_other(view.show(picture))

    def _look(self, picture: Picture, views: Sequence[View]) -> None:
        """Show views to the network, and keep what it says."""
        if not views:
            return
        rows = np.stack([view.show(picture) for view in views])
        outputs = self._runner.run({"picture": rows})
        for view, shown, raw, logits in zip(
            views, rows, outputs["boxes"], outputs["scores"], strict=True
        ):
            scores = expit(logits[:, 0].astype(np.float32))
            keep = scores >= _CANDIDATE_SCORE
            points = (raw[keep] / DETECTOR_SIZE).reshape(-1, _COORDINATES // 2, 2)
            points[:, [0, 2, 3, 4, 5]] += self._anchors[keep][:, None]
            points *= view.size
            points[:, [0, 2, 3, 4, 5]] += np.array([view.x, view.y], np.float32)
            found = (scores[keep], points.astype(np.float32))
            self._memory[view] = _Remembered(cells(shown, _VIEW_CELLS), found)

    def _blend(self, scores: Floats, points: Floats) -> list[Detection]:
        """Weighted suppression: candidates that overlap the best one are averaged with it.

        Args:
            scores: float32 [n].
            points: float32 [n, 6, 2]: middle of the box, its size, and the four points.
        """
        half = points[:, 1] / 2
        boxes = np.concatenate([points[:, 0] - half, points[:, 0] + half], axis=1)
        left = np.argsort(-scores, kind="stable")
        found = []
        while len(left) and scores[left[0]] >= self._min_score:
            same = overlap(boxes[left[:1]], boxes[left])[0] > _SAME_OVERLAP
            same[0] = True
            group = left[same]
            weight = scores[group] / scores[group].sum()
            blended = np.tensordot(weight, points[group], axes=1)
            found.append(
                Detection(
                    score=float(scores[left[0]]),
                    box=np.tensordot(weight, boxes[group], axes=1).astype(np.float32),
                    square=BodySquare.from_points(blended[2], blended[3]),
                )
            )
            left = left[~same]
        return found


def anchors() -> Floats:
    """float32 [2254, 2]: middle of every anchor, 0-1; all of them are as large as the picture."""
    rows = []
    for side, per_cell in _CELLS:
        middle = (np.arange(side, dtype=np.float32) + 0.5) / side
        y, x = np.meshgrid(middle, middle, indexing="ij")
        grid = np.stack([x, y], axis=-1).reshape(-1, 2)
        rows.append(np.repeat(grid, per_cell, axis=0))
    found = np.concatenate(rows).astype(np.float32)
    assert len(found) == NUM_ANCHORS
    return found


def whole(width: int, height: int) -> View:
    """The view with the picture in the middle."""
    size = max(width, height)
    return View((width - size) / 2, (height - size) / 2, size)


def tiles(width: int, height: int) -> Sequence[View]:
    """Views that cover the picture with some overlap, 0.6 of its longer side.

    For people too small to be seen in the whole, and because the network tends to see one of
    several.
    """
    size = max(1.0, max(width, height) * 0.6)
    columns, rows = (_starts(length, size) for length in (width, height))
    return [View(x, y, size) for y in rows for x in columns]


def _starts(length: float, size: float) -> list[float]:
    if length <= size:
        return [(length - size) / 2]
    count = int(np.ceil((length - size) / (size * 0.75))) + 1
    return [i * (length - size) / (count - 1) for i in range(count)]
