"""The MECD bench: reading, features, and a table that a better rule wins."""

import json

import numpy as np
import pytest

from engines.errors import UsageError
from flows.bench.mecd_features import Described, pair_table, read_videos

pytest.importorskip("sklearn")


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


@pytest.mark.slow
def test_what_the_words_say_beats_the_rule_that_never_looks(tmp_path, monkeypatch):
    from flows.bench import mecd

    monkeypatch.setattr(mecd, "TREES", 40)
    monkeypatch.setattr(mecd, "sentence_embedder", lambda: None)
    write(tmp_path / "train.json", [video(s) for s in range(60)])
    write(tmp_path / "test.json", [video(s) for s in range(100, 140)])
    report = mecd.run(tmp_path / "train.json", tmp_path / "test.json")
    figures = {row.name: row.figures for row in report.rows}
    assert figures["ours"]["accuracy"] > 0.8
    assert figures["ours"]["accuracy"] > figures["position prior (last two)"]["accuracy"] + 0.2
    assert figures["ours"]["p_against_last_two"] < 0.01
