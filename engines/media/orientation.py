"""How a coded picture must be turned and mirrored to stand upright, applied exactly once."""

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_MATRIX_BYTES = 36
_TOLERANCE = 0.1

UInt8Array = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Orientation:
    """A quarter turn clockwise, then a left-right mirror."""

    rotation_deg: int = 0
    """0, 90, 180 or 270, clockwise."""
    mirrored: bool = False
    irregular: bool = False
    """The container's matrix was no quarter turn (or degenerate) and was left out."""

    @property
    def swaps_sides(self) -> bool:
        """Whether width and height change places."""
        return self.rotation_deg in (90, 270)

    def apply(self, picture: UInt8Array) -> UInt8Array:
        """Turn uint8 [h, w, 3] to display orientation; a contiguous array comes out."""
        turned = np.rot90(picture, k=-(self.rotation_deg // 90))
        if self.mirrored:
            turned = turned[:, ::-1]
        return np.ascontiguousarray(turned)


def from_display_matrix(raw: bytes) -> Orientation:
    """Read the 3 x 3 matrix of 32-bit integers that containers carry.

    A point maps as x' = a x + c y, y' = b x + d y with y downwards, so a clockwise quarter turn
    is a = 0, b = 1, c = -1, d = 0. Scales are ignored; anything that is not one of the eight
    turns and mirrors of the square is reported as irregular and not applied.
    """
    if len(raw) < _MATRIX_BYTES:
        return Orientation(irregular=True)
    m = struct.unpack("=9i", raw[:_MATRIX_BYTES])
    a, b, c, d = (float(m[i]) for i in (0, 1, 3, 4))
    if a == b == c == d == 0:
        return Orientation(irregular=True)
    size = max(abs(a), abs(b), abs(c), abs(d))
    rounded = [round(v / size) for v in (a, b, c, d)]
    exact = all(abs(v / size - r) < _TOLERANCE for v, r in zip((a, b, c, d), rounded, strict=True))
    for rotation_deg, (ra, rb, rc, rd) in _TURNS.items():
        if rounded == [ra, rb, rc, rd]:
            return Orientation(rotation_deg, irregular=not exact)
        if rounded == [-ra, rb, -rc, rd]:
            return Orientation(rotation_deg, mirrored=True, irregular=not exact)
    return Orientation(irregular=True)


_TURNS = {0: (1, 0, 0, 1), 90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}
