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
_CELLS = np.arange(THUMB_HEIGHT * THUMB_WIDTH).reshape(THUMB_HEIGHT, THUMB_WIDTH)
_INNER_CELLS = _CELLS[_MAX_SHIFT:-_MAX_SHIFT:2, _MAX_SHIFT:-_MAX_SHIFT:2].ravel()
"""Every second cell along both axes, so far inside that each shift of it is in the picture."""
_CORNER_CELL = _MAX_SHIFT * (THUMB_WIDTH + 1)
_MOVED_CELLS = _INNER_CELLS - _CORNER_CELL + _CELLS[np.ix_(_SHIFTS, _SHIFTS)].reshape(-1, 1)
"""int [shifts, inner cells]: where the inner cells lie after each shift."""
_BATCH = 32
_WAITING = 8 * _BATCH
_RESIDUAL_BLOCK = 4

FloatArray = npt.NDArray[np.float32]
UInt8Array = npt.NDArray[np.uint8]


def luma_of(thumbs: UInt8Array) -> FloatArray:
    """float32 [..., 27, 48] luma 0-1 of uint8 RGB or RGBA thumbnails."""
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
    now, past = (luma.reshape(len(luma), _CELLS.size) for luma in (current, before))
    best = np.empty(len(current), dtype=np.float32)
    for first in range(0, len(current), _RESIDUAL_BLOCK):
        block = slice(first, first + _RESIDUAL_BLOCK)
        error = past[block].take(_MOVED_CELLS, axis=1)
        error -= now[block].take(_INNER_CELLS, axis=1)[:, None]
        error -= _mean(error)[..., None]
        best[block] = _mean(np.abs(error, out=error)).min(axis=1)
    return best


def _mean(values: FloatArray) -> FloatArray:
    """Mean along the last axis, as a product: less than half the time of the reduction."""
    length = values.shape[-1]
    return np.asarray(values @ np.full(length, 1 / length, dtype=np.float32))


def _change(luma: FloatArray, later: slice, earlier: slice) -> FloatArray:
    """float32 [n]: mean absolute difference of two runs of frames."""
    change = luma[later] - luma[earlier]
    return _mean(np.abs(change, out=change).reshape(len(change), _CELLS.size))


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
        by_name[f"change{lag}"][rows] = _change(luma, later, earlier)
    for name, lag in (("histogram", 1), ("histogram2", 2), ("histogram_slow", slow)):
        rows, later, earlier = _pairs(total, context, lag)
        distance = np.abs(histograms[later] - histograms[earlier]).sum(axis=1)
        by_name[name][rows] = 0.5 * distance
    _compensate(by_name["residual"], by_name["change1"], by_name["histogram"], _WORTH, luma, 1)
    rows, later, earlier = _pairs(total, context, slow)
    change = np.zeros(total - context, dtype=np.float32)
    change[rows] = _change(luma, later, earlier)
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
    """Collects thumbnails and gives their signals in blocks of some hundred.

    Between two decoded frames little of this code and data is left in the processor's caches: the
    same batches cost half when they follow each other.
    """

    def __init__(self, slow: int, context: UInt8Array | None = None) -> None:
        """Start, after the frames in ``context`` (uint8 [k, 27, 48, 3], k <= CONTEXT)."""
        self._slow = slow
        # One place for past and present: fresh memory for each batch costs more than the work.
        self._luma = np.empty((CONTEXT + _BATCH, THUMB_HEIGHT, THUMB_WIDTH), dtype=np.float32)
        self._histograms = np.empty((CONTEXT + _BATCH, _COLOURS), dtype=np.float32)
        self._known = 0
        self._waiting: list[UInt8Array] = []
        before = np.zeros((0, *THUMB_SHAPE), dtype=np.uint8) if context is None else context
        for first in range(0, len(before), _BATCH):
            self._signals(before[first : first + _BATCH])

    def push(self, thumb: UInt8Array) -> bool:
        """Add uint8 [27, 48, 4] RGBA; True when enough wait to be taken."""
        self._waiting.append(thumb)
        return len(self._waiting) >= _WAITING

    def take(self) -> tuple[UInt8Array, FloatArray]:
        """RGB thumbnails (uint8 [n, 27, 48, 3]) and signals of what waited."""
        # Flows load this module for its names, and no heavy library with it.
        import cv2

        waiting, self._waiting = self._waiting, []
        fresh = np.empty((len(waiting), *THUMB_SHAPE), dtype=np.uint8)
        signals = np.empty((len(waiting), len(SIGNAL_NAMES)), dtype=np.float32)
        for first in range(0, len(waiting), _BATCH):
            batch = slice(first, first + _BATCH)
            rows = np.concatenate(waiting[batch])
            fresh[batch] = cv2.cvtColor(rows, cv2.COLOR_RGBA2RGB).reshape(-1, *THUMB_SHAPE)
            signals[batch] = self._signals(fresh[batch])
        return fresh, signals

    def _signals(self, fresh: UInt8Array) -> FloatArray:
        end = CONTEXT + len(fresh)
        self._luma[CONTEXT:end] = luma_of(fresh)
        self._histograms[CONTEXT:end] = _histograms(fresh)
        rows = slice(CONTEXT - self._known, end)
        signals = _compute(self._luma[rows], self._histograms[rows], self._known, self._slow)
        self._known = min(CONTEXT, self._known + len(fresh))
        for kept in (self._luma, self._histograms):
            kept[CONTEXT - self._known : CONTEXT] = kept[end - self._known : end]
        return signals
