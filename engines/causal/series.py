"""Events of one or many videos as arrays on one long clock, and the placebo copies of them.

Videos are laid end to end with a gap wider than the longest lag, so that one sorted array
serves all and no pair ever crosses from one video into another. Beside the real clock there is
a *covered* clock that runs only while the video was observed: shifting events on it leaves
spans that nobody looked at alone.
"""

import hashlib
from collections import Counter
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
        skipped_s: seconds that were not.
    """

    video: str
    events: Sequence[Event]
    observed_s: Sequence[tuple[float, float]]
    skipped_s: float = 0.0


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

    def of_type(self, kind: int) -> Floats:
        """Sorted times of one type."""
        return np.asarray(self.time[self.kind == kind])


@dataclass(frozen=True)
class EventTimes:
    """What mining needs of one video's timeline: a few arrays instead of documents.

    Attributes:
        names: its types, sorted.
        time: float64 [n], seconds on the asset clock, sorted.
        kind: int64 [n], index into ``names``.
        ordinal: int64 [n], index of the event in the timeline.
        error: float64 [k], largest time error of the type in seconds.
        spans: float64 [s, 2], observed spans in seconds, sorted and apart.
        skipped_s: seconds that were not decoded.
    """

    names: tuple[str, ...]
    time: Floats
    kind: Ints
    ordinal: Ints
    error: Floats
    spans: Floats
    skipped_s: float = 0.0

    def fingerprint(self) -> bytes:
        """SHA-256 of what happened and when: an order of videos that no listing changes."""
        digest = hashlib.sha256("\0".join(self.names).encode())
        for array in (self.time, self.kind, self.error, self.spans):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()


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


def event_times(item: VideoEvents) -> EventTimes:
    """The usable events of one video.

    Flagged events are left out, events of one type that start within ``RESOLUTION_S`` count
    once, and events outside the observed spans are dropped. The result does not depend on the
    order of the events.
    """
    spans = _merge_spans(item.observed_s)
    names = tuple(sorted({e.type for e in item.events if _usable(e)}))
    index = {name: i for i, name in enumerate(names)}
    error = np.zeros(len(names))
    rows: list[tuple[float, int, int]] = []
    for ordinal, event in enumerate(item.events):
        span = event.span
        # As ``span.start_s``, without building a fraction for each of many thousand events.
        start = span.start_pts * span.time_base_num / span.time_base_den
        if _usable(event) and any(a <= start <= b for a, b in spans):
            kind = index[event.type]
            error[kind] = max(error[kind], event.time_error_s)
            rows.append((start, kind, ordinal))
    rows.sort()
    kept: list[tuple[float, int, int]] = []
    last = np.full(len(names), -np.inf)
    for row in rows:
        if row[0] - last[row[1]] > RESOLUTION_S:
            kept.append(row)
            last[row[1]] = row[0]
    return EventTimes(
        names=names,
        time=np.array([r[0] for r in kept], dtype=np.float64),
        kind=np.array([r[1] for r in kept], dtype=np.int64),
        ordinal=np.array([r[2] for r in kept], dtype=np.int64),
        error=error,
        spans=np.array(spans, dtype=np.float64).reshape(-1, 2),
        skipped_s=item.skipped_s,
    )


def most_frequent(videos: Sequence[EventTimes], max_types: int) -> tuple[list[EventTimes], int]:
    """The events of the ``max_types`` types that occur most, and how many types were left out.

    The cost of mining grows with the square of the types; a thousand labels, each seen twice,
    say nothing about causes.
    """
    counts: Counter[str] = Counter()
    for video in videos:
        number = np.bincount(video.kind, minlength=len(video.names))
        counts.update(dict(zip(video.names, number.tolist(), strict=True)))
    if len(counts) <= max_types:
        return list(videos), 0
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    kept = set(ranked[:max_types])
    return [_only(video, kept) for video in videos], len(counts) - max_types


def _only(video: EventTimes, kept: set[str]) -> EventTimes:
    types = np.array([i for i, name in enumerate(video.names) if name in kept], dtype=np.int64)
    inside = np.isin(video.kind, types)
    return replace(
        video,
        names=tuple(video.names[i] for i in types),
        time=video.time[inside],
        kind=np.searchsorted(types, video.kind[inside]),
        ordinal=video.ordinal[inside],
        error=video.error[types],
    )


def build_table(videos: Sequence[VideoEvents], *, gap_s: float) -> EventTable:
    """As ``join`` for timelines."""
    return join([event_times(video) for video in videos], gap_s=gap_s)


def join(videos: Sequence[EventTimes], *, gap_s: float) -> EventTable:
    """Lay the videos out on one clock.

    Args:
        videos: in the order in which the table numbers them; at least one.
        gap_s: empty time between two videos, longer than the longest lag.
    """
    names = tuple(sorted({name for v in videos for name in v.names}))
    index = {name: i for i, name in enumerate(names)}
    error = np.zeros(len(names))
    offset = np.zeros(len(videos))
    kinds: list[Ints] = []
    position = 0.0
    for number, video in enumerate(videos):
        local = np.array([index[name] for name in video.names], dtype=np.int64)
        np.maximum.at(error, local, video.error)
        kinds.append(local[video.kind])
        first, last = (video.spans[0, 0], video.spans[-1, 1]) if len(video.spans) else (0.0, 0.0)
        offset[number] = position - first
        position += float(last - first) + gap_s
    events = [len(v.time) for v in videos]
    segments = [len(v.spans) for v in videos]
    spans = np.concatenate([v.spans for v in videos])
    covered = np.concatenate([[0.0], np.cumsum(spans[:, 1] - spans[:, 0])])
    ends = np.concatenate([[0], np.cumsum(segments)])
    return EventTable(
        names=names,
        time=np.concatenate([v.time for v in videos]) + np.repeat(offset, events),
        kind=np.concatenate(kinds),
        video=np.repeat(np.arange(len(videos)), events),
        ordinal=np.concatenate([v.ordinal for v in videos]),
        error=error,
        seg_start=spans[:, 0] + np.repeat(offset, segments),
        seg_covered=covered,
        seg_video=np.repeat(np.arange(len(videos)), segments),
        video_covered=covered[ends],
        offset=offset,
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
    length = np.maximum(np.diff(table.video_covered), 1e-9)
    train = table.video * table.num_types + table.kind
    order = np.argsort(train, kind="stable")
    inside = (table.covered(table.time) - table.video_covered[table.video])[order]
    _, first, member, number = np.unique(
        train[order], return_index=True, return_inverse=True, return_counts=True
    )
    whole = length[table.video[order]]
    following = np.append(inside[1:], 0.0)
    last = first + number - 1
    following[last] = inside[first] + whole[last]
    pauses = (following - inside)[np.lexsort((rng.random(len(inside)), member))]
    run = np.cumsum(pauses)
    run -= np.repeat(run[first] - pauses[first], number)
    moved = np.mod(run + rng.random(len(first))[member] * whole, whole)
    time = table.time.copy()
    time[order] = table.uncovered(table.video_covered[table.video[order]] + moved)
    return _with_events(table, time, table.kind)


def time_reversed(table: EventTable) -> EventTable:
    """Each video played backwards on its covered clock."""
    begin = table.video_covered[table.video]
    end = table.video_covered[table.video + 1]
    inside = begin + end - table.covered(table.time)
    return _with_events(table, table.uncovered(np.minimum(inside, end - 1e-9)), table.kind)
