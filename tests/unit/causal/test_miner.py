"""The miner on timelines with a known truth, and on the bad input that it must survive."""

import numpy as np
import pytest

from engines.causal.corpus import mine_corpus
from engines.causal.miner import mine
from engines.causal.series import VideoEvents
from engines.contracts.causal import CausesDocument, Event, MinerParams
from engines.contracts.time import TimeSpan

FAST = MinerParams(permutations=200, bootstraps=100, placebo_runs=3)
MINUTE = [TimeSpan.from_seconds(0, 60)]


def event(start_s: float, kind: str, **more) -> Event:
    return Event(
        span=TimeSpan.from_seconds(start_s, start_s + 0.1),
        type=kind,
        subject=None,
        description=kind,
        source=more.pop("source", "motion"),
        evidence=(),
        **more,
    )


def demo(seed: int, n: int = 12, lag_s: float = 0.5, length_s: float = 60.0) -> list[Event]:
    """Something lights up, a sound follows; other things happen when they please."""
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(2.5, 6.0, n)
    lit = 1.0 + np.cumsum(gaps) * (length_s - 4.0) / gaps.sum()
    events = [event(t, "light:on") for t in lit]
    events += [event(t + lag_s + rng.normal() * 0.04, "sound:onset", source="sound") for t in lit]
    events += [event(t, "motion:burst") for t in rng.uniform(0, length_s, 10)]
    events += [event(t, "speech:begins", source="speech") for t in rng.uniform(0, length_s, 8)]
    return events + [event(t, "text:appears", source="text") for t in np.arange(2, length_s, 6.0)]


def edges(document: CausesDocument) -> set[tuple[str, str]]:
    return {
        (e.cause_type, e.effect_type)
        for e in document.edges
        if e.verdict == "causal" and e.cause_event is None
    }


@pytest.mark.parametrize("seed", range(5))
def test_a_repeated_cause_is_found_and_nothing_else(seed):
    document = mine(demo(seed), MINUTE, FAST)
    assert edges(document) == {("light:on", "sound:onset")}
    assert document.verdict == "edges"
    edge = document.edges[0]
    assert edge.lag_s == pytest.approx(0.5, abs=0.05)
    assert edge.delta_low is not None
    assert edge.delta_low > 0.5
    assert edge.q_value is not None
    assert edge.q_value < 0.01
    assert edge.placebo_rate is not None


def test_instances_link_each_effect_to_its_own_cause():
    events = demo(1)
    document = mine(events, MINUTE, FAST)
    instances = [e for e in document.edges if e.cause_event is not None]
    assert len(instances) >= 11
    for instance in instances:
        cause = events[int(instance.cause_event.split(":")[1])]
        effect = events[int(instance.effect_event.split(":")[1])]
        assert (cause.type, effect.type) == ("light:on", "sound:onset")
        assert effect.span.start_s - cause.span.start_s == pytest.approx(instance.lag_s, abs=1e-6)
        assert 0.3 < instance.lag_s < 0.7


def test_row_order_and_duplicates_change_nothing():
    events = demo(2)
    plain = mine(events, MINUTE, FAST)
    shuffled = list(events)
    np.random.default_rng(0).shuffle(shuffled)
    again = mine(shuffled, MINUTE, FAST)
    types = [e for e in plain.edges if e.cause_event is None]
    assert types == [e for e in again.edges if e.cause_event is None]
    doubled = mine(events + events, MINUTE, FAST)
    assert types == [e for e in doubled.edges if e.cause_event is None]


def test_seeds_do_not_change_the_edges():
    found = {
        frozenset(edges(mine(demo(3), MINUTE, FAST.model_copy(update={"seed": seed}))))
        for seed in range(4)
    }
    assert found == {frozenset({("light:on", "sound:onset")})}


@pytest.mark.parametrize("seed", range(6))
def test_independent_rhythms_give_no_edge(seed):
    rng = np.random.default_rng(seed)
    events = [event(t, "motion:a") for t in np.arange(1.0, 60, 3.0)]
    events += [event(t, "motion:b") for t in np.arange(1.4, 60, 3.0)]
    events += [event(t, "motion:c") for t in rng.uniform(0, 60, 20)]
    assert edges(mine(events, MINUTE, FAST)) == set()


def test_a_common_cause_and_a_chain_are_told_from_their_shadows():
    rng = np.random.default_rng(5)
    root = np.cumsum(rng.uniform(3, 8, 40))
    left = root + 0.5 + rng.normal(size=40) * 0.05
    right = root + 1.4 + rng.normal(size=40) * 0.05
    last = right + 0.6 + rng.normal(size=40) * 0.05
    events = [event(t, "motion:root") for t in root]
    for name, times in (("left", left), ("right", right), ("last", last)):
        events += [event(t, f"motion:{name}") for t in times]
    span = [TimeSpan.from_seconds(0, float(root[-1]) + 5)]
    assert edges(mine(events, span, FAST)) == {
        ("motion:root", "motion:left"),
        ("motion:root", "motion:right"),
        ("motion:right", "motion:last"),
    }


@pytest.mark.parametrize(
    ("events", "number"),
    [
        ([], "0 usable events"),
        ([event(1, "motion:a"), event(2, "sound:b"), event(3, "text:c")], "effective n of 1"),
        ([event(i * 0.05, "motion:a") for i in range(1000)], "1000 events of 1 type"),
        ([event(5, f"motion:{i % 7}") for i in range(100)], "effective n of 1"),
    ],
    ids=["none", "three", "one type", "one time"],
)
def test_too_little_is_said_with_its_number(events, number):
    document = mine(events, MINUTE, FAST)
    assert document.verdict == "insufficient_evidence"
    assert number in document.reason
    assert edges(document) == set()


def test_simultaneous_events_have_no_order():
    times = np.cumsum(np.random.default_rng(0).uniform(2, 6, 14))
    events = [event(t, kind) for t in times for kind in ("motion:a", "motion:b")]
    assert edges(mine(events, [TimeSpan.from_seconds(0, 70)], FAST)) == set()


def test_order_within_the_time_error_is_not_used():
    events = [
        e.model_copy(update={"time_error_s": 1.0}) if e.type == "sound:onset" else e
        for e in demo(1)
    ]
    assert ("light:on", "sound:onset") not in edges(mine(events, MINUTE, FAST))


def test_flagged_events_are_left_out():
    events = [
        e.model_copy(update={"flags": ("hallucination",)}) if e.type == "sound:onset" else e
        for e in demo(1)
    ]
    document = mine(events, MINUTE, FAST)
    assert all("sound:onset" not in (e.cause_type, e.effect_type) for e in document.edges)


def test_what_was_not_decoded_is_no_evidence_of_absence():
    """The sound of the second half was never heard; the causes there do not count against it."""
    events = [
        e for e in demo(4, n=24, length_s=120.0) if e.type != "sound:onset" or e.span.start_s < 60
    ]
    half = mine(events, [TimeSpan.from_seconds(0, 60)], FAST)
    whole = mine(events, [TimeSpan.from_seconds(0, 120)], FAST)
    known = next(e for e in half.edges if e.effect_type == "sound:onset")
    naive = next(
        e for e in whole.edges if (e.cause_type, e.effect_type) == ("light:on", "sound:onset")
    )
    assert known.counterfactual_delta > 0.9
    assert naive.counterfactual_delta < 0.7


def test_cuts_are_never_causes():
    rng = np.random.default_rng(0)
    cuts = np.cumsum(rng.uniform(3, 7, 12))
    events = [event(t, "shot:cut", source="shot") for t in cuts]
    events += [event(t + 0.5, "sound:onset", source="sound") for t in cuts]
    document = mine(events, [TimeSpan.from_seconds(0, float(cuts[-1]) + 3)], FAST)
    assert edges(document) == set()


def test_the_graph_has_no_cycle_and_contradiction_is_said():
    rng = np.random.default_rng(1)
    videos = []
    for number in range(8):
        sign = 1.0 if number % 2 else -1.0
        times = np.cumsum(rng.uniform(4, 8, 12))
        events = [event(t, "motion:a") for t in times]
        events += [event(t + sign * 0.5, "motion:b") for t in times]
        videos.append(VideoEvents(f"v{number}", events, [(0.0, float(times[-1]) + 3)]))
    document = mine_corpus(videos, FAST)
    assert edges(document) == set()
    verdicts = {e.verdict for e in document.edges}
    assert "insufficient_evidence" in verdicts
    assert any("contradict" in e.reason for e in document.edges)


def test_many_short_videos_pool_their_evidence():
    rng = np.random.default_rng(3)
    videos = []
    for number in range(30):
        start = rng.uniform(2, 10)
        events = [event(start, "light:on"), event(start + 0.8, "sound:onset", source="sound")]
        events += [event(t, "motion:burst") for t in rng.uniform(0, 15, 2)]
        videos.append(VideoEvents(f"v{number}", events, [(0.0, 15.0)]))
    document = mine_corpus(videos, FAST)
    assert edges(document) == {("light:on", "sound:onset")}
    assert all(e.scope == "corpus" for e in document.edges)
    again = mine_corpus(videos[::-1], FAST)
    assert again == document


def test_a_flood_of_events_stays_bounded():
    rng = np.random.default_rng(0)
    events = [event(float(t), f"motion:{i % 3}") for i, t in enumerate(rng.uniform(0, 60, 2000))]
    document = mine(events, MINUTE, MinerParams(permutations=50, bootstraps=50, placebo_runs=1))
    assert 0 < document.num_events <= 2000
    assert document.verdict in {"no_edges", "edges"}
