"""Batches: halved when memory runs out, and grouped by length so that little of them is padding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engines.errors import OutOfMemoryError, UsageError
from engines.runtime.session import Array, Session


class BatchRunner:
    """Runs any number of rows through a session in batches that fit.

    When one does not fit, the batch is halved and stays so for this runner's life: a clip that
    filled memory once would fill it again.
    """

    def __init__(self, session: Session, batch_size: int) -> None:
        """Keep the session.

        Args:
            session: a loaded network.
            batch_size: rows per run to begin with.

        Raises:
            UsageError: a batch size below 1.
        """
        if batch_size < 1:
            msg = f"batch size {batch_size}: it must be at least 1"
            raise UsageError(msg)
        self._session = session
        self.batch_size = batch_size

    def run(self, rows: Mapping[str, Array]) -> dict[str, Array]:
        """Compute all rows.

        Args:
            rows: an array for every input; axis 0 has the same length n >= 1 in each.

        Returns:
            Every output with n rows, in the order given.

        Raises:
            OutOfMemoryError: a single row does not fit.
            EngineError, NotFiniteError: as ``Session.run``.
        """
        count = len(next(iter(rows.values())))
        done: list[dict[str, Array]] = []
        start = 0
        while start < count or not done:
            stop = start + self.batch_size
            result = self._attempt({name: array[start:stop] for name, array in rows.items()})
            if result is not None:
                done.append(result)
                start = stop
                continue
            if self.batch_size == 1:
                msg = f"{self._session.describe().provider}: one row alone does not fit in memory"
                raise OutOfMemoryError(msg)
            self.batch_size //= 2
        return {name: np.concatenate([part[name] for part in done]) for name in done[0]}

    def _attempt(self, batch: Mapping[str, Array]) -> dict[str, Array] | None:
        """None where memory ran out.

        The retry must happen after this frame has ended: while an error is being handled, its
        traceback keeps alive the very tensors that filled the memory.
        """
        try:
            return self._session.run(batch)
        except OutOfMemoryError:
            return None


@dataclass(frozen=True)
class LengthBatch:
    """Items that are computed together, padded to the longest."""

    indices: tuple[int, ...]
    length: int
    """What each is padded to."""
    waste: float
    """Padding as a share of the whole batch, 0 to below 1."""


def batches_by_length(
    lengths: Sequence[int], *, max_items: int, multiple: int = 1, max_waste: float = 0.25
) -> tuple[LengthBatch, ...]:
    """Group items of near length.

    Args:
        lengths: true length of each item, above zero.
        max_items: largest batch.
        multiple: lengths are padded up to a multiple of this, which bounds the number of
            different shapes that a backend must prepare for.
        max_waste: a batch is closed rather than let padding pass this share; a batch of one may
            still waste what ``multiple`` costs.

    Returns:
        Batches that hold every index once, longest items first.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    groups: list[list[int]] = []
    for index in order:
        if groups and len(groups[-1]) < max_items:
            group = groups[-1]
            padded = _round_up(lengths[group[0]], multiple) * (len(group) + 1)
            used = sum(lengths[i] for i in group) + lengths[index]
            if 1 - used / padded <= max_waste:
                group.append(index)
                continue
        groups.append([index])
    found = []
    for group in groups:
        length = _round_up(lengths[group[0]], multiple)
        waste = 1 - sum(lengths[i] for i in group) / (length * len(group))
        found.append(LengthBatch(tuple(group), length, waste))
    return tuple(found)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
