"""Per-frame signals at low resolution, from which shots and motion are read.

Every decoded frame is reduced to 48 x 27 RGB by area averaging (a faster filter that skips
pixels costs half of the shots on fine texture). The signals compare it with frames up to eight
before it, so that a flash, a dissolve and a cut can be told apart afterwards without pictures.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

THUMB_WIDTH: Final = 48
THUMB_HEIGHT: Final = 27
THUMB_SHAPE: Final = (THUMB_HEIGHT, THUMB_WIDTH, 3)
LAGS: Final = (1, 2, 3, 4, 6, 8)
CONTEXT: Final = 48
"""Most frames of the past that a signal looks back to."""
SLOW_S: Final = 0.8
"""A gradual change shows between frames so far apart; lasting ones take about a second."""

SIGNAL_NAMES: Final = (
    "luma",
    "contrast",
    "histogram",
    "histogram2",
    "residual",
    *(f"change{lag}" for lag in LAGS),
    "histogram_slow",
    "residual_slow",
)
"""``luma``: mean, 0-1. ``contrast``: standard deviation of the luma, 0-1. ``changeK``: mean
absolute luma difference against the frame K before, 0-1. ``histogram`` (``histogram2``): half
the L1 distance of colour histograms against one (two) frames before, 0-1. ``residual``: as
``change1`` after the best global shift of up to 4 cells and brightness offset, so that a pan or
a flash of light scores low and a new scene scores high; where both change little it is
``change1`` itself.
``histogram_slow``, ``residual_slow``: the same against the frame ``SLOW_S`` before (8 to 48
frames by the frame rate).
"""

_REC601_256 = np.array([77, 150, 29], dtype=np.uint16)
_MAX_SHIFT = 4
_BIN_SHIFT = 5
_COLOURS = 8**3
_WORTH = 0.05
_SLOW_WORTH = 0.19
_SHIFTS = np.array([0, 2, 3, 4, 5, 6, 8])
_BATCH = 32
_RESIDUAL_BLOCK = 4

FloatArray = npt.NDArray[np.float32]
UInt8Array = npt.NDArray[np.uint8]


def luma_of(thumbs: UInt8Array) -> FloatArray:
    """float32 [..., 27, 48] luma 0-1 of uint8 RGB thumbnails."""
    weighted = thumbs[..., 0] * _REC601_256[0]
    weighted += thumbs[..., 1] * _REC601_256[1]
    weighted += thumbs[..., 2] * _REC601_256[2]
    return np.asarray(weighted, dtype=np.float32) / np.float32(256 * 255)


def _histograms(thumbs: UInt8Array) -> FloatArray:
    """float32 [n, 512] joint colour histograms that sum to one."""
    level = thumbs >> _BIN_SHIFT
    cell = (level[..., 0].astype(np.int32) << 6) | (level[..., 1].astype(np.int32) << 3)
    cell |= level[..., 2]
    cell += (_COLOURS * np.arange(len(thumbs), dtype=np.int32))[:, None, None]
    counts = np.bincount(cell.ravel(), minlength=_COLOURS * len(thumbs))
    share = counts.reshape(len(thumbs), _COLOURS) / (THUMB_WIDTH * THUMB_HEIGHT)
    return np.asarray(share, dtype=np.float32)


def _residual(current: FloatArray, before: FloatArray) -> FloatArray:
    """float32 [n]: mean absolute difference after the best global shift and offset.

    Every second cell along both axes is compared, at shifts of 0, 1, 2 and 4 cells: an eighth
    of the work for the same decisions.
    """
    best = np.empty(len(current), dtype=np.float32)
    m = _MAX_SHIFT
    for first in range(0, len(current), _RESIDUAL_BLOCK):
        now = current[first : first + _RESIDUAL_BLOCK, m:-m:2, m:-m:2]
        past = before[first : first + _RESIDUAL_BLOCK]
        shape = (THUMB_HEIGHT - 2 * m, THUMB_WIDTH - 2 * m)
        moved = np.lib.stride_tricks.sliding_window_view(past, shape, axis=(1, 2))[..., ::2, ::2]
        moved = moved[:, _SHIFTS][:, :, _SHIFTS]
        moved = moved - moved.mean(axis=(3, 4), keepdims=True)
        now = now - now.mean(axis=(1, 2), keepdims=True)
        moved -= now[:, None, None]
        error = np.abs(moved, out=moved).mean(axis=(3, 4))
        best[first : first + _RESIDUAL_BLOCK] = error.min(axis=(1, 2))
    return best


def pair_score(a: UInt8Array, b: UInt8Array) -> float:
    """How different two uint8 [27, 48, 3] thumbnails are, as cuts are scored: 0 to about 0.5."""
    pair = np.stack([a, b])
    luma, histograms = luma_of(pair), _histograms(pair)
    distance = 0.5 * float(np.abs(histograms[0] - histograms[1]).sum())
    return float(np.sqrt(distance * float(_residual(luma[1:], luma[:1])[0])))


def slow_lag(frames_per_s: float) -> int:
    """Frames in ``SLOW_S``, 8 to ``CONTEXT``."""
    return int(min(CONTEXT, max(8, round(SLOW_S * frames_per_s))))


def _pairs(n: int, context: int, lag: int) -> tuple[slice, slice, slice]:
    """Rows of the output, of the later and of the earlier frame, for one lag."""
    first = max(context, lag)
    return slice(first - context, None), slice(first, n), slice(first - lag, max(0, n - lag))


def _compute(luma: FloatArray, histograms: FloatArray, context: int, slow: int) -> FloatArray:
    """Signals of consecutive frames.

    Args:
        luma: float32 [context + n, 27, 48]; the first ``context`` frames come before.
        histograms: float32 [context + n, 512] of the same frames.
        context: how many frames of the past are given, at most ``CONTEXT``.
        slow: lag of the slow signals in frames.

    Returns:
        float32 [n, len(SIGNAL_NAMES)]; comparisons with frames before the first are zero.
    """
    total = len(luma)
    out = np.zeros((total - context, len(SIGNAL_NAMES)), dtype=np.float32)
    by_name = dict(zip(SIGNAL_NAMES, out.T, strict=True))
    by_name["luma"][:] = luma[context:].mean(axis=(1, 2))
    by_name["contrast"][:] = luma[context:].std(axis=(1, 2))
    for lag in LAGS:
        rows, later, earlier = _pairs(total, context, lag)
        change = np.abs(luma[later] - luma[earlier]).mean(axis=(1, 2))
        by_name[f"change{lag}"][rows] = change
    for name, lag in (("histogram", 1), ("histogram2", 2), ("histogram_slow", slow)):
        rows, later, earlier = _pairs(total, context, lag)
        distance = np.abs(histograms[later] - histograms[earlier]).sum(axis=1)
        by_name[name][rows] = 0.5 * distance
    _compensate(by_name["residual"], by_name["change1"], by_name["histogram"], _WORTH, luma, 1)
    rows, later, earlier = _pairs(total, context, slow)
    change = np.zeros(total - context, dtype=np.float32)
    change[rows] = np.abs(luma[later] - luma[earlier]).mean(axis=(1, 2))
    residual = by_name["residual_slow"]
    _compensate(residual, change, by_name["histogram_slow"], _SLOW_WORTH, luma, slow)
    return out


def _compensate(
    residual: FloatArray,
    change: FloatArray,
    histogram: FloatArray,
    worth: float,
    luma: FloatArray,
    lag: int,
) -> None:
    """Fill ``residual`` (a column of the output) for one lag.

    Compensation only lowers the change, and what is read from the two is the root of their
    product: where even the uncompensated root stays below ``worth``, it is not computed.
    """
    residual[:] = change
    rows = np.flatnonzero(np.sqrt(change * histogram) > worth)
    at = rows + len(luma) - len(change)
    residual[rows] = np.minimum(change[rows], _residual(luma[at], luma[at - lag]))


class SignalBuffer:
    """Collects thumbnails and gives their signals in batches."""

    def __init__(self, slow: int, context: UInt8Array | None = None) -> None:
        """Start, after the frames in ``context`` (uint8 [k, 27, 48, 3], k <= CONTEXT)."""
        self._slow = slow
        before = np.zeros((0, *THUMB_SHAPE), dtype=np.uint8) if context is None else context
        self._luma, self._histograms = luma_of(before), _histograms(before)
        self._pending: list[UInt8Array] = []

    def push(self, thumb: UInt8Array) -> bool:
        """Add uint8 [27, 48, 3]; True when a batch is ready to be taken."""
        self._pending.append(thumb)
        return len(self._pending) >= _BATCH

    def take(self) -> tuple[UInt8Array, FloatArray]:
        """Thumbnails and signals of everything pushed since the last call."""
        if not self._pending:
            return (
                np.zeros((0, *THUMB_SHAPE), dtype=np.uint8),
                np.zeros((0, len(SIGNAL_NAMES)), dtype=np.float32),
            )
        fresh = np.stack(self._pending)
        self._pending = []
        luma = np.concatenate([self._luma, luma_of(fresh)])
        histograms = np.concatenate([self._histograms, _histograms(fresh)])
        signals = _compute(luma, histograms, len(self._luma), self._slow)
        # Copies: views would keep the whole batch alive.
        self._luma, self._histograms = luma[-CONTEXT:].copy(), histograms[-CONTEXT:].copy()
        return fresh, signals
