"""When two readings are of one line, and when a line is only texture."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.vision.ocr_engine import Reading
from engines.vision.read_text import is_noise
from engines.vision.text_match import edit_distance, folded, near, same_pattern, same_text
from engines.vision.text_tracks import Track, TrackBook


def quad(x: float = 10, y: float = 10, w: float = 100, h: float = 20) -> np.ndarray:
    return np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h]], np.float32)


def read(text: str, score: float = 0.99, **place: float) -> Reading:
    return Reading(text, score, quad(**place))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("INVOICE 2041-77", "INVOICE2041-77"),
        ("INVOICE 2041-77", "lNVOlCE 2O41-77"),
        ("Platform 9 closes", "Platforrn 9 closes"),
        ("v1.9.44.1", "71.9.44.1"),
    ],
)
def test_reading_errors_are_forgiven(a: str, b: str) -> None:
    assert same_text(read(a), read(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("00:00:01:12", "00:00:01:13"),
        ("INVOICE 2041-77", "INVOICE 2041-78"),
        ("yes", "yet"),
        ("Monday", "Sunday morning"),
        ("", "a"),
    ],
)
def test_other_texts_are_other_lines(a: str, b: str) -> None:
    assert not same_text(read(a), read(b))


def test_digits_that_were_not_read_surely_are_forgiven() -> None:
    assert same_text(read("INVOICE 2041-77"), read("INVOICE 2041-17", 0.7))


@given(st.text("ab1", max_size=8), st.text("ab1", max_size=8), st.text("ab1", max_size=8))
def test_edit_distance_is_a_metric(a: str, b: str, c: str) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)
    assert edit_distance(a, b) <= max(len(a), len(b))


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_counter_states_have_one_pattern() -> None:
    assert same_pattern("00:01", "00:02")
    assert not same_pattern("00:01", "00:01")
    assert not same_pattern("abc", "abd")


def test_places() -> None:
    assert near(quad(), quad(x=14, y=15))
    assert not near(quad(), quad(y=40))
    assert not near(quad(), quad(x=200))


def book_of(*rows: list[Reading]) -> TrackBook:
    book = TrackBook()
    for index, readings in enumerate(rows):
        book.look(index * 4, readings, index * 4 - 4 if index else -1)
    return book


def test_lines_are_followed_and_end() -> None:
    book = book_of([read("hello there")], [read("hello there"), read("other", y=60)], [])
    one, two = book.tracks
    assert (one.first_seen, one.last_seen, one.absent_after) == (0, 4, 8)
    assert (two.first_seen, two.absent_before, two.absent_after) == (4, 0, 8)
    assert book.standing() == []


def test_a_line_that_moves_stays_one() -> None:
    book = book_of(*([read("credits roll", y=200 - 50 * i)] for i in range(4)))
    (track,) = book.tracks
    assert track.moves
    assert len(track.readings) == 4


def test_two_equal_lines_keep_their_places() -> None:
    rows = [read("SALE today", y=10), read("SALE today", y=200)]
    book = book_of(rows, rows[::-1])
    assert len(book.tracks) == 2
    assert not any(track.moves for track in book.tracks)


def test_the_reading_with_most_votes_is_reported() -> None:
    book = book_of(
        [read("Platforrn 9", 0.99)], [read("Platform 9", 0.9)], [read("Platform 9", 0.95)]
    )
    best = book.tracks[0].best()
    assert (best.text, best.score) == ("Platform 9", 0.95)


def test_a_counter_is_marked_from_its_third_state_on() -> None:
    two = book_of([read("00:01")], [read("00:02")])
    assert not any(track.counter for track in two.tracks)
    three = book_of([read("00:01")], [read("00:02")], [read("00:03")])
    assert all(track.counter for track in three.tracks)


@pytest.mark.parametrize(
    ("text", "score", "height", "noise"),
    [
        ("fragile", 0.7, 20, False),
        ("fragile", 0.55, 20, True),
        ("--- .", 0.99, 20, True),
        ("5", 0.95, 20, False),
        ("5", 0.8, 20, True),
        ("T", 0.96, 300, True),
        ("电LE", 0.83, 20, True),
        ("出口", 0.97, 20, False),
    ],
)
def test_noise(text: str, score: float, height: float, noise: bool) -> None:
    reading = read(text, score, w=400, h=height)
    track = Track([(0, reading), (4, reading)], -1, 4)
    assert is_noise(track, 360, 0.6) == noise


def test_a_doubtful_line_in_one_sample_alone_is_noise() -> None:
    assert is_noise(Track([(3, read("fragile", 0.7))], 2, 3), 360, 0.6)
    assert not is_noise(Track([(3, read("fragile", 0.8))], 2, 3), 360, 0.6)
