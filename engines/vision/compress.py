"""Which sampled pictures stand for a video when there is room for only so many.

Each picture is stood for by the kept one that is most like it. Those are kept that make the sum of
squared unlikenesses least: long sameness needs one picture however long it lasts, and a short
moment that nothing else resembles earns its own. Key pictures are kept whatever the budget. The
selection is greedy, which comes within 37 % of the best for sums of this kind (Nemhauser, Wolsey
and Fisher, 1978), and lazy: what one more picture would gain only falls while others are kept, so
old values are bounds (Minoux, 1978).
"""

import heapq
from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt

from engines.errors import UsageError

Vectors = npt.NDArray[np.float32]
_REACH = 256
"""A picture stands for others at most so many places away: cost grows with the length alone."""
_ALONE = 1.0
"""What a picture costs for which no kept one stands: as much as one that has nothing in common."""
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
    cover = _Cover(vectors)
    chosen = set(always)
    for index in chosen:
        cover.keep(index)
    waiting = [(-cover.gain(index), index) for index in range(count) if index not in chosen]
    heapq.heapify(waiting)
    while waiting and len(chosen) < budget:
        _, index = heapq.heappop(waiting)
        gain = cover.gain(index)
        if waiting and gain < -waiting[0][0]:
            heapq.heappush(waiting, (-gain, index))
            continue
        cover.keep(index)
        chosen.add(index)
    return tuple(sorted(chosen))


def keep_evenly(count: int, budget: int) -> tuple[int, ...]:
    """The fixed-rate way with as many pictures: the middles of ``budget`` equal parts."""
    wanted = min(count, budget)
    return tuple(int((i + 0.5) * count / wanted) for i in range(wanted))


class _Cover:
    """What each picture costs with those kept so far."""

    def __init__(self, vectors: Vectors) -> None:
        self._costs = np.full(len(vectors), _ALONE, np.float32)
        self._with = list(_bands(vectors))
        """By picture: those that it could stand for, and what each would cost then."""

    def gain(self, index: int) -> float:
        """By how much the sum of costs would fall if this picture were kept too."""
        near, costs = self._with[index]
        return float(np.maximum(self._costs[near] - costs, 0).sum(dtype=np.float64))

    def keep(self, index: int) -> None:
        near, costs = self._with[index]
        self._costs[near] = np.minimum(self._costs[near], costs)


def _bands(vectors: Vectors) -> Iterator[tuple[slice, Vectors]]:
    count = len(vectors)
    for start in range(0, count, _REACH):
        stop = min(start + _REACH, count)
        low, high = max(0, start - _REACH), min(count, stop + _REACH)
        unlike = np.maximum(1.0 - vectors[start:stop] @ vectors[low:high].T, 0.0)
        away = np.abs(np.arange(start, stop)[:, None] - np.arange(low, high)) / count
        costs = (np.square(unlike) + _EVENNESS * away).astype(np.float32)
        for index in range(start, stop):
            near = slice(max(0, index - _REACH), min(count, index + _REACH + 1))
            yield near, costs[index - start, near.start - low : near.stop - low].copy()
