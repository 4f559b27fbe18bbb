"""Wipes: a front sweeps over the picture and each place changes once, from one shot to the next.

TransNetV2 misses them. Here the moment at which each cell changes most is looked at as a map
over the picture: for a wipe it is a smooth function of place (a plane for a straight front, a
cone for a circular one, folded for doors), for motion, pans and dissolves it is not.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.media.signals import THUMB_HEIGHT, THUMB_WIDTH, UInt8Array, pair_score

FloatArray = npt.NDArray[np.float32]

_HALF_WINDOWS: Final = (8, 14, 22)
_STRIDE: Final = 3
_JUMP: Final = 0.06
_MIN_SHARE: Final = 0.45
_MIN_FIT: Final = 0.75
_MIN_LENGTH: Final = 4
_DIFFERENT: Final = 0.15
_SETTLED: Final = 2


@dataclass(frozen=True)
class Wipe:
    """One found wipe."""

    start: int
    """First frame that shows both shots."""
    end: int
    """First frame that shows the new one alone."""
    fit: float
    """Share of the variance of the change times that the front explains, 0-1."""


def _basis() -> FloatArray:
    y, x = np.mgrid[0:THUMB_HEIGHT, 0:THUMB_WIDTH].astype(np.float32)
    x = x / (THUMB_WIDTH - 1) - 0.5
    y = (y / (THUMB_HEIGHT - 1) - 0.5) * THUMB_HEIGHT / THUMB_WIDTH
    terms = [np.ones_like(x), x, y, np.hypot(x, y), np.abs(x), np.abs(y)]
    return np.stack([t.ravel() for t in terms], axis=1)


_BASIS = _basis()


def _fit(moments: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Weighted least squares of change times on the front shapes; R squared and the fit.

    Fitted twice, the second time without the cells that were far off: moving things inside
    both shots have change times of their own.
    """
    use = weights > 0
    fitted = moments
    for _ in range(2):
        root = np.sqrt(weights[use])[:, None]
        solution, *_ = np.linalg.lstsq(_BASIS[use] * root, moments[use] * root[:, 0], rcond=None)
        fitted = _BASIS @ solution
        error = np.abs(moments - fitted)
        limit = max(2.0, 2.5 * float(np.median(error[use])))
        use = (weights > 0) & (error < limit)
        if use.sum() < len(weights) * _MIN_SHARE * 0.7:
            return 0.0, fitted
    mean = np.average(moments[use], weights=weights[use])
    total = np.average((moments[use] - mean) ** 2, weights=weights[use])
    left = np.average((moments[use] - fitted[use]) ** 2, weights=weights[use])
    kept = weights[use].sum() / weights.sum()
    return (float((1 - left / total) * kept) if total > 0 else 0.0), fitted


def _look(thumbs: UInt8Array, centre: int, half: int) -> Wipe | None:
    """Test one window of frames for a wipe."""
    first, last = max(0, centre - half), min(len(thumbs) - 1, centre + half)
    if last - first < _MIN_LENGTH:
        return None
    change = np.abs(np.diff(thumbs[first : last + 1].astype(np.int16), axis=0))
    # Added by hand: a sum along an axis of three takes six times as long.
    change = (change[..., 0] + change[..., 1] + change[..., 2]).reshape(last - first, -1)
    moments = change.argmax(axis=0).astype(np.float32)
    strength = change.max(axis=0) / np.float32(3 * 255)
    jumped = strength > _JUMP
    if jumped.mean() < _MIN_SHARE:
        return None
    fit, fitted = _fit(moments, np.where(jumped, strength, 0).astype(np.float32))
    start = first + 1 + int(np.floor(np.percentile(fitted, 1)))
    end = first + 2 + int(np.ceil(np.percentile(fitted, 99)))
    if fit < _MIN_FIT or end - start < _MIN_LENGTH or start <= first or end > last:
        return None
    before, after = max(0, start - _SETTLED), min(len(thumbs) - 1, end + _SETTLED)
    if pair_score(thumbs[before], thumbs[after]) < _DIFFERENT:
        return None
    return Wipe(start, end, fit)


def find_wipes(thumbs: UInt8Array, first: int, last: int) -> list[Wipe]:
    """Wipes whose middle lies in frames [first, last) of uint8 [n, 27, 48, 3] thumbnails.

    Of overlapping findings the one with the best fit stays.
    """
    found = []
    for half in _HALF_WINDOWS:
        for centre in range(first, last, _STRIDE):
            wipe = _look(thumbs, centre, half)
            if wipe is not None:
                found.append(wipe)
    kept: list[Wipe] = []
    for wipe in sorted(found, key=lambda w: -w.fit):
        if all(wipe.start >= k.end or wipe.end <= k.start for k in kept):
            kept.append(wipe)
    return sorted(kept, key=lambda w: w.start)
