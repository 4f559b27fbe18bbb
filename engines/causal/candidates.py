"""Which types follow which more often than chance, and at which lag.

The statistic is a scan: for every ordered pair of types the count of pairs of occurrences in
many lag bands (narrow to wide) against what independent timing would give, the largest signed
root of the Poisson log-likelihood ratio taken. Its null comes from circular shifts of the cause
inside each video (``engines.causal.null``), which keeps both rhythms; the p-value of a maximum
already pays for having looked at all bands. Beyond the reach of counting, the tail is a gamma
distribution fitted to the shifts' moments (Winkler et al. 2016, Faster permutation inference in
brain imaging).
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from engines.causal.series import SIMULTANEOUS_S, EventTable, Floats, Ints

Number = TypeVar("Number", np.int32, np.float64)

BAND_BINS = (1, 2, 4, 8, 16, 32)
COUNTED_TAIL = 10


@dataclass(frozen=True)
class Bands:
    """Lag bands as [first, last) bins of width ``step_s``."""

    first: Ints
    last: Ints
    step_s: float
    num_bins: int

    def seconds(self, band: int) -> tuple[float, float]:
        """Lag range [low, high) of one band."""
        return float(self.first[band] * self.step_s), float(self.last[band] * self.step_s)


@dataclass(frozen=True)
class Scan:
    """Result of the scan; all arrays are [k, k], row the cause, column the effect.

    Attributes:
        p_value: of the best band, its search included.
        band: int64, index of the best band.
        count: pairs of occurrences in the best band.
        expected: the same under independent timing.
        bands: what ``band`` indexes.
    """

    p_value: Floats
    band: Ints
    count: Floats
    expected: Floats
    bands: Bands

    @property
    def lift(self) -> Floats:
        """Observed over expected co-occurrences; 0 where nothing was observed."""
        return np.divide(
            self.count, self.expected, out=np.zeros_like(self.count), where=self.expected > 0
        )


def make_bands(max_lag_s: float, num_bins: int) -> Bands:
    """Bands of growing width that overlap by half, and one over the whole range."""
    spans: list[tuple[int, int]] = []
    for width in BAND_BINS:
        if width >= num_bins:
            break
        step = max(1, width // 2)
        spans += [(a, a + width) for a in range(0, num_bins - width + 1, step)]
    spans.append((0, num_bins))
    edges = np.asarray(spans, dtype=np.int64)
    return Bands(edges[:, 0], edges[:, 1], max_lag_s / num_bins, num_bins)


def pairs_within(cause: Floats, effect: Floats, max_lag_s: float) -> tuple[Ints, Ints]:
    """Index pairs (i, j) with 0 < effect[j] - cause[i] <= max_lag_s; both sorted inputs."""
    low = np.searchsorted(effect, cause + SIMULTANEOUS_S, side="right")
    high = np.searchsorted(effect, cause + max_lag_s, side="right")
    number = np.maximum(high - low, 0)
    i = np.repeat(np.arange(len(cause)), number)
    begin = np.repeat(low - np.concatenate([[0], np.cumsum(number)[:-1]]), number)
    return i, begin + np.arange(len(i))


def lag_cells(table: EventTable, time: Floats, kind: Ints, bands: Bands) -> Ints:
    """Cell of every co-occurrence: ((copy * k + cause) * k + effect) * bins + bin, int64 [m].

    Args:
        table: the effects, at their true times.
        time: [copies * n] times of the causes; copy c takes [c * n, (c + 1) * n).
        kind: [n] types of the causes.
        bands: the lag bins.
    """
    k, bins = table.num_types, bands.num_bins
    i, j = pairs_within(time, table.time, bands.step_s * bins)
    lag = table.time[j] - time[i]
    effect = table.kind[j]
    ordered = lag > table.error[effect] + SIMULTANEOUS_S
    i, effect, lag = i[ordered], effect[ordered], lag[ordered]
    at = np.minimum((lag / bands.step_s).astype(np.int64), bins - 1)
    copy, cause = np.divmod(i, max(len(kind), 1))
    return np.asarray(((copy * k + kind[cause]) * k + effect) * bins + at)


def lag_histogram(
    table: EventTable, time: Floats, kind: Ints, bands: Bands, copies: int = 1
) -> NDArray[np.int32]:
    """Counts by copy, cause, effect and lag bin: int32 [copies, k, k, bins]; see ``lag_cells``."""
    k, bins = table.num_types, bands.num_bins
    cell = lag_cells(table, time, kind, bands)
    flat = np.bincount(cell, minlength=copies * k * k * bins)
    return flat.reshape(copies, k, k, bins).astype(np.int32)


def expected_histogram(table: EventTable, bands: Bands) -> NDArray[np.float64]:
    """Mean of ``lag_histogram`` over all circular shifts, exactly: float64 [k, k, bins]."""
    k, bins, v = table.num_types, bands.num_bins, table.num_videos
    centre: Floats = (np.arange(bins, dtype=np.float64) + 0.5) * bands.step_s
    open_ = _seen_before(table, centre) & (centre[None, :] > table.error[table.kind][:, None])
    train = table.video * k + table.kind
    reach = np.empty((v * k, bins))
    for at in range(bins):
        reach[:, at] = np.bincount(train, weights=open_[:, at], minlength=v * k)
    length = np.diff(table.video_covered)
    rate = np.divide(
        table.counts(), length[:, None], out=np.zeros((v, k)), where=length[:, None] > 0
    )
    product = rate.T @ reach.reshape(v, k * bins)
    return product.reshape(k, k, bins) * bands.step_s


def _seen_before(table: EventTable, lag_s: Floats) -> NDArray[np.bool_]:
    """Whether the instant ``lag_s`` [bins] before each event was observed: bool [n, bins]."""
    seg = np.maximum(np.searchsorted(table.seg_start, table.time, side="right") - 1, 0)
    since = table.time - table.seg_start[seg]
    near = np.flatnonzero((since < lag_s[-1]) | (since >= np.diff(table.seg_covered)[seg]))
    seen = np.ones((len(table.time), len(lag_s)), dtype=np.bool_)
    seen[near] = table.is_observed(table.time[near, None] - lag_s[None, :])
    return seen


def band_sums(histogram: NDArray[Number], bands: Bands) -> NDArray[Number]:
    """Counts of bins added up to counts of bands along the last axis."""
    total = np.zeros((*histogram.shape[:-1], bands.num_bins + 1), dtype=histogram.dtype)
    np.cumsum(histogram, axis=-1, out=total[..., 1:])
    return np.asarray(total[..., bands.last] - total[..., bands.first])


class BandScores:
    """Twice the Poisson log-likelihood ratio of counts, 0 where not above expectation.

    Counts are small integers met millions of times, so their entropy is looked up.
    """

    def __init__(self, expected: Floats) -> None:
        self._expected = np.maximum(expected, 1e-9).astype(np.float32)
        self._slope = (np.log(np.maximum(expected, 1e-9)) + 1.0).astype(np.float32)
        self._entropy = np.zeros(0, dtype=np.float32)

    def __call__(self, count: NDArray[np.int32]) -> NDArray[np.float32]:
        """Scores of counts whose last axes are those of the expectation, float32."""
        top = int(count.max(initial=0)) + 1
        if top > len(self._entropy):
            c = np.arange(2 * top, dtype=np.float64)
            self._entropy = (c * np.log(np.maximum(c, 1.0))).astype(np.float32)
        counted = count.astype(np.float32)
        ratio = self._entropy[count] - counted * self._slope + self._expected
        ratio[counted <= self._expected] = 0.0
        return np.asarray(2.0 * ratio, dtype=np.float32)


def _tail_p_value(observed: Floats, null: Floats) -> Floats:
    """P-values of ``observed`` [f, f] in ``null`` [p, f, f]: counted, then gamma beyond."""
    counted = (1.0 + (null >= observed - 1e-9).sum(axis=0)) / (1.0 + len(null))
    mean, spread = null.mean(axis=0), np.maximum(null.std(axis=0), 1e-6)
    skew = np.clip((((null - mean) / spread) ** 3).mean(axis=0), 0.2, 3.0)
    fitted = stats.pearson3.sf((observed - mean) / spread, skew)
    few = counted * (1.0 + len(null)) <= COUNTED_TAIL
    chosen = np.where(few, np.minimum(fitted, counted), counted)
    return np.asarray(np.clip(chosen, 1e-30, 1.0))


def scan_pairs(table: EventTable, bands: Bands, null: Floats, frequent: Ints) -> Scan:
    """Scan every ordered pair of types, the pair of a type with itself included.

    Args:
        table: all events.
        bands: where to look.
        null: float64 [p, f, f], scores that the frequent types reach by chance.
        frequent: int64 [f], types that can be tested; p-values of the others are 1.
    """
    k = table.num_types
    histogram = lag_histogram(table, table.time, table.kind, bands)[0]
    expected = band_sums(expected_histogram(table, bands), bands)
    count = band_sums(histogram, bands)
    score = BandScores(expected)(count)
    best = score.argmax(axis=-1)
    top = np.sqrt(np.take_along_axis(score, best[..., None], -1)[..., 0]).astype(np.float64)
    p_value = np.ones((k, k))
    chosen = np.ix_(frequent, frequent)
    p_value[chosen] = _tail_p_value(top[chosen], null)
    return Scan(
        p_value=p_value,
        band=best.astype(np.int64),
        count=np.take_along_axis(count, best[..., None], -1)[..., 0].astype(np.float64),
        expected=np.take_along_axis(expected, best[..., None], -1)[..., 0],
        bands=bands,
    )
