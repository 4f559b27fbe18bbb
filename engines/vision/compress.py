"""Which sampled pictures stand for a video when there is room for only so many.

A picture counts for what it shows beyond its kept neighbours in time: nothing is kept twice
because it lasts long, and nothing is lost because it is short. Key pictures are kept whatever the
budget. The selection is greedy, the next one always being that which its kept neighbours explain
worst (farthest-point selection after Gonzalez, 1985, with distances along time only).
"""

import heapq
from collections.abc import Collection
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engines.errors import UsageError

Vectors = npt.NDArray[np.float32]
_EVENNESS = 1e-3
"""Weight of distance in time, as a share of the whole: where nothing changes, what is kept lies
evenly."""


def keep_salient(vectors: Vectors, budget: int, always: Collection[int] = ()) -> tuple[int, ...]:
    """Indices of the pictures to keep, rising.

    Args:
        vectors: float32 [n, d] of unit length, in order of time.
        budget: how many to keep; ``always`` goes beyond it if it must.
        always: key pictures.

    Raises:
        UsageError: a budget below 1, or a key picture that does not exist.
    """
    count = len(vectors)
    if budget < 1:
        msg = f"budget {budget}: it must be at least 1"
        raise UsageError(msg)
    if any(not 0 <= index < count for index in always):
        msg = f"key pictures {sorted(always)}: there are {count} pictures"
        raise UsageError(msg)
    if count == 0:
        return ()
    kept = sorted(set(always)) or [0]
    gaps: list[tuple[float, int, int, int]] = []
    edges = [-1, *kept, count]
    for low, high in pairwise(edges):
        _push(gaps, vectors, low, high)
    chosen = set(kept)
    while gaps and len(chosen) < budget:
        _, best, low, high = heapq.heappop(gaps)
        chosen.add(best)
        _push(gaps, vectors, low, best)
        _push(gaps, vectors, best, high)
    return tuple(sorted(chosen))


def keep_evenly(count: int, budget: int) -> tuple[int, ...]:
    """The fixed-rate way with as many pictures: the middles of ``budget`` equal parts."""
    wanted = min(count, budget)
    return tuple(int((i + 0.5) * count / wanted) for i in range(wanted))


def _push(gaps: list[tuple[float, int, int, int]], vectors: Vectors, low: int, high: int) -> None:
    """Put the picture between two kept ones that they explain worst on the heap."""
    if high - low <= 1:
        return
    inside = np.arange(low + 1, high)
    nearest = np.full(len(inside), np.inf)
    for edge in (low, high):
        if 0 <= edge < len(vectors):
            nearest = np.minimum(nearest, 1 - vectors[inside] @ vectors[edge])
    apart = np.minimum(inside - low, high - inside) / len(vectors)
    worth = nearest + _EVENNESS * apart
    at = int(worth.argmax())
    heapq.heappush(gaps, (-float(worth[at]), int(inside[at]), low, high))
