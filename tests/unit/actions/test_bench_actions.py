"""The bench's own measuring: made truth is what it says, and spans are matched one to one."""

from itertools import pairwise

import numpy as np
import pytest
from made_skeletons import write_set

from engines.actions.dataset import read_set
from engines.actions.motion import measure_motion
from engines.actions.normalise import normalise_clips
from engines.actions.skeleton import JOINTS
from engines.actions.strokes import find_strokes
from engines.errors import EmptyInputError, UsageError
from flows import cores
from flows.bench import BenchRow, actions, actions_jobs, actions_views
from flows.bench.actions_made import Span, made_sequences, made_strokes, match_spans
from flows.bench.actions_ours import group_folds


def test_a_file_is_read_in_picture_axes(tmp_path):
    found = read_set(write_set(tmp_path / "made_train.npz", [1, 2], 0), JOINTS)
    assert found.has_depth
    assert len(found.clips) == 12
    head, ankle = JOINTS.index("head"), JOINTS.index("left_ankle")
    first = found.clips[0].joints[0]
    assert first[head, 1] < first[ankle, 1]
    assert first[JOINTS.index("left_hip"), 0] > first[JOINTS.index("right_hip"), 0]
    assert first[head, 2] == pytest.approx(2.5, abs=0.1)
    assert set(found.groups) == {1, 2}
    assert len(found.select(found.labels == 1).clips) == 4


def test_what_is_no_skeleton_file_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("joints")
    with pytest.raises(UsageError, match="not a skeleton file"):
        read_set(tmp_path / "text.npz")
    np.savez(tmp_path / "half.npz", joints=np.zeros((1, 13, 3), np.int16))
    with pytest.raises(UsageError, match="scale"):
        read_set(tmp_path / "half.npz")
    arrays = dict(np.load(write_set(tmp_path / "one.npz", [1], 0)))
    np.savez(tmp_path / "none.npz", **(arrays | {"offsets": np.zeros(1, np.int32)}))
    with pytest.raises(EmptyInputError):
        read_set(tmp_path / "none.npz")
    with pytest.raises(UsageError, match="nose"):
        read_set(tmp_path / "one.npz", ("nose",))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"joints": np.zeros((9, 13), np.int16)}, "joints of shape"),
        ({"joints": np.full((9, 13, 3), np.nan)}, "finite"),
        ({"joints": np.zeros((9, 12, 3), np.int16)}, "12 joints with 13 names"),
        ({"offsets": np.array([0, 5, 5, 9])}, "do not rise"),
        ({"offsets": np.array([0, 5, 10**6])}, "do not rise"),
        ({"action": np.array([0, 1])}, "2 labels"),
        ({"action": np.full(6, 3)}, "outside of 3 classes"),
        ({"action": np.array(["wave"] * 6)}, "not numbers"),
        ({"subject": np.zeros(2)}, "subject"),
        ({"scale": np.ones(3)}, "scale"),
    ],
)
def test_arrays_that_do_not_fit_together_are_told(tmp_path, change, said):
    arrays = dict(np.load(write_set(tmp_path / "one.npz", [1], 0)))
    np.savez(tmp_path / "bad.npz", **(arrays | change))
    with pytest.raises(UsageError, match=said):
        read_set(tmp_path / "bad.npz")


def test_a_bench_of_what_cannot_be_judged_is_refused(tmp_path):
    train = write_set(tmp_path / "a.npz", [1, 2], 0)
    with pytest.raises(UsageError, match="no file"):
        actions.run(train, tmp_path / "none.npz")
    with pytest.raises(UsageError, match="depth"):
        actions.run(train, write_set(tmp_path / "flat.npz", [3], 0, flat=True))
    arrays = dict(np.load(train))
    np.savez(tmp_path / "one.npz", **(arrays | {"action": arrays["action"] * 0}))
    with pytest.raises(UsageError, match="1 classes"):
        actions.run(tmp_path / "one.npz")
    np.savez(tmp_path / "few.npz", **(arrays | {"joint_names": np.array(list("abcdefghijklm"))}))
    with pytest.raises(UsageError, match="no joint 'head'"):
        actions.run(train, tmp_path / "few.npz")


def test_test_labels_are_counted_as_the_training_file_counts_them(tmp_path):
    known = read_set(write_set(tmp_path / "a.npz", [1], 0), JOINTS)
    arrays = dict(np.load(tmp_path / "a.npz"))
    turned = {"action": 2 - arrays["action"], "action_names": arrays["action_names"][::-1]}
    np.savez(tmp_path / "b.npz", **(arrays | turned))
    fitting = actions.fitting(read_set(tmp_path / "b.npz", JOINTS), known, tmp_path / "a.npz")
    assert fitting.labels.tolist() == known.labels.tolist()


def test_rows_are_told_as_they_come(capsys):
    rows = actions.Rows()
    rows.add([BenchRow(name="ours", figures={"accuracy": 0.5}, must=">= 0.9", holds=False)])
    assert "MISSED: ours: accuracy 0.5" in capsys.readouterr().err
    assert len(rows.all) == 1


def test_registration_brings_the_views_together(monkeypatch):
    monkeypatch.setattr(actions_views, "YAWS", (10.0,))
    monkeypatch.setattr(actions_views, "SCENES", 2)
    (row,) = actions_views.view_rows()
    assert row.holds
    assert row.figures["median_error"] < 0.02 < row.figures["median_error_without"]


def test_made_strokes_are_found_by_the_real_finder():
    clip, true = made_strokes(6, seed=2)
    motion = measure_motion(clip, JOINTS, view="flat")
    found = find_strokes(motion, JOINTS, min_speed=0.8, min_distance=0.25, min_s=0.1)
    spans = [Span(s.first, s.last, s.label) for s in found]
    assert len(true) == 12
    assert match_spans(spans, true) >= 11


def test_made_sequences_are_smooth_and_their_spans_lie_apart(tmp_path):
    data = read_set(write_set(tmp_path / "made_train.npz", [1, 2], 0), JOINTS)
    for made in made_sequences(data, 3, seed=1):
        assert len(made.actions) == 5
        ends = [(s.first, s.last) for s in made.actions]
        assert all(a[1] < b[0] for a, b in pairwise(ends))
        assert made.activities[0].first == ends[0][0]
        assert made.activities[-1].last == ends[-1][1] < len(made.clip.joints)
        steps = np.abs(np.diff(made.clip.joints, axis=0)).max()
        assert steps < 1.0


def test_spans_are_matched_once_and_only_with_their_label():
    true = [Span(0, 9, "a"), Span(10, 19, "b")]
    assert match_spans([Span(0, 9, "a"), Span(1, 9, "a"), Span(10, 19, "a")], true) == 1
    assert match_spans([Span(0, 4, "a"), Span(16, 30, "b")], true) == 1
    assert match_spans([], true) == 0


def test_folds_keep_persons_together():
    folds = group_folds(np.array([5, 5, 7, 7, 9, 9, 11, 11]))
    assert (folds[::2] == folds[1::2]).all()
    assert set(folds) == {0, 1, 2, 3}


@pytest.mark.slow
def test_the_whole_table_on_a_made_set(tmp_path, monkeypatch):
    monkeypatch.setattr(actions, "SEEDS", (0,))
    monkeypatch.setattr(actions, "PLAIN_SEEDS", (0,))
    monkeypatch.setattr(actions_jobs, "CLIPS_SEEN", 240)
    monkeypatch.setattr(actions_jobs, "MIN_EPOCHS", 10)
    monkeypatch.setattr(actions_views, "SCENES", 1)
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: {0})
    train = write_set(tmp_path / "made_train.npz", [1, 2, 3, 4], 0)
    test = write_set(tmp_path / "made_test.npz", [5, 6], 1)
    report = actions.run(train, test)
    rows = {row.name: row for row in report.rows}
    assert 0.0 <= rows["ours"].figures["accuracy"] <= 1.0
    assert rows["kernel ridge regression"].figures["accuracy"] > 0.8
    assert rows["ours"].must == "better than every plain way"
    assert rows["ours, x and y only"].must is None
    assert rows["timing rules for confused pairs"].figures["ours_gain_in_clips"] is not None
    for name in ("macro segments", "meso segments", "micro segments"):
        assert 0.0 <= rows[name].figures["precision"] <= 1.0
        assert 0.0 <= rows[name].figures["recall"] <= 1.0
    assert "published" not in rows
    assert {"adaptive window", "keyframes", "timing rules for confused pairs"} <= set(rows)


def test_files_of_other_classes_are_refused(tmp_path):
    train = write_set(tmp_path / "a.npz", [1, 2], 0)
    test = write_set(tmp_path / "b.npz", [2], 0, classes=("x", "y", "z"))
    with pytest.raises(UsageError, match="no class 'x'"):
        actions.run(train, test)
    assert len(normalise_clips([], JOINTS, view="flat")) == 0
