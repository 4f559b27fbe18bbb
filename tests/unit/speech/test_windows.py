from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engines.speech.audio import covered_s, merge, overlap_s, subtract
from engines.speech.voice import CHUNK_S
from engines.speech.whisper import MAX_WINDOW_S
from engines.speech.windows import plan_windows, split_window

TOTAL_S = 300.0
FLAT = np.full(round(TOTAL_S / CHUNK_S), 0.9, dtype=np.float32)


@st.composite
def _regions(draw) -> list[tuple[float, float]]:
    lengths = draw(st.lists(st.floats(0.13, 40), max_size=12))
    pauses = draw(st.lists(st.floats(0.2, 12), min_size=len(lengths), max_size=len(lengths)))
    found, at = [], 0.0
    for pause, length in zip(pauses, lengths, strict=True):
        if at + pause + length > TOTAL_S:
            break
        found.append((at + pause, at + pause + length))
        at += pause + length
    return found


@given(_regions(), st.lists(st.tuples(st.floats(0, 290), st.floats(0.01, 9)), max_size=3))
def test_windows_fit_hold_all_voice_and_never_cross_a_gap(regions, raw_gaps):
    gaps = merge([(a, a + length) for a, length in raw_gaps], 0.0)
    voiced = subtract(regions, gaps)
    windows = plan_windows(voiced, FLAT, gaps, TOTAL_S)
    for window in windows:
        start, end = window.span
        assert 0 <= start < end <= TOTAL_S
        assert end - start <= MAX_WINDOW_S
        assert all(overlap_s(window.span, gap) < 1e-9 for gap in gaps)
    held = [region for window in windows for region in window.regions]
    assert abs(sum(b - a for a, b in held) - sum(b - a for a, b in voiced)) < 1e-6
    assert all(covered_s(region, held) > region[1] - region[0] - 1e-6 for region in voiced)
    for before, after in pairwise(held):
        assert before[1] <= after[0] + 1e-9


def test_a_long_region_is_cut_where_voice_is_weakest():
    probabilities = FLAT.copy()
    weak = round(20 / CHUNK_S)
    probabilities[weak] = 0.36
    first, second = plan_windows([(0.0, 40.0)], probabilities, [], TOTAL_S)
    assert first.regions[-1][1] == weak * CHUNK_S
    assert second.regions == ((weak * CHUNK_S, 40.0),)


def test_a_turn_ends_a_window_only_after_enough_voice():
    assert len(plan_windows([(0, 3), (5, 8)], FLAT, [], TOTAL_S)) == 2
    assert len(plan_windows([(0, 1), (3, 4)], FLAT, [], TOTAL_S)) == 1
    assert len(plan_windows([(0, 1), (6, 7)], FLAT, [], TOTAL_S)) == 2


def test_splitting_takes_the_longest_pause():
    (window,) = plan_windows([(1, 2), (2.5, 3.5), (4.6, 6)], FLAT, [], TOTAL_S)
    left, right = split_window(window, [], TOTAL_S)
    assert left.regions == ((1, 2), (2.5, 3.5))
    assert right.regions == ((4.6, 6),)
    assert split_window(right, [], TOTAL_S) == [right]
