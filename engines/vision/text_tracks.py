"""Lines of text followed from one looked-at sample to the next."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from engines.vision.ocr_engine import Quad, Reading
from engines.vision.text_match import (
    folded,
    line_height,
    near,
    same_height,
    same_pattern,
    same_text,
)

_MIN_MOVING_LETTERS = 4
_COUNTER_READINGS = 3


@dataclass(eq=False)
class Track:
    """One line while it stands."""

    readings: list[tuple[int, Reading]]
    """Sample index and what was read there, in order; samples that looked the same are left out."""
    absent_before: int
    """Latest sample before the first reading in which the line was not found; -1 for none."""
    last_seen: int
    """Latest sample known to show it."""
    absent_after: int | None = None
    """First looked-at sample without it; None while it stands."""
    fragments: list[tuple[int, Reading]] = field(default_factory=list)
    """Readings of parts of the line, sample index and reading, in order."""
    counter: bool = False
    """One of several readings that follow each other in one place and differ in digits alone."""

    @property
    def first_seen(self) -> int:
        """Earliest sample known to show it."""
        return self.earliest[0]

    @property
    def earliest(self) -> tuple[int, Reading]:
        """The first reading, of the line or of a part of it, with its sample."""
        return min((self.readings[0], *self.fragments[:1]), key=lambda entry: entry[0])

    @property
    def latest(self) -> Reading:
        """The last reading, of the line or of a part of it."""
        return max((self.readings[-1], *self.fragments[-1:]), key=lambda entry: entry[0])[1]

    @property
    def newest(self) -> Reading:
        """The latest reading."""
        return self.readings[-1][1]

    @property
    def moves(self) -> bool:
        """Whether the line changed its place while it stood."""
        first, newest = self.readings[0][1].quad, self.newest.quad
        return float(abs(first - newest).max()) > line_height(first) / 2

    def best(self) -> Reading:
        """The reading to report: the text with most votes by score, in its surest form."""
        votes: defaultdict[str, float] = defaultdict(float)
        for _, reading in self.readings:
            votes[folded(reading.text)] += reading.score
        winner = max(votes, key=lambda text: votes[text])
        return max((r for _, r in self.readings if folded(r.text) == winner), key=lambda r: r.score)

    def take(self, piece: "Track") -> None:
        """Make another track's readings fragments of this one, which stands as long as both."""
        if piece.first_seen < self.first_seen:
            self.absent_before = piece.absent_before
        if piece.last_seen > self.last_seen:
            self.last_seen, self.absent_after = piece.last_seen, piece.absent_after
        found = [*self.fragments, *piece.fragments, *piece.readings]
        self.fragments = sorted(found, key=lambda entry: entry[0])

    def resembles(self, reading: Reading) -> bool:
        """Whether a reading is this line, in its place or moved."""
        if not any(same_text(known, reading) for _, known in self.readings[-3:]):
            return False
        newest = self.newest.quad
        moved = len(folded(reading.text)) >= _MIN_MOVING_LETTERS
        return near(newest, reading.quad) or (moved and same_height(newest, reading.quad))


@dataclass
class TrackBook:
    """All lines of one video, fed with the readings of one sample after the other."""

    tracks: list[Track] = field(default_factory=list)
    _standing: list[Track] = field(default_factory=list)
    _counters: dict[int, list[Track]] = field(default_factory=dict)
    """By the identity of a counter's latest state: all its states so far."""

    def standing(self) -> list[Track]:
        """Lines that the latest looked-at sample shows."""
        return list(self._standing)

    def unmatched(self, readings: Sequence[Reading]) -> list[Track]:
        """Standing lines that none of these readings continues."""
        matched = {id(track) for track, _ in self._match(readings)[0]}
        return [track for track in self._standing if id(track) not in matched]

    def look(self, index: int, readings: Sequence[Reading], absent_before: int) -> None:
        """Take in what sample ``index`` shows.

        Args:
            index: position among the samples, rising from call to call.
            readings: all lines found there.
            absent_before: latest sample before it whose readings are in the book; -1 for none.
        """
        pairs, new = self._match(readings)
        kept = []
        for track, reading in pairs:
            track.readings.append((index, reading))
            track.last_seen = index
            kept.append(track)
        for track in self._standing:
            if track not in kept:
                track.absent_after = index
        gone = [track for track in self._standing if track.absent_after is not None]
        for reading in new:
            track = Track([(index, reading)], absent_before, index)
            self.tracks.append(track)
            kept.append(track)
            self._mark_counter(gone, track)
        self._standing = kept

    def same_picture(self, index: int) -> None:
        """Sample ``index`` looks as the latest looked-at one: all its lines still stand."""
        for track in self._standing:
            track.last_seen = index

    def _match(
        self, readings: Sequence[Reading]
    ) -> tuple[list[tuple[Track, Reading]], list[Reading]]:
        """Pairs of standing line and reading, and readings that are new; nearest pairs first."""
        options = sorted(
            (
                (_distance(track.newest.quad, reading.quad), t, r)
                for t, track in enumerate(self._standing)
                for r, reading in enumerate(readings)
                if track.resembles(reading)
            ),
        )
        used_tracks: dict[int, int] = {}
        used_readings: set[int] = set()
        for _, t, r in options:
            if t not in used_tracks and r not in used_readings:
                used_tracks[t] = r
                used_readings.add(r)
        pairs = [(self._standing[t], readings[r]) for t, r in used_tracks.items()]
        return pairs, [x for r, x in enumerate(readings) if r not in used_readings]

    def _mark_counter(self, gone: Sequence[Track], new: Track) -> None:
        for old in gone:
            if near(old.newest.quad, new.newest.quad) and same_pattern(
                old.newest.text, new.newest.text
            ):
                self._counters[id(new)] = [*self._counters.get(id(old), [old]), new]
                chain = self._counters[id(new)]
                if len(chain) >= _COUNTER_READINGS:
                    for track in chain:
                        track.counter = True


def _distance(a: Quad, b: Quad) -> float:
    return float(abs(a.mean(axis=0) - b.mean(axis=0)).max())
