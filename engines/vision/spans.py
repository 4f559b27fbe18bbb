"""From samples to spans: when something seen in some samples stood there."""

from collections.abc import Sequence
from dataclasses import dataclass

from engines.contracts.media import Sample
from engines.contracts.time import TimeSpan


@dataclass(frozen=True)
class SampleClock:
    """The times of all samples of one asset, in order of presentation."""

    samples: Sequence[Sample]
    time_base_num: int
    time_base_den: int
    end_pts: int | None = None
    """Where the picture ends; None means with the last sample."""

    def span(self, first: int, last: int) -> TimeSpan:
        """Span of what was seen in samples ``first`` to ``last`` and not in their neighbours.

        The true change lies somewhere between a sample that has it and one that has not: the
        middle halves the largest possible error. At either end of the asset there is no
        neighbour that lacks it, so the span goes to the end.
        """
        start = self.samples[first].pts
        if first > 0:
            start = _middle(self.samples[first - 1].pts, start)
        if last + 1 < len(self.samples):
            end = _middle(self.samples[last].pts, self.samples[last + 1].pts)
        else:
            end = max(self.samples[last].end_pts, self.end_pts or 0)
        return TimeSpan(
            start_pts=start,
            end_pts=max(start, end),
            time_base_num=self.time_base_num,
            time_base_den=self.time_base_den,
        )

    def seconds(self, index: int) -> float:
        """Presentation time of a sample on the asset clock."""
        return self.samples[index].pts * self.time_base_num / self.time_base_den


def _middle(before: int, after: int) -> int:
    """Rounded up: a change between two adjacent frames belongs to the later one."""
    return before - (before - after) // 2
