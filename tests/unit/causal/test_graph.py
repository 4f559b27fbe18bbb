"""Correction, acyclicity, placebo copies, and the truth of the simulated worlds."""

import numpy as np
import pytest

from engines.causal.candidates import expected_histogram, lag_histogram, make_bands
from engines.causal.graph import acyclic, benjamini_hochberg
from engines.causal.lagged import lagged_edges
from engines.causal.series import (
    VideoEvents,
    build_table,
    draw_shifts,
    shift_times,
    shuffled,
    substituted,
    time_reversed,
)
from engines.contracts.causal import Event
from engines.contracts.time import TimeSpan
from flows.bench.causal_world_simulation import LEVELS, make_world, simulate, true_edges


def table(seed: int = 0, n: int = 40):
    rng = np.random.default_rng(seed)
    videos = []
    for number in range(3):
        events = [
            Event(
                span=TimeSpan.from_seconds(t, t),
                type=f"motion:{'abc'[i % 3]}",
                subject=None,
                description="",
                source="motion",
                evidence=(),
            )
            for i, t in enumerate(rng.uniform(0, 60, n))
        ]
        videos.append(VideoEvents(str(number), events, [(0, 25), (35, 60)]))
    return build_table(videos, gap_s=9.0)


def test_benjamini_hochberg_by_hand():
    adjusted = benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.5]))
    np.testing.assert_allclose(adjusted, [0.04, 0.16 / 3, 0.16 / 3, 0.5])
    np.testing.assert_allclose(benjamini_hochberg(np.array([0.01]), 10), [0.1])


def test_edges_that_would_close_a_cycle_are_left_out():
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("c", "d"), ("d", "a"), ("a", "a")]
    assert acyclic(edges) == [True, True, False, True, True, False, False]


@pytest.mark.parametrize("copy", ["shuffled", "substituted", "reversed"])
def test_placebo_copies_keep_numbers_and_stay_in_the_observed_spans(copy):
    real = table()
    rng = np.random.default_rng(1)
    made = {
        "shuffled": lambda: shuffled(real, 8.0, rng),
        "substituted": lambda: substituted(real, rng),
        "reversed": lambda: time_reversed(real),
    }[copy]()
    np.testing.assert_array_equal(made.counts(), real.counts())
    assert made.is_observed(made.time).mean() > 0.99
    assert (np.diff(made.time) >= 0).all()
    assert not np.allclose(made.time, real.time)


def test_expected_counts_are_the_mean_over_shifts():
    real = table(3)
    bands = make_bands(4.0, 40)
    expected = expected_histogram(real, bands)
    rng = np.random.default_rng(0)
    drawn = [
        lag_histogram(real, shift_times(real, draw_shifts(real, 1, 0.0, rng)[0]), real.kind, bands)[
            0
        ]
        for _ in range(300)
    ]
    mean = np.mean(drawn, axis=0)
    np.testing.assert_allclose(expected.sum(axis=2), mean.sum(axis=2), rtol=0.1)


def test_no_pair_reaches_from_one_video_into_the_next():
    real = table()
    bands = make_bands(4.0, 40)
    whole = lag_histogram(real, real.time, real.kind, bands)[0].sum()
    single = 0
    for number in range(3):
        at = real.video == number
        gaps = real.time[at][None, :] - real.time[at][:, None]
        single += ((gaps > 0.011) & (gaps <= 4.0)).sum()
    assert whole == single


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_direct_truth_is_the_wiring_that_acted(level):
    """Re-simulation with everything else held finds the mechanisms, and chains in total."""
    world = make_world(level, 11)
    direct, total = true_edges(world)
    assert direct == {(m.cause, m.effect) for m in world.mechanisms}
    assert direct <= total
    if level >= 1:
        assert ("switch_a", "bell_b") in total - direct


def test_taking_something_away_leaves_the_rest_as_it_was():
    world = make_world(2, 5)
    whole, without = simulate(world), simulate(world, without=frozenset({"domino_1"}))
    assert without.of("domino_1") == without.of("domino_2") == ()
    assert without.of("switch_a") == whole.of("switch_a")
    assert without.of("ball_1") == whole.of("ball_1")


def test_lagged_causes_of_series_are_found_with_their_lag():
    rng = np.random.default_rng(0)
    series = rng.normal(size=(220, 4))
    series[2:, 1] += 0.8 * series[:-2, 0]
    series[1:, 3] += series[:-1, 2] ** 2 - 1
    found = {(e.cause, e.effect, e.lag) for e in lagged_edges(series, max_lag=3)}
    assert {(0, 1, 2), (2, 3, 1)} <= found
    assert len(found) <= 3
