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

from engines.actions.pose.geometry import BodySquare, Floats, Picture, overlap
from engines.actions.pose.networks import DETECTOR_SIZE, NUM_ANCHORS
from engines.runtime.batching import BatchRunner
from engines.runtime.session import Session

_CELLS = ((28, 2), (14, 2), (7, 6))
"""Cells along a side and anchors in each cell, finest first."""
_CANDIDATE_SCORE = 0.2
_SAME_OVERLAP = 0.3
_COORDINATES = 12


@dataclass(frozen=True, eq=False)
class Detection:
    """One person as the detector sees them."""

    score: float
    box: Floats
    """float32 [4]: left, top, right, bottom of the face in pixels of the picture."""
    square: BodySquare
    """Round the whole body, seen or not."""


@dataclass(frozen=True)
class _View:
    """A square part of a picture as the network is shown it."""

    x: float
    y: float
    size: float

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

    def detect(self, picture: Picture, *, closer: bool = False) -> list[Detection]:
        """People in a picture, surest first.

        Args:
            picture: uint8 [h, w, 3] RGB.
            closer: look at overlapping parts of the picture as well, for people too small to be
                seen in the whole, and because the network tends to see one of several.
        """
        height, width = picture.shape[:2]
        views = [_whole(width, height), *(_tiles(width, height) if closer else ())]
        rows = np.stack([view.show(picture) for view in views])
        outputs = self._runner.run({"picture": rows})
        found = []
        for view, raw, logits in zip(views, outputs["boxes"], outputs["scores"], strict=True):
            scores = expit(logits[:, 0].astype(np.float32))
            keep = scores >= _CANDIDATE_SCORE
            points = (raw[keep] / DETECTOR_SIZE).reshape(-1, _COORDINATES // 2, 2)
            points[:, [0, 2, 3, 4, 5]] += self._anchors[keep][:, None]
            points *= view.size
            points[:, [0, 2, 3, 4, 5]] += np.array([view.x, view.y], np.float32)
            found.append((scores[keep], points.astype(np.float32)))
        scores = np.concatenate([s for s, _ in found])
        return self._blend(scores, np.concatenate([p for _, p in found]))

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
    for cells, per_cell in _CELLS:
        middle = (np.arange(cells, dtype=np.float32) + 0.5) / cells
        y, x = np.meshgrid(middle, middle, indexing="ij")
        grid = np.stack([x, y], axis=-1).reshape(-1, 2)
        rows.append(np.repeat(grid, per_cell, axis=0))
    found = np.concatenate(rows).astype(np.float32)
    assert len(found) == NUM_ANCHORS
    return found


def _whole(width: int, height: int) -> _View:
    """The picture in the middle of a square."""
    size = max(width, height)
    return _View((width - size) / 2, (height - size) / 2, size)


def _tiles(width: int, height: int) -> Sequence[_View]:
    """Squares that cover the picture with some overlap, nearly half as large as its longer side."""
    size = max(1.0, max(width, height) * 0.6)
    columns, rows = (_starts(length, size) for length in (width, height))
    return [_View(x, y, size) for y in rows for x in columns]


def _starts(length: float, size: float) -> list[float]:
    if length <= size:
        return [(length - size) / 2]
    count = int(np.ceil((length - size) / (size * 0.75))) + 1
    return [i * (length - size) / (count - 1) for i in range(count)]
