"""Where a person is in a picture: a turned square, and the way between it and the picture."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]
"""uint8 [h, w, 3] RGB."""
Floats = npt.NDArray[np.float32]

MARGIN = 1.25
"""The square is this much larger than the circle round the body, as in the network's training."""

SAME_LEVELS = 4.0
"""Grey levels of 255 by which a cell may differ in pictures that count as the same."""


@dataclass(frozen=True)
class BodySquare:
    """A square round a person, turned so that the body stands upright in it.

    In pixels of the picture; ``angle`` in radians, clockwise as seen (y points down).
    """

    x: float
    y: float
    size: float
    angle: float

    @classmethod
    def from_points(cls, hips: Floats, rim: Floats) -> "BodySquare":
        """The square from the middle of the hips and a point on the circle round the body.

        Args:
            hips: float32 [2], the circle's middle.
            rim: float32 [2], the point of the circle above the head along the body.
        """
        dx, dy = float(rim[0] - hips[0]), float(rim[1] - hips[1])
        # An upright body has its rim point straight above the hips: angle 0.
        angle = float(np.arctan2(dx, -dy))
        return cls(float(hips[0]), float(hips[1]), 2 * MARGIN * float(np.hypot(dx, dy)), angle)

    def to_picture(self, points: Floats) -> Floats:
        """Points of the square, 0-1 along its own axes, in pixels of the picture.

        Args:
            points: float32 [..., 2].
        """
        u, v = points[..., 0] - 0.5, points[..., 1] - 0.5
        cos, sin = np.cos(self.angle), np.sin(self.angle)
        x = self.x + self.size * (cos * u - sin * v)
        y = self.y + self.size * (sin * u + cos * v)
        return np.stack([x, y], axis=-1).astype(np.float32)

    def crop(self, picture: Picture, side: int) -> Picture:
        """What the square shows, upright: uint8 [side, side, 3]; edges are continued outside."""
        corners = np.array([[0, 0], [1, 0], [0, 1]], np.float32)
        # Pixel centres: the middle of the first pixel stands half a pixel from the edge.
        matrix = cv2.getAffineTransform(
            self.to_picture(corners) - np.float32(0.5), corners * side - np.float32(0.5)
        )
        warped = cv2.warpAffine(
            picture,
            matrix,
            (side, side),
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        return np.asarray(warped, dtype=np.uint8)


def turn(points: Floats, angle: float) -> Floats:
    """Turn the x and y of points clockwise (y down) round the origin; z stays.

    Args:
        points: float32 [..., 3].
        angle: radians.
    """
    cos, sin = np.cos(angle), np.sin(angle)
    x, y = points[..., 0], points[..., 1]
    turned = np.stack([cos * x - sin * y, sin * x + cos * y, points[..., 2]], axis=-1)
    return turned.astype(np.float32)


def bounds(points: Floats) -> Floats:
    """float32 [..., 4] left, top, right, bottom of float32 [..., n, 2]."""
    found: Floats = np.concatenate([points.min(axis=-2), points.max(axis=-2)], axis=-1)
    return found


def overlap(first: Floats, second: Floats) -> Floats:
    """Intersection over union, float32 [n, m], of float32 [n, 4] and [m, 4] boxes."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=-1)
    areas = [np.prod(np.clip(b[:, 2:] - b[:, :2], 0, None), axis=-1) for b in (first, second)]
    union = areas[0][:, None] + areas[1][None, :] - shared
    return np.asarray(shared / np.maximum(union, np.finfo(np.float32).tiny), np.float32)


def cells(picture: Picture, size: tuple[int, int]) -> Floats:
    """Grey levels of a grid of cells: float32 [rows, columns].

    Args:
        picture: uint8 [h, w, 3] RGB.
        size: columns and rows.
    """
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    return np.asarray(small.astype(np.float32).mean(axis=2))


def is_other(before: Floats, now: Floats) -> bool:
    """Whether two grids differ by more than noise and compression make them, or show nothing."""
    if before.shape != now.shape or not before.size:
        return True
    return float(np.abs(before - now).max()) > SAME_LEVELS
