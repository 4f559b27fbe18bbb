"""Stage ``read_text``: on-screen text as lines with spans."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from engines.contracts.base import Coverage
from engines.contracts.media import Sample
from engines.contracts.vision import Box, ReadTextParams, TextDocument, TextLine
from engines.vision.label_engine import Picture
from engines.vision.ocr_engine import PaddleTextReader, Reading, TextReader
from engines.vision.picture_change import Cells, Change, StrokeWatch, appears, change, thumbnail
from engines.vision.spans import SampleClock
from engines.vision.text_fragments import in_place, join_fragments
from engines.vision.text_match import line_height, near, same_text
from engines.vision.text_tracks import Track, TrackBook

_CACHED_PICTURES = 8
_NEEDED = {1: 0.9, 2: 0.9, 3: 0.8}
"""Score that a line of so few letters and digits must reach."""
_NEEDED_ODD = 0.95
"""... where it mixes scripts, or is a single glyph of another script than Latin."""
_NEEDED_ONCE = 0.75
"""Score that a line must reach which one sample alone shows."""
_SLACK = 0.9
"""Share of a step after which it counts as over: samples lie on frames, not on the clock."""
_HUGE = 0.4
"""Share of the picture's height above which so few glyphs are taken for texture."""


class SampleSource(Protocol):
    """The sampled pictures of one asset."""

    @property
    def samples(self) -> Sequence[Sample]:
        """In order of presentation."""
        ...

    def read(self, name: str) -> Picture:
        """The picture of a sample: uint8 [h, w, 3] RGB at display aspect."""
        ...


def read_text(
    pictures: SampleSource,
    time_base_num: int,
    time_base_den: int,
    params: ReadTextParams,
    *,
    end_pts: int | None = None,
    reader: TextReader | None = None,
) -> TextDocument:
    """Read what is written in the picture, each line once, with the span in which it stands.

    Pictures are read at a coarse step and where something appears; pictures that look the same
    are not read again. Where a line stands in one looked-at sample and not in the next, the
    samples between are bisected by reading at its known place only.

    Args:
        pictures: see ``SampleSource``.
        time_base_num: seconds per tick of the samples' times, numerator.
        time_base_den: its denominator.
        params: see ``ReadTextParams``.
        end_pts: where the picture ends; a line in the last sample stands so far.
        reader: None takes the packaged model.

    Raises:
        ModelMissingError, ModelHashError: weights not there, or not the pinned bytes.
        EngineError: a network failed.
    """
    if not pictures.samples:
        return _nothing()
    reader = reader or _reader(params)
    clock = SampleClock(pictures.samples, time_base_num, time_base_den, end_pts)
    scan = _Scan(_Cache(pictures), clock, reader, params)
    tracks = [
        track
        for track in join_fragments(scan.tracks())
        if not is_noise(track, scan.height(track), params.min_score)
    ]
    lines = [_line(track, scan, clock) for track in tracks]
    lines.sort(key=lambda line: (line.span.start_pts, line.box.y, line.box.x))
    whole = clock.span(0, len(pictures.samples) - 1)
    return TextDocument(
        texts=tuple(lines),
        model=getattr(reader, "name", type(reader).__name__),
        coverage=Coverage(covered_s=whole.duration_s, skipped_s=0.0),
    )


def is_noise(track: Track, picture_height: int, min_score: float) -> bool:
    """Whether a track is texture that looks like letters.

    The fewer glyphs, the more often edges and corners are taken for them, above all where they
    fill the picture or mix scripts: so the fewer there are, the surer the reading must be.
    """
    best = track.best()
    letters = [c for c in best.text if c.isalnum()]
    if not letters:
        return True
    needed = max(min_score, _NEEDED.get(len(letters), 0.0))
    if len(track.readings) == 1 and track.first_seen == track.last_seen:
        needed = max(needed, _NEEDED_ONCE)
    mixed = len({c.isascii() for c in letters}) > 1
    if len(letters) in _NEEDED and (mixed or (len(letters) == 1 and not letters[0].isascii())):
        needed = max(needed, _NEEDED_ODD)
    huge = line_height(best.quad) > _HUGE * picture_height
    return best.score < needed or (huge and len(letters) in _NEEDED)


class _Cache:
    """Keeps the last few decoded pictures: bisection comes back to them."""

    def __init__(self, source: SampleSource) -> None:
        self._source = source
        self._pictures: OrderedDict[int, Picture] = OrderedDict()

        self.sizes: dict[int, tuple[int, int]] = {}
        """Height and width of every picture read so far."""

    def __len__(self) -> int:
        return len(self._source.samples)

    def picture(self, index: int) -> Picture:
        if index in self._pictures:
            self._pictures.move_to_end(index)
            return self._pictures[index]
        picture = self._source.read(self._source.samples[index].name)
        self._pictures[index] = picture
        self.sizes[index] = (picture.shape[0], picture.shape[1])
        if len(self._pictures) > _CACHED_PICTURES:
            self._pictures.popitem(last=False)
        return picture


class _Scan:
    """One pass over the samples, and the bisection that follows."""

    def __init__(
        self, cache: _Cache, clock: SampleClock, reader: TextReader, params: ReadTextParams
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._reader = reader
        self._params = params
        self._full: dict[int, list[Reading]] = {}

    def size(self, index: int) -> tuple[int, int]:
        """Height and width of a sample that was looked at."""
        return self._cache.sizes[index]

    def height(self, track: Track) -> int:
        """Height of the pictures that show a line."""
        return self.size(track.first_seen)[0]

    def tracks(self) -> list[Track]:
        """Every line, with the looked-at samples around it."""
        book = TrackBook()
        looked: tuple[int, Cells] | None = None
        before: Cells | None = None
        step: Change | None = None
        shown = -1
        sudden = False
        watch = StrokeWatch()
        for index in range(len(self._cache)):
            picture = self._cache.picture(index)
            small = thumbnail(picture)
            last_step, step = step, None if before is None else change(small, before)
            # Kept until it has been looked at: a line may come right after a look and be gone
            # before the next one.
            sudden |= watch.appear(picture)
            sudden |= step is not None and appears(step, last_step, self._params.onset)
            if looked is not None and change(small, looked[1]).largest <= self._params.unchanged:
                book.same_picture(index)
                shown = index
                sudden = False
            elif looked is None or self._is_due(index, looked[0], sudden=sudden):
                book.look(index, self._readings(book, index), shown)
                looked = (index, small)
                shown = index
                sudden = False
            before = small
        return book.tracks

    def _is_due(self, index: int, looked: int, *, sudden: bool) -> bool:
        if index == len(self._cache) - 1:
            return True
        passed = self._clock.seconds(index) - self._clock.seconds(looked)
        if passed >= _SLACK * self._params.step_s:
            return True
        return sudden and passed >= _SLACK * self._params.onset_step_s

    def _readings(self, book: TrackBook, index: int) -> list[Reading]:
        """What the sample shows, with lines that the detector missed this time."""
        picture = self._cache.picture(index)
        readings = self._reader.read(picture)
        self._full[index] = readings
        missing = book.unmatched(readings)
        again = self._reader.read_at(picture, [track.newest.quad for track in missing])
        return readings + [
            reading
            for track, reading in zip(missing, again, strict=True)
            if same_text(track.best(), reading)
            and not any(near(reading.quad, other.quad) for other in readings)
        ]

    def edges(self, track: Track) -> tuple[int, int]:
        """First and last sample that show the line."""
        first, absent = track.first_seen, track.absent_before
        while first - absent > 1:
            middle = (first + absent) // 2
            if self._stands(track, track.earliest[1], middle):
                first = middle
            else:
                absent = middle
        last, absent = track.last_seen, track.absent_after or track.last_seen + 1
        while absent - last > 1:
            middle = (last + absent) // 2
            if self._stands(track, track.latest, middle):
                last = middle
            else:
                absent = middle
        return first, last

    def _stands(self, track: Track, known: Reading, index: int) -> bool:
        picture = self._cache.picture(index)
        if track.moves:
            if index not in self._full:
                self._full[index] = self._reader.read(picture)
            return any(same_text(known, reading) for reading in self._full[index])
        best = track.best()
        quads = [known.quad, best.quad] if track.fragments else [known.quad]
        return any(
            same_text(known, reading)
            or same_text(best, reading)
            or (bool(track.fragments) and in_place(reading, best))
            for reading in self._reader.read_at(picture, quads)
        )


def _line(track: Track, scan: _Scan, clock: SampleClock) -> TextLine:
    best = track.best()
    first, last = scan.edges(track)
    sample = next(i for i, reading in track.readings if reading is best)
    height, width = scan.size(sample)
    return TextLine(
        span=clock.span(first, last),
        text=best.text,
        confidence=best.score,
        box=_box(best, width, height),
        flags=("counter",) if track.counter else (),
    )


def _box(reading: Reading, width: int, height: int) -> Box:
    low = np.clip(reading.quad.min(axis=0) / (width, height), 0, 1)
    high = np.clip(reading.quad.max(axis=0) / (width, height), 0, 1)
    return Box(
        x=float(low[0]),
        y=float(low[1]),
        w=float(min(high[0] - low[0], 1 - low[0])),
        h=float(min(high[1] - low[1], 1 - low[1])),
    )


def open_reader(params: ReadTextParams) -> PaddleTextReader:
    """The recogniser that ``params`` name, loaded anew."""
    return PaddleTextReader(
        backend=params.backend,
        threads=params.threads,
        device=params.device,
        min_side=params.min_side,
        max_side=params.max_side,
    )


_reader = lru_cache(maxsize=1)(open_reader)
"""Stays loaded between calls."""


def _nothing() -> TextDocument:
    return TextDocument(
        texts=(),
        model="none",
        coverage=Coverage(covered_s=0.0, skipped_s=0.0, reason="no sampled pictures"),
    )
