"""What lagged co-occurrence is by chance: counts after circular shifts, kept per video.

The null of a corpus is the sum of the nulls of its videos, since shifts in one video say nothing
about another. So each video's shifted counts are made once, from randomness that belongs to the
video alone, kept in a sparse form, and added up whenever the corpus changes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.causal.candidates import (
    Bands,
    BandScores,
    band_sums,
    expected_histogram,
    lag_cells,
    lag_histogram,
)
from engines.causal.series import EventTable, Floats, Ints, draw_shifts, shift_times

PAIR_BUDGET = 3e8
"""Co-occurrences looked at over all permutations; dense timelines get fewer permutations."""
MIN_PERMUTATIONS = 100
HITS_PER_BATCH = 2_000_000
CELLS_PER_BLOCK = 60_000_000
"""Counts of pooled copies held at a time; a corpus of more types goes through in blocks."""
CELLS_PER_SCORING = 2_000_000
DENSE_CELLS_PER_HIT = 16
"""Up to so many cells per hit, counting them all is cheaper than sorting the hits."""


@dataclass(frozen=True)
class NullCounts:
    """Lag histograms of shifted copies of one video, their zeros left out.

    Attributes:
        cell: int64 [m], sorted: ((copy * k + cause) * k + effect) * bins + bin.
        count: int32 [m], co-occurrences in the cell.
        copies: how many shifted copies there are.
        num_types: k, the types of the video.
        num_bins: lag bins.
    """

    cell: Ints
    count: NDArray[np.int32]
    copies: int
    num_types: int
    num_bins: int


def draw_null(
    table: EventTable, bands: Bands, *, permutations: int, rng: np.random.Generator
) -> NullCounts:
    """Shifted copies of one video.

    Args:
        table: of a single video.
        bands: the lag bins.
        permutations: copies wanted; a dense video gets fewer, at least ``MIN_PERMUTATIONS``.
        rng: of this video alone.
    """
    k, bins = table.num_types, bands.num_bins
    observed = lag_histogram(table, table.time, table.kind, bands).sum()
    pairs = max(1.0, float(observed))
    low = min(MIN_PERMUTATIONS, permutations)
    copies = int(np.clip(PAIR_BUDGET / pairs, low, permutations))
    batch = int(np.clip(HITS_PER_BATCH / pairs, 1, copies))
    cells: list[Ints] = []
    counts: list[Ints] = []
    for begin in range(0, copies, batch):
        size = min(batch, copies - begin)
        moved = shift_times(table, draw_shifts(table, size, bands.step_s * bins, rng))
        hits = lag_cells(table, moved.ravel(), table.kind, bands)
        cell, count = _tally(hits, size * k * k * bins)
        cells.append(cell + begin * k * k * bins)
        counts.append(count)
    joined = np.concatenate(counts).astype(np.int32)
    return NullCounts(np.concatenate(cells), joined, copies, k, bins)


def _tally(hits: Ints, num_cells: int) -> tuple[Ints, Ints]:
    """Cells that were hit, sorted, and how often; by the cheaper of two ways."""
    if num_cells > DENSE_CELLS_PER_HIT * len(hits):
        cell, count = np.unique(hits, return_counts=True)
        return cell, count.astype(np.int64)
    counted = np.bincount(hits, minlength=num_cells)
    cell = np.flatnonzero(counted)
    return cell, counted[cell]


@dataclass(frozen=True)
class PooledNull:
    """Scores that pairs of types reach by chance, in many shifted copies of all videos.

    Attributes:
        score: float64 [p, f, f], largest root of twice the log-likelihood ratio over the bands.
        frequent: int64 [f], the types that are tested; the others are too rare.
    """

    score: Floats
    frequent: Ints

    def reversed_in_time(self) -> "PooledNull":
        """The null of every video played backwards: cause and effect change places."""
        return PooledNull(self.score.transpose(0, 2, 1), self.frequent)


def pool_null(
    table: EventTable,
    bands: Bands,
    names: Sequence[tuple[str, ...]],
    nulls: Callable[[], Iterable[NullCounts]],
    *,
    permutations: int,
    min_count: float,
) -> PooledNull:
    """Add up the nulls of the videos of a table.

    A video with fewer copies than asked for is gone through again from its first.

    Args:
        table: all videos joined.
        bands: the lag bins.
        names: types of each video, in the order of ``nulls``.
        nulls: gives the videos' counts, one after the other; called once per block.
        permutations: pooled copies.
        min_count: types with fewer events are left out.
    """
    k = table.num_types
    frequent = np.flatnonzero(np.bincount(table.kind, minlength=k) >= min_count)
    if len(frequent) < 2:  # noqa: PLR2004
        return PooledNull(np.zeros((1, len(frequent), len(frequent))), frequent)
    chosen = np.ix_(frequent, frequent)
    expected = band_sums(expected_histogram(table, bands)[chosen], bands)
    score_of = BandScores(expected)
    place = {table.names[kind]: i for i, kind in enumerate(frequent)}
    local = [np.array([place.get(n, -1) for n in own], dtype=np.int64) for own in names]
    cells = len(frequent) ** 2 * bands.num_bins
    block = int(np.clip(CELLS_PER_BLOCK // cells, 1, permutations))
    step = int(max(1, CELLS_PER_SCORING // (len(frequent) ** 2 * len(bands.first))))
    score = np.empty((permutations, len(frequent), len(frequent)))
    for begin in range(0, permutations, block):
        end = min(begin + block, permutations)
        total = np.zeros((end - begin) * cells, dtype=np.int32)
        for null, kinds in zip(nulls(), local, strict=True):
            _add(total, null, kinds, len(frequent), begin, end)
        dense = total.reshape(end - begin, len(frequent), len(frequent), bands.num_bins)
        for at in range(0, end - begin, step):
            best = score_of(band_sums(dense[at : at + step], bands)).max(axis=-1)
            score[begin + at : begin + at + len(best)] = np.sqrt(best)
    return PooledNull(score, frequent)


def _add(
    total: NDArray[np.int32], null: NullCounts, kinds: Ints, num_kinds: int, begin: int, end: int
) -> None:
    """Add copies ``begin`` to ``end`` of one video; its types are renumbered by ``kinds``."""
    k, bins = null.num_types, null.num_bins
    per_copy = k * k * bins
    if per_copy == 0 or not len(null.cell):
        return
    pair = kinds[:, None] * num_kinds + kinds[None, :]
    absent = (kinds < 0)[:, None] | (kinds < 0)[None, :]
    place = np.where(absent[..., None], -1, pair[..., None] * bins + np.arange(bins)).ravel()
    for to, first, last in _repeats(null.copies, begin, end):
        low, high = np.searchsorted(null.cell, (first * per_copy, last * per_copy))
        copy, own = np.divmod(null.cell[low:high], per_copy)
        at = place[own]
        kept = at >= 0
        at += (copy + (to - begin - first)) * (num_kinds * num_kinds * bins)
        # No cell of one video comes twice, so that plain indexing adds every count.
        total[at[kept]] += null.count[low:high][kept]


def _repeats(copies: int, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(pooled copy, first, last of the video's own) that together make ``begin`` to ``end``."""
    at = begin
    while at < end:
        first = at % copies
        last = min(copies, first + end - at)
        yield at, first, last
        at += last - first
