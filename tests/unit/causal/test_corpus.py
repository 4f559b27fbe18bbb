"""Mining many videos: parts, their files, agreement between videos, and what arrives later."""

import numpy as np
import pytest
from scipy import stats

from engines.causal.agreement import agreement
from engines.causal.candidates import lag_histogram, make_bands
from engines.causal.corpus import PartFile, mine_corpus, mine_parts, video_part
from engines.causal.counterfactual import Removal
from engines.causal.null import draw_null, pool_null
from engines.causal.series import VideoEvents, build_table, draw_shifts, event_times, shift_times
from engines.contracts.causal import CausesDocument, Event, MinerParams, PartParams
from engines.contracts.time import TimeSpan
from engines.errors import EngineError

FAST = MinerParams(permutations=120, bootstraps=100, placebo_runs=3)


def event(at_s: float, kind: str, source: str = "motion") -> Event:
    return Event(
        span=TimeSpan.from_seconds(at_s, at_s, rate_hz=90_000),
        type=kind,
        subject=None,
        description=kind,
        source=source,
        evidence=(),
    )


def video(number: int, *, works: bool = True, n: int = 6, length_s: float = 60.0) -> VideoEvents:
    """A lamp that lights up, a bell that follows it (or rings by itself), and something else."""
    rng = np.random.default_rng([number, 3])
    lit = np.sort(rng.uniform(1, length_s - 5, n))
    rung = lit + 0.6 + 0.03 * rng.normal(size=n) if works else rng.uniform(0, length_s, n)
    events = [event(t, "light:on") for t in lit]
    events += [event(t, "sound:bell", "sound") for t in rung]
    events += [event(t, "motion:burst") for t in rng.uniform(0, length_s, 8)]
    return VideoEvents(f"v{number:02d}", events, [(0.0, length_s)])


def edges(document: CausesDocument) -> set[tuple[str, str]]:
    return {(e.cause_type, e.effect_type) for e in document.edges if e.verdict == "causal"}


def of_pair(document: CausesDocument):
    [edge] = [
        e for e in document.edges if (e.cause_type, e.effect_type) == ("light:on", "sound:bell")
    ]
    return edge


def test_neither_order_nor_names_nor_files_change_a_result(tmp_path):
    videos = [video(i) for i in range(6)]
    whole = mine_corpus(videos, FAST)
    assert edges(whole) == {("light:on", "sound:bell")}
    assert mine_corpus(videos[::-1], FAST) == whole
    parts = [video_part(v, PartParams.of(FAST)) for v in videos]
    files = []
    for part in parts[3:] + parts[:3]:
        path = tmp_path / part.video
        part.write(path)
        files.append(PartFile(part.video, path))
    assert mine_parts(files, FAST) == whole


def test_a_part_is_named_by_its_bytes_and_depends_on_its_video_alone(tmp_path):
    params = PartParams.of(FAST)
    first, again = video_part(video(1), params), video_part(video(1), params)
    first.write(tmp_path / "a")
    again.write(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    backwards = video(1)
    backwards = VideoEvents("other", backwards.events[::-1], backwards.observed_s)
    np.testing.assert_array_equal(video_part(backwards, params).null.cell, first.null.cell)


def test_pooled_counts_are_the_sum_of_the_videos_shifted_alike():
    """Against the plain way: shift, count and score every copy of every video."""
    items = [video(i, n=9) for i in range(3)]
    table = build_table(items, gap_s=9.0)
    bands = make_bands(4.0, 40)
    nulls, total = [], np.zeros((60, 3, 3, 40))
    for number, item in enumerate(items):
        own = build_table([item], gap_s=0.0)
        rng = np.random.default_rng(number)
        nulls.append(draw_null(own, bands, permutations=60, rng=rng))
        shifts = draw_shifts(own, 60, 4.0, np.random.default_rng(number))
        for copy in range(60):
            moved = shift_times(own, shifts[copy])
            total[copy] += lag_histogram(own, moved, own.kind, bands)[0]
    counted = np.zeros((60, 3, 3, 40))
    for null in nulls:
        counted.reshape(-1)[null.cell] += null.count
    np.testing.assert_array_equal(counted, total)
    names = [event_times(item).names for item in items]
    pooled = [
        pool_null(table, bands, names, lambda: nulls, permutations=p, min_count=5) for p in (60, 90)
    ]
    assert pooled[0].score.shape == (60, 3, 3)
    assert list(pooled[0].frequent) == [0, 1, 2]
    np.testing.assert_array_equal(pooled[1].score[:60], pooled[0].score)
    np.testing.assert_array_equal(pooled[1].score[60:], pooled[0].score[:30])


def test_types_that_few_videos_have_are_renumbered():
    first = video(1)
    second = VideoEvents(
        "w", [*video(2).events, *(event(t, "action:wave") for t in range(5, 55, 5))], [(0, 60)]
    )
    document = mine_corpus([first, second], FAST)
    assert edges(document) == {("light:on", "sound:bell")}


def test_of_many_types_the_rare_ones_are_left_out_and_it_is_said():
    videos = [video(i) for i in range(6)]
    crowded = [
        VideoEvents(
            v.video,
            [*v.events, *(event(i % 60, f"label:{i:03d}") for i in range(40))],
            v.observed_s,
        )
        for v in videos
    ]
    few = FAST.model_copy(update={"max_types": 3})
    document = mine_corpus(crowded, few)
    assert edges(document) == {("light:on", "sound:bell")}
    assert document.reason.endswith("40 rarer types were left out")
    assert document.num_events == mine_corpus(videos, FAST).num_events


def test_parts_of_other_parameters_are_refused():
    part = video_part(video(1), PartParams.of(FAST.model_copy(update={"lag_bins": 20})))
    with pytest.raises(EngineError, match="20 lag bins, not in 40"):
        mine_parts([part], FAST)


def test_two_videos_that_contradict_each_other_are_an_abstention_with_its_number():
    videos = [video(1, n=20, length_s=150), video(2, works=False, n=20, length_s=150)]
    document = mine_corpus(videos, FAST)
    assert edges(document) == set()
    edge = of_pair(document)
    assert edge.verdict == "insufficient_evidence"
    assert edge.num_videos == 2
    assert edge.heterogeneity > 0.9
    assert "1 of 2 videos show it" in edge.reason


def test_many_videos_that_differ_give_the_mean_and_say_so():
    videos = [video(i, works=i % 3 > 0, n=10, length_s=90) for i in range(18)]
    edge = of_pair(mine_corpus(videos, FAST))
    assert edge.verdict == "causal"
    assert edge.num_videos == 18
    assert edge.heterogeneity > 0.5
    assert "12 of 18 videos show it" in edge.reason


def test_examples_point_at_occurrences_of_different_videos():
    videos = [video(i) for i in range(6)]
    examples = of_pair(mine_corpus(videos, FAST)).examples
    assert len({x.video for x in examples}) == len(examples) == 5
    by_name = {v.video: v for v in videos}
    for example in examples:
        ends = [
            by_name[example.video].events[int(ref.split(":")[1])]
            for ref in (example.cause_event, example.effect_event)
        ]
        assert [e.type for e in ends] == ["light:on", "sound:bell"]
        assert ends[1].span.start_s - ends[0].span.start_s == pytest.approx(example.lag_s)


def test_what_one_video_did_not_see_counts_neither_way():
    """In the second half of every other video nobody listened."""
    deaf = [
        VideoEvents(
            f"d{i}",
            [e for e in video(i, n=10).events if e.source != "sound" or e.span.start_s < 30],
            [(0.0, 60.0)],
        )
        for i in range(8)
    ]
    aware = [VideoEvents(v.video, v.events, [(0.0, 30.0)], 30.0) for v in deaf]
    naive, known = of_pair(mine_corpus(deaf, FAST)), of_pair(mine_corpus(aware, FAST))
    assert known.counterfactual_delta > 0.9 > naive.counterfactual_delta + 0.2
    assert mine_corpus(aware, FAST).coverage.skipped_s == 240.0


def test_nothing_to_pool_is_said():
    assert mine_corpus([], FAST).reason == "0 videos"
    empty = mine_corpus([VideoEvents("a", [], [(0, 10)]), VideoEvents("b", [], [])], FAST)
    assert (empty.verdict, empty.num_videos) == ("insufficient_evidence", 2)
    assert "0 usable events" in empty.reason


def alike(events: list[Event], videos: int = 3) -> list[VideoEvents]:
    return [VideoEvents(f"v{i}", events, [(0.0, 60.0)]) for i in range(videos)]


@pytest.mark.parametrize(
    ("videos", "number"),
    [
        ([VideoEvents("a", [event(t, f"motion:{t}") for t in (1, 2, 3)], [(0, 60)])], "n of 1"),
        (alike([event(i * 0.05, "motion:a") for i in range(1000)]), "3000 events of 1 type"),
        (alike([event(5, f"motion:{i % 7}") for i in range(100)], 2), "effective n of 2"),
    ],
    ids=["three events", "one type", "one time"],
)
def test_too_little_over_all_videos_is_said_with_its_number(videos, number):
    document = mine_corpus(videos, FAST)
    assert document.verdict == "insufficient_evidence"
    assert number in document.reason
    assert edges(document) == set()


def test_duplicated_events_and_other_seeds_leave_the_edges_alone():
    videos = [video(i) for i in range(6)]
    plain = mine_corpus(videos, FAST)
    doubled = [VideoEvents(v.video, [*v.events, *v.events], v.observed_s) for v in videos]
    assert mine_corpus(doubled, FAST) == plain
    for seed in (1, 2):
        again = mine_corpus(videos, FAST.model_copy(update={"seed": seed}))
        assert edges(again) == edges(plain)


def test_ties_have_no_order():
    """Two types that always start together, in every video."""
    rng = np.random.default_rng(0)
    videos = [
        VideoEvents(
            f"v{i}", [event(t, k) for t in rng.uniform(0, 60, 9) for k in ("motion:a", "text:b")],
            [(0.0, 60.0)],
        )
        for i in range(5)
    ]  # fmt: skip
    assert edges(mine_corpus(videos, FAST)) == set()


def removal(deltas: list[float], each: int) -> Removal:
    values = np.array(deltas)
    weight = np.full(len(values), float(each))
    mean = float(values.mean())
    return Removal(mean, mean, mean, 0, each * len(values), values, weight)


def test_videos_that_are_alike_agree_and_others_do_not():
    rng = np.random.default_rng(0)
    alike = [agreement(removal(list(rng.binomial(20, 0.6, 8) / 20), 20), 0.05) for _ in range(200)]
    # The test for a difference keeps its level, roughly, and the interval its cover.
    assert np.mean([a.differ for a in alike]) < 0.03
    assert np.mean([a.low <= 0.6 <= a.high for a in alike]) > 0.9
    split = agreement(removal([0.0, 1.0] * 2, 20), 0.05)
    assert split.is_contradiction
    assert split.num_for == 2
    many = agreement(removal([0.0, 1.0] * 20, 20), 0.05)
    assert many.differ
    assert not many.is_contradiction
    assert agreement(removal([0.7], 20), 0.05) is None


def test_the_test_for_a_difference_is_that_of_equal_shares():
    """Against the chi-squared test of a table of successes and failures."""
    worked = np.array([20, 50, 90])
    found = agreement(removal(list(worked / 100), 100), 0.05)
    oracle = stats.chi2_contingency(np.stack([worked, 100 - worked]))
    assert np.log(found.p_value) == pytest.approx(np.log(oracle.pvalue), rel=0.02)
    assert found.i_squared == pytest.approx(1 - 2 / oracle.statistic, rel=0.01)
