"""Pieces of a line that were read where the rest of it could not be: not lines of their own.

A line that fades, scrolls in or lies over something as bright as itself is read in part, now these
letters and now those. Such a reading becomes a track; here it is given to the track that has the
whole line, whose time it lengthens. Nothing is joined that could be another text in the same
place: the letters must be part of the whole, and lie where they lie in the whole.
"""

from collections.abc import Sequence

import numpy as np

from engines.vision.ocr_engine import Reading
from engines.vision.text_match import folded, line_height, same_height
from engines.vision.text_tracks import Track

_MIN_LETTERS = 3
_LETTERS_PER_ERROR = 5
_SAME_ROW = 0.6
_FAR = 4.0
"""Line heights that a line may move up or down between two looks."""
_MORE_SURELY = 0.5
"""Readings at full score by which a piece may be seen more often than the whole."""
_OFF_PLACE = 0.15
"""Share of the line's length by which a piece may lie off its place."""


def join_fragments(tracks: Sequence[Track]) -> list[Track]:
    """Tracks without those that are pieces of another; the others know theirs.

    Args:
        tracks: all of one video.
    """
    entries = sorted((_Entry(track) for track in tracks), key=lambda e: (len(e.text), e.score))
    gone = np.array([entry.track.counter for entry in entries], bool)
    joined = True
    while joined:
        # Again: a line that has taken a piece stands longer and meets others.
        joined = False
        first = np.array([entry.track.first_seen for entry in entries])
        last = np.array([entry.track.last_seen for entry in entries])
        for at in np.flatnonzero(~gone):
            piece = entries[at]
            meet = (first <= piece.after) & (last >= piece.track.absent_before) & ~gone
            meet[: at + 1] = False
            wholes = [entries[i] for i in np.flatnonzero(meet) if _belongs(piece, entries[i])]
            if wholes:
                max(wholes, key=lambda whole: whole.score).track.take(piece.track)
                gone[at] = joined = True
    pairs = zip(entries, gone, strict=True)
    taken = {id(e.track) for e, is_gone in pairs if is_gone and not e.track.counter}
    return [track for track in tracks if id(track) not in taken]


class _Entry:
    """A track with what is asked of it again and again."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self.best = track.best()
        self.text = folded(self.best.text)
        self.score = sum(reading.score for _, reading in track.readings)
        """How surely it was seen."""

    @property
    def after(self) -> int:
        """First sample that may be without it."""
        track = self.track
        return track.last_seen + 1 if track.absent_after is None else track.absent_after


def part_of(piece: str, whole: str) -> int | None:
    """Where in a text another begins that is part of it but for reading errors, both folded.

    Returns:
        An index into ``whole``; None where it is no part.
    """
    allowed = len(piece) // _LETTERS_PER_ERROR
    # Edit distance to the best stretch of the whole: its beginning and its end cost nothing.
    costs = [0] * (len(whole) + 1)
    starts = list(range(len(whole) + 1))
    for i, letter in enumerate(piece, 1):
        diagonal, costs[0] = costs[0], i
        origin = starts[0]
        for j, other in enumerate(whole, 1):
            options = (
                (diagonal + (letter != other), origin),
                (costs[j] + 1, starts[j]),
                (costs[j - 1] + 1, starts[j - 1]),
            )
            diagonal, origin = costs[j], starts[j]
            costs[j], starts[j] = min(options)
    end = int(np.argmin(costs))
    # A digit is never a reading error: one count further is another text.
    if costs[end] > allowed or _digits(piece) not in _digits(whole):
        return None
    return starts[end]


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


def _belongs(piece: _Entry, whole: _Entry) -> bool:
    if piece.score > whole.score + _MORE_SURELY:
        # What stood for long is a line; the longer text is it with another one run into it.
        return False
    if whole.track.moves:
        on_the_way = _on_the_way(piece.track, whole.track)
        return on_the_way and part_of(piece.text, whole.text) is not None
    return same_height(piece.best.quad, whole.best.quad) and in_place(piece.best, whole.best)


def in_place(small: Reading, large: Reading) -> bool:
    """Whether a reading is part of another that stands still, and lies where it lies in it."""
    high = max(line_height(large.quad), 1.0)
    if abs(float(small.quad[:, 1].mean() - large.quad[:, 1].mean())) >= _SAME_ROW * high:
        return False
    part, text = folded(small.text), folded(large.text)
    if len(part) < _MIN_LETTERS or len(part) > len(text):
        return False
    start = part_of(part, text)
    if start is None or _cuts_number(_letters(small), _letters(large), start):
        return False
    left, right = float(large.quad[:, 0].min()), float(large.quad[:, 0].max())
    expected = left + (right - left) * start / len(text)
    off = abs(float(small.quad[:, 0].min()) - expected)
    return off <= max(high, _OFF_PLACE * (right - left))


def _letters(reading: Reading) -> str:
    """As long as the folded text, with its digits."""
    return "".join(reading.text.casefold().split())


def _on_the_way(piece: Track, whole: Track) -> bool:
    """Whether a line that moves comes by where the piece was: along its row, or up and down."""
    index, reading = piece.readings[0]
    _, near = min((*whole.readings, *whole.fragments), key=lambda entry: abs(entry[0] - index))
    high = max(line_height(near.quad), 1.0)
    across, down = np.abs(reading.quad.mean(axis=0) - near.quad.mean(axis=0))
    first, newest = whole.readings[0][1].quad, whole.newest.quad
    moved_across, moved_down = np.abs(first.mean(axis=0) - newest.mean(axis=0))
    if moved_across >= moved_down:
        return bool(down < _SAME_ROW * high)
    return bool(across < float(np.ptp(near.quad[:, 0])) and down < _FAR * high)


def _cuts_number(part: str, text: str, start: int) -> bool:
    """Whether the piece ends or begins inside a number of the whole: 12 is no part of 125."""
    end = start + len(part)
    before = start > 0 and text[start - 1].isdigit() and part[0].isdigit()
    after = end < len(text) and text[end].isdigit() and part[-1].isdigit()
    return before or after
