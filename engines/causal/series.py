"""Events of one or many videos as arrays on one long clock, and the placebo copies of them.

Videos are laid end to end with a gap wider than the longest lag, so that one sorted array
serves all and no pair ever crosses from one video into another. Beside the real clock there is
a *covered* clock that runs only while the video was observed: shifting events on it leaves
spans that nobody looked at alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engines.contracts.causal import Event

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RESOLUTION_S = 0.02
"""Starts of one type closer than this are one occurrence."""
SIMULTANEOUS_S = 0.011
"""Starts closer than this have no order: about half a frame at 50 frames/s."""

BENIGN_FLAGS = ("cleaned:",)
"""Flags that start so describe a fact; any other flag marks it as not to be trusted."""


@dataclass(frozen=True)
class VideoEvents:
    """The timeline of one video.

    Attributes:
        video: identity, only for telling videos apart.
        events: in any order; an event's index here is its ordinal.
        observed_s: spans [start, end) in seconds on the asset clock that were decoded.
    """

    video: str
    events: Sequence[Event]
    observed_s: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class EventTable:
    """All usable events, sorted by time, then type.

    Attributes:
        names: type names, sorted.
        time: float64 [n], seconds on the long clock.
        kind: int64 [n], index into ``names``.
        video: int64 [n].
        ordinal: int64 [n], index of the event in its video's sequence.
        error: float64 [k], largest time error of the type in seconds.
        seg_start: float64 [s], observed segments on the long clock.
        seg_covered: float64 [s + 1], where each begins on the covered clock; last is the end.
        seg_video: int64 [s].
        video_covered: float64 [v + 1], where each video begins on the covered clock.
        offset: float64 [v], long clock minus asset clock.
    """

    names: tuple[str, ...]
    time: Floats
    kind: Ints
    video: Ints
    ordinal: Ints
    error: Floats
    seg_start: Floats
    seg_covered: Floats
    seg_video: Ints
    video_covered: Floats
    offset: Floats

    @property
    def num_types(self) -> int:
        """How many event types there are."""
        return len(self.names)

    @property
    def num_videos(self) -> int:
        """How many videos there are, with or without events."""
        return len(self.offset)

    @property
    def total_s(self) -> float:
        """Observed seconds over all videos."""
        return float(self.seg_covered[-1])

    def counts(self) -> Ints:
        """Events by video and type, int64 [v, k]."""
        flat = np.bincount(
            self.video * self.num_types + self.kind, minlength=self.num_videos * self.num_types
        )
        return flat.reshape(self.num_videos, self.num_types).astype(np.int64)

    def covered(self, time: Floats) -> Floats:
        """Long clock to covered clock; inside a gap the time of its beginning."""
        seg = np.maximum(np.searchsorted(self.seg_start, time, side="right") - 1, 0)
        length = np.diff(self.seg_covered)[seg]
        return np.asarray(self.seg_covered[seg] + np.clip(time - self.seg_start[seg], 0.0, length))

    def uncovered(self, covered: Floats) -> Floats:
        """Covered clock to long clock."""
        seg = np.searchsorted(self.seg_covered, covered, side="right") - 1
        seg = np.clip(seg, 0, len(self.seg_start) - 1)
        return np.asarray(self.seg_start[seg] + (covered - self.seg_covered[seg]))

    def is_observed(self, time: Floats) -> NDArray[np.bool_]:
        """Whether each time lies in an observed segment."""
        seg = np.searchsorted(self.seg_start, time, side="right") - 1
        safe = np.maximum(seg, 0)
        inside = time - self.seg_start[safe] < np.diff(self.seg_covered)[safe]
        return np.asarray((seg >= 0) & inside)

    def only(self, kinds: Ints) -> "EventTable":
        """The same clock and type names with the events of some types alone."""
        kept = np.isin(self.kind, kinds)
        return replace(
            self,
            time=self.time[kept],
            kind=self.kind[kept],
            video=self.video[kept],
            ordinal=self.ordinal[kept],
        )

    def of_type(self, kind: int) -> Floats:
        """Sorted times of one type."""
        return np.asarray(self.time[self.kind == kind])


def _usable(event: Event) -> bool:
    return all(flag.startswith(BENIGN_FLAGS) for flag in event.flags)


def _merge_spans(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def build_table(videos: Sequence[VideoEvents], *, gap_s: float) -> EventTable:
    """Lay the videos out on one clock.

    Flagged events are left out, events of one type that start within ``RESOLUTION_S`` count
    once, and events
    outside the observed spans are dropped. The result does not depend on the order of the
    events inside a video.

    Args:
        videos: at least one; each with observed spans in seconds.
        gap_s: empty time between two videos, longer than the longest lag.
    """
    names = tuple(sorted({e.type for v in videos for e in v.events if _usable(e)}))
    index = {name: i for i, name in enumerate(names)}
    error = np.zeros(len(names))
    rows: list[tuple[float, int, int, int]] = []
    seg_start: list[float] = []
    seg_length: list[float] = []
    seg_video: list[int] = []
    offset: list[float] = []
    position = 0.0
    for v, item in enumerate(videos):
        spans = _merge_spans(item.observed_s)
        shift = position - (spans[0][0] if spans else 0.0)
        offset.append(shift)
        for start, end in spans:
            seg_start.append(start + shift)
            seg_length.append(end - start)
            seg_video.append(v)
        position += (spans[-1][1] - spans[0][0] if spans else 0.0) + gap_s
        for ordinal, event in enumerate(item.events):
            start = event.span.start_s
            if _usable(event) and any(a <= start <= b for a, b in spans):
                kind = index[event.type]
                error[kind] = max(error[kind], event.time_error_s)
                rows.append((start + shift, kind, v, ordinal))
    return _assemble(names, rows, error, (seg_start, seg_length, seg_video), offset)


def _assemble(
    names: tuple[str, ...],
    rows: list[tuple[float, int, int, int]],
    error: Floats,
    segments: tuple[list[float], list[float], list[int]],
    offset: list[float],
) -> EventTable:
    rows.sort()
    kept: list[tuple[float, int, int, int]] = []
    last = np.full(len(names), -np.inf)
    for row in rows:
        if row[0] - last[row[1]] > RESOLUTION_S:
            kept.append(row)
            last[row[1]] = row[0]
    seg_start, seg_length, seg_video = segments
    covered = np.concatenate([[0.0], np.cumsum(seg_length)])
    of_video = np.asarray(seg_video, dtype=np.int64)
    firsts = np.searchsorted(of_video, np.arange(len(offset) + 1), side="left")
    return EventTable(
        names=names,
        time=np.array([r[0] for r in kept], dtype=np.float64),
        kind=np.array([r[1] for r in kept], dtype=np.int64),
        video=np.array([r[2] for r in kept], dtype=np.int64),
        ordinal=np.array([r[3] for r in kept], dtype=np.int64),
        error=error,
        seg_start=np.asarray(seg_start, dtype=np.float64),
        seg_covered=covered,
        seg_video=of_video,
        video_covered=covered[firsts],
        offset=np.asarray(offset, dtype=np.float64),
    )


def _with_events(table: EventTable, time: Floats, kind: Ints) -> EventTable:
    order = np.lexsort((kind, time))
    return replace(
        table,
        time=time[order],
        kind=kind[order],
        video=table.video[order],
        ordinal=table.ordinal[order],
    )


def shift_times(table: EventTable, shift: Floats) -> Floats:
    """Event times after a circular shift on each video's covered clock.

    Args:
        table: the events.
        shift: float64 [..., v, k], fraction of the covered length for each video and type.

    Returns:
        float64 [..., n], long-clock times in the order of ``table.time``.
    """
    begin = table.video_covered[table.video]
    length = np.maximum(table.video_covered[table.video + 1] - begin, 1e-9)
    moved = table.covered(table.time) - begin + shift[..., table.video, table.kind] * length
    return table.uncovered(begin + np.mod(moved, length))


def draw_shifts(
    table: EventTable, copies: int, keep_away_s: float, rng: np.random.Generator
) -> Floats:
    """Random circular shifts, float64 [copies, v, k], as fractions of each video's length.

    Shifts of less than ``keep_away_s`` (at most a quarter of the video) are left out: they
    would leave in the null just those pairs that it must not have.
    """
    length = np.maximum(np.diff(table.video_covered), 1e-9)
    away = np.minimum(keep_away_s / length, 0.25)[:, None]
    drawn = rng.random((copies, table.num_videos, table.num_types))
    return away + drawn * (1.0 - 2.0 * away)


def shuffled(table: EventTable, keep_away_s: float, rng: np.random.Generator) -> EventTable:
    """Each type of each video shifted on its own: rhythms stay, relations go."""
    shift = draw_shifts(table, 1, keep_away_s, rng)[0]
    return _with_events(table, shift_times(table, shift), table.kind)


def substituted(table: EventTable, rng: np.random.Generator) -> EventTable:
    """Each type of each video replaced by events of the same number and pauses, order anew.

    The pauses between occurrences (the one around the end included) are dealt out again from
    a random start, so that bursts and rhythms of a kind remain and every relation goes.
    """
    begin, end = table.video_covered[table.video], table.video_covered[table.video + 1]
    inside = table.covered(table.time) - begin
    time = table.time.copy()
    train = table.video * table.num_types + table.kind
    for label in np.unique(train):
        at = np.flatnonzero(train == label)
        length = float(end[at[0]] - begin[at[0]])
        pauses = np.diff(inside[at], append=inside[at[0]] + length)
        moved = np.cumsum(rng.permutation(pauses)) + rng.random() * length
        time[at] = table.uncovered(begin[at] + np.mod(moved, max(length, 1e-9)))
    return _with_events(table, time, table.kind)


def time_reversed(table: EventTable) -> EventTable:
    """Each video played backwards on its covered clock."""
    begin = table.video_covered[table.video]
    end = table.video_covered[table.video + 1]
    inside = begin + end - table.covered(table.time)
    return _with_events(table, table.uncovered(np.minimum(inside, end - 1e-9)), table.kind)
