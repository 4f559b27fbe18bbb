"""The MECD bench: reading, features, and a table that a better rule wins."""

import dataclasses
import json

import numpy as np
import pytest

from engines.errors import UsageError
from flows.bench.mecd_features import Described, pair_table, read_videos

pytest.importorskip("sklearn")

from flows.bench.mecd import paired_p_value, select
from flows.bench.mecd_kernels import PairProcess
from flows.bench.mecd_rules import ask_model, fit_autoregression, rule


def video(seed: int) -> Described:
    """The last event repeats the words of what caused it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    nouns = rng.choice(["dog", "kite", "boat", "lamp", "horse", "drum", "piano", "tree"], n)
    causes = rng.random(n - 1) < 0.4
    sentences = [f"The {noun} is there." for noun in nouns[:-1]]
    last = " and ".join(nouns[:-1][causes]) or "nobody"
    times = np.cumsum(rng.uniform(1, 9, n))
    return Described(
        name=f"v{seed}",
        sentences=(*sentences, f"We look at {last}."),
        times_s=np.column_stack([times, times + 1]),
        duration_s=float(times[-1] + 1),
        causes=causes,
    )


def write(path, videos) -> None:
    records = [
        {
            v.name: {
                "duration": v.duration_s,
                "timestamps": v.times_s.tolist(),
                "sentences": list(v.sentences),
                "relation": ["".join("01"[int(c)] for c in v.causes)],
            }
        }
        for v in videos
    ]
    path.write_text(json.dumps(records))


def test_videos_survive_the_way_through_a_file(tmp_path):
    made = [video(s) for s in range(5)]
    write(tmp_path / "a.json", made)
    read = read_videos(tmp_path / "a.json")
    assert [v.name for v in read] == [v.name for v in made]
    for a, b in zip(read, made, strict=True):
        np.testing.assert_array_equal(a.causes, b.causes)
        assert a.sentences == b.sentences


@pytest.mark.parametrize("content", ["", "[1, 2]", '[{"v": {"sentences": ["a"]}}]'])
def test_files_of_another_form_are_refused_in_one_line(tmp_path, content):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(UsageError):
        read_videos(tmp_path / "bad.json")
    with pytest.raises(UsageError):
        read_videos(tmp_path / "absent.json")


def test_every_pair_has_finite_features_with_and_without_meanings():
    videos = [video(s) for s in range(6)]
    plain = pair_table(videos, None)
    rich = pair_table(videos, lambda s: np.eye(len(s)))
    assert np.isfinite(plain.features).all()
    assert plain.features.shape == rich.features.shape
    assert plain.meanings.shape[2] == 0
    assert len(plain.causes) == sum(len(v.causes) for v in videos)
    assert plain.distance[: len(videos[0].causes)].tolist() == list(
        range(len(videos[0].causes), 0, -1)
    )


def test_features_of_a_pair_do_not_depend_on_the_other_videos():
    videos = [video(s) for s in range(6)]
    alone, among = pair_table(videos[:1], None), pair_table(videos, None)
    rows = len(alone.causes)
    np.testing.assert_array_equal(alone.features, among.features[:rows])
    assert among.num_earlier[:rows].tolist() == [rows] * rows


def test_the_process_learns_what_words_say_and_stays_in_bounds():
    known = pair_table([video(s) for s in range(40)], None)
    fresh = pair_table([video(s) for s in range(100, 120)], None)
    told = PairProcess(known).predict(fresh)
    assert ((told > 0) & (told < 1)).all()
    accuracy = ((told > 0.5) == fresh.causes).mean()
    assert accuracy > (rule(fresh) == fresh.causes).mean() + 0.1


def test_the_process_learns_what_an_event_means():
    rng = np.random.default_rng(0)
    videos = [video(s) for s in range(120)]
    meanings = rng.normal(size=(sum(len(v.sentences) for v in videos), 8))
    table = pair_table(videos, lambda _: meanings)
    loud = table.meanings[:, 0, 0] > 0
    told = dataclasses.replace(table, features=np.zeros_like(table.features), causes=loud)
    half = table.video < 80
    predicted = PairProcess(select(told, half)).predict(select(told, ~half)) > 0.5
    assert (predicted == loud[~half]).mean() > 0.75


def test_an_autoregression_finds_the_lag_that_drives_the_last_event():
    rng = np.random.default_rng(1)
    table = pair_table([video(s) for s in range(200)], lambda s: rng.normal(size=(len(s), 6)))
    meanings = table.meanings.copy()
    for row in np.flatnonzero(table.distance == 2):
        meanings[table.video == table.video[row], -1] = meanings[row, 0]
    said = fit_autoregression(dataclasses.replace(table, meanings=meanings))(table)
    assert said[table.distance == 2].all()
    assert not said[table.distance != 2].any()


def test_a_model_that_names_the_causes_is_understood():
    table = pair_table([video(s) for s in range(4)], None)

    def ask(prompt: str) -> str:
        assert "Last event: We look at" in prompt
        return "1\n- 3 because\n99"

    asked, said = ask_model(table, ask, 2)
    assert asked.tolist() == (table.video < 2).tolist()
    place = table.num_earlier - table.distance
    assert said.tolist() == (asked & ((place == 0) | (place == 2))).tolist()


def test_the_p_value_counts_only_the_rows_asked_for():
    table = pair_table([video(s) for s in range(30)], None)
    near = table.distance == 1
    better = np.where(near, table.causes, ~table.causes)
    assert paired_p_value(better, ~table.causes, table, near) < 0.01
    assert paired_p_value(better, ~table.causes, table, ~near) == 1.0


@pytest.mark.slow
def test_what_the_words_say_beats_the_rule_that_never_looks(tmp_path, monkeypatch):
    from flows.bench import mecd

    monkeypatch.setattr(mecd, "sentence_embedder", lambda: None)
    write(tmp_path / "train.json", [video(s) for s in range(60)])
    write(tmp_path / "test.json", [video(s) for s in range(100, 140)])
    for test in (None, tmp_path / "test.json"):
        report = mecd.run(tmp_path / "train.json", test)
        figures = {row.name: row.figures for row in report.rows}
        assert figures["ours"]["accuracy"] > figures["position prior (last two)"]["accuracy"] + 0.15
        assert figures["ours"]["p_against_last_two"] < 0.01
