"""Pieces of a line join it; what could be another text stays apart."""

import numpy as np
import pytest

from engines.vision.ocr_engine import Reading
from engines.vision.text_fragments import join_fragments, part_of
from engines.vision.text_tracks import Track

LETTER = 10


def read(text: str, x: float = 0, y: float = 100, score: float = 0.95) -> Reading:
    """Letters ten pixels wide, twenty high."""
    w = LETTER * len(text)
    quad = np.array([[x, y], [x + w, y], [x + w, y + 20], [x, y + 20]], np.float32)
    return Reading(text, score, quad)


def track(first: int, *readings: Reading) -> Track:
    """Read at every fourth sample, not there at the fourth before and after."""
    found = [(first + 4 * i, reading) for i, reading in enumerate(readings)]
    last = found[-1][0]
    return Track(found, first - 4, last, last + 4)


@pytest.mark.parametrize(
    ("piece", "whole", "start"),
    [
        ("harbour", "theharbour", 3),
        ("theharbour", "theharbour", 0),
        ("thcharbcur", "theharbour", 0),
        ("seventhgate", "theharbour", None),
        ("bour", "theharbour", 6),
        ("bxur", "theharbour", None),
        ("lap124", "thelap125", None),
    ],
)
def test_part_of(piece: str, whole: str, start: int | None) -> None:
    assert part_of(piece, whole) == start


def test_a_line_that_fades_in_begins_with_its_first_piece() -> None:
    piece = track(4, read("harbour", x=40))
    whole = track(8, read("the harbour"), read("the harbour"))
    other = track(4, read("harbour", x=40, y=300))
    left = join_fragments([piece, other, whole])
    assert left == [other, whole]
    assert (whole.first_seen, whole.absent_before, whole.last_seen) == (4, 0, 12)
    assert whole.best().text == "the harbour"


def test_two_halves_that_were_read_apart_join_the_line_between() -> None:
    whole = track(8, read("made in portugal"))
    left = join_fragments(
        [track(4, read("made in")), whole, track(12, read("portugal", x=80)), track(12, read("ma"))]
    )
    assert [t.best().text for t in left] == ["made in portugal", "ma"]
    assert (whole.first_seen, whole.last_seen) == (4, 12)
    assert [index for index, _ in whole.fragments] == [4, 12]


@pytest.mark.parametrize(
    "other",
    [
        track(4, read("lap 12")),
        track(4, read("stop", x=80)),
        track(-8, read("lap 125 of 200")),
        track(4, read("125 of", x=200)),
        track(4, read("lap 124 of 200")),
    ],
    ids=["cut number", "elsewhere in the row", "gone in between", "off its place", "a count"],
)
def test_what_could_be_another_text_stays_apart(other: Track) -> None:
    whole = track(8, read("lap 125 of 200"))
    assert len(join_fragments([other, whole])) == 2


def test_a_line_that_runs_through_the_picture_takes_all_its_beginnings_and_ends() -> None:
    text = "breaking news"
    rows = [
        track(0, read(text[:4], x=360)),
        track(4, read(text[:8], x=320)),
        track(8, *(read(text, x=270 - 50 * i) for i in range(6))),
        track(32, read(text[7:], x=0)),
    ]
    (line,) = join_fragments(rows)
    assert (line.best().text, line.first_seen, line.last_seen) == (text, 0, 32)


def test_a_line_that_stood_before_does_not_vanish_in_one_that_runs_into_it() -> None:
    mark = track(0, *(read("channel five", x=100) for _ in range(9)))
    run_in = track(20, read("at nine channel five", x=20))
    assert len(join_fragments([mark, run_in])) == 2


def test_a_counter_is_left_as_it_is() -> None:
    rows = [track(4, read("00:01")), track(8, read("00:01 am"))]
    for row in rows:
        row.counter = True
    assert join_fragments(rows) == rows
