"""The whole way from pose tracks to facts, with the weights that ship."""

import json
from importlib.resources import files

import numpy as np
import pytest
from made_skeletons import clip, squatting, standing, waving

from engines.actions import classify
from engines.actions.classify import open_classifier
from engines.actions.describe import describe_actions
from engines.actions.recognise import MOVEMENT, UNRECOGNISED, recognise
from engines.actions.skeleton import BLAZEPOSE_ROWS, JOINTS, from_blazepose
from engines.actions.taxonomy import OTHER, load_taxonomy
from engines.contracts.actions import ActionsParams, PersonTrack, PoseDocument
from engines.contracts.base import Coverage
from engines.errors import EngineError, UsageError

WIDTH, HEIGHT, RATE = 640, 360, 30
PARAMS = ActionsParams(threads=1)


def as_blobs(*people, gap_at=None, gap=900):
    """One track for each [T, 13, 3]; BlazePose's 33 landmarks, one tick is 1/90 s."""
    joints, pts, tracks = [], [], []
    for number, person in enumerate(people):
        landmarks = np.zeros((len(person), 33, 4), np.float32)
        landmarks[..., 3] = 1.0
        landmarks[:, BLAZEPOSE_ROWS, 0] = (person[..., 0] * 40.0 + 320.0) / WIDTH
        landmarks[:, BLAZEPOSE_ROWS, 1] = (person[..., 1] * 40.0 + 200.0) / HEIGHT
        rows = sum(map(len, joints))
        joints.append(landmarks)
        times = 900 + 3 * np.arange(len(person))
        if gap_at is not None:
            times[gap_at:] += gap
        pts.append(times)
        tracks.append(
            PersonTrack(
                track=f"person-{number + 1}", first_row=rows, last_row=rows + len(person) - 1
            )
        )
    document = PoseDocument(
        tracks=tuple(tracks),
        model="made",
        time_base_num=1,
        time_base_den=90,
        rate_hz=RATE,
        width=WIDTH,
        height=HEIGHT,
        coverage=Coverage(covered_s=5.0, skipped_s=0.0),
    )
    every = np.concatenate(joints)
    return document, every, every[..., :3], np.concatenate(pts).astype(np.int64)


def busy():
    return np.concatenate(
        [standing(40), waving(75, reach=0.5).joints, standing(60), squatting(60).joints,
         standing(40)]
    )  # fmt: skip


def test_facts_are_nested_ordered_and_on_the_clock():
    document = recognise(*as_blobs(busy(), busy()), PARAMS)
    actions = document.actions
    assert {a.granularity for a in actions} == {"macro", "meso", "micro"}
    assert {a.person_track for a in actions} == {"person-1", "person-2"}
    above = {"meso": "macro", "micro": "meso"}
    for ordinal, action in enumerate(actions):
        assert (action.span.time_base_num, action.span.time_base_den) == (1, 90)
        assert 900 <= action.span.start_pts < action.span.end_pts <= 900 + 3 * 275
        assert all(action.span.start_pts <= k < action.span.end_pts for k in action.keyframe_pts)
        if action.granularity == "macro":
            assert action.parent is None
            continue
        number = int(action.parent.removeprefix("action:"))
        parent = actions[number]
        assert number < ordinal
        assert parent.granularity == above[action.granularity]
        assert parent.person_track == action.person_track
        assert parent.span.start_pts <= action.span.start_pts
        assert action.span.end_pts <= parent.span.end_pts
    assert len([a for a in actions if a.granularity == "macro"]) == 4


def test_labels_come_from_the_taxonomy_or_say_that_none_fits():
    actions = recognise(*as_blobs(busy()), PARAMS).actions
    titles = {entry.title for entry in load_taxonomy().classes}
    for action in actions:
        if action.granularity == "macro":
            assert action.label in titles | {MOVEMENT}
        if action.granularity == "meso":
            assert action.label in titles | {OTHER}
            assert (UNRECOGNISED in action.flags) == (action.label == OTHER)
    nothing = recognise(
        *as_blobs(busy()), PARAMS.model_copy(update={"min_probability": 1.0})
    ).actions
    assert {a.label for a in nothing if a.granularity == "macro"} == {MOVEMENT}


def test_sitting_down_and_standing_up_are_told_apart():
    down = squatting(60, depth=0.9).joints[:30]
    sat = np.repeat(down[-1:], 60, axis=0)
    person = np.concatenate([standing(40), down, sat, down[::-1], standing(40)])
    actions = recognise(*as_blobs(person), PARAMS).actions
    meso = [a.label for a in actions if a.granularity == "meso"]
    assert meso == ["sit down", "stand up"]


def test_a_class_is_not_claimed_where_its_joints_were_not_seen():
    document, joints, _, _ = as_blobs(waving(60).joints)
    aspect, classifier = document.width / document.height, open_classifier()

    def claimed(landmarks):
        able = classifier.claimable(from_blazepose(landmarks, RATE, aspect))
        return {name for name, said in zip(classifier.classes, able, strict=True) if said}

    every = set(classifier.classes) - {"sit_down", "stand_up"}
    assert claimed(joints) == every
    legs, below, bare = {"walk", "jog", "squat", "pick_up"}, joints.copy(), joints.copy()
    below[:, 25:29, 1] = 1.1
    assert claimed(below) == every - legs
    one_side = joints.copy()
    one_side[:, [13, 15, 25, 27], 3] = 0.1
    assert claimed(one_side) == every
    bare[:, 1:, 3] = 0.1
    assert claimed(bare) == {OTHER}


def test_sitting_down_is_claimed_of_hips_that_sink_over_the_knees():
    down, classifier = squatting(60, depth=0.9).joints[:30], open_classifier()
    names = classifier.classes

    def claimed(moments):
        able = classifier.claimable(clip(moments))
        return able[names.index("sit_down")], able[names.index("stand_up")]

    assert classify.hips_rise(clip(down)) == pytest.approx(-0.45, abs=0.05)
    assert claimed(down) == (True, False)
    assert claimed(down[::-1]) == (False, True)
    lowered = standing(60)
    lowered[..., 1] += np.linspace(0.0, 1.0, 60)[:, None]  # as if the camera rose
    assert claimed(lowered) == (False, False)
    assert claimed(standing(3)) == (False, False)


def test_what_was_denied_is_not_told(monkeypatch):
    down = squatting(60, depth=0.9).joints[:30]
    blobs = as_blobs(np.concatenate([standing(40), down, np.repeat(down[-1:], 60, axis=0)]))
    assert "sit down" in {a.label for a in recognise(*blobs, PARAMS).actions}
    monkeypatch.setattr(classify, "MIN_SEEN", 1.1)
    denied = recognise(*blobs, PARAMS).actions
    assert {a.label for a in denied if a.granularity != "micro"} == {OTHER, MOVEMENT}
    assert all(a.score > 0.9 for a in denied if a.granularity == "meso")


def test_nobody_and_nobody_moving_give_no_fact():
    empty = PoseDocument(
        tracks=(), model="made", coverage=Coverage(covered_s=0, skipped_s=3, reason="no person")
    )
    document = recognise(
        empty, np.zeros((0, 33, 4), np.float32), np.zeros((0, 33, 3), np.float32),
        np.zeros(0, np.int64), PARAMS,
    )  # fmt: skip
    assert document.actions == ()
    assert document.coverage.reason == "no person"
    assert recognise(*as_blobs(standing(90)), PARAMS).actions == ()


def test_a_track_of_one_row_is_said_not_to_be_enough():
    document = recognise(*as_blobs(standing(1)), PARAMS)
    assert document.actions == ()
    assert "long enough" in document.coverage.reason


def test_nothing_is_told_of_a_gap():
    actions = recognise(*as_blobs(busy(), gap_at=130), PARAMS).actions
    assert actions
    hole = (900 + 3 * 130 + 3, 900 + 3 * 130 + 900)
    assert all(a.span.end_pts <= hole[0] or a.span.start_pts >= hole[1] for a in actions)


@pytest.mark.parametrize(("size", "runs"), [(1.2, 1), (0.8, 1), (2.2, 2), (0.4, 2)])
def test_who_is_found_after_a_loss_with_another_size_is_somebody_else(size, runs):
    wave = waving(80, reach=0.5).joints
    person = np.concatenate([wave[:40], wave[40:] * size])
    actions = recognise(*as_blobs(person, gap_at=40, gap=45), PARAMS).actions
    macros = [a for a in actions if a.granularity == "macro"]
    assert len(macros) == runs
    lost, found = 900 + 3 * 39, 900 + 3 * 40 + 45
    bridged = [a for a in macros if a.span.start_pts < lost and a.span.end_pts > found]
    assert len(bridged) == (runs == 1)


def test_a_change_of_size_without_a_loss_ends_nothing():
    wave = waving(80, reach=0.5).joints
    person = np.concatenate([wave[:40], wave[40:42] * 2.2, wave[42:]])
    actions = recognise(*as_blobs(person), PARAMS).actions
    assert len([a for a in actions if a.granularity == "macro"]) == 1


def test_a_hand_that_is_raised_waved_and_lowered_is_a_wave_more_often_than_not():
    classifier, rest = open_classifier(), standing(1)
    share = np.linspace(0.0, 1.0, 15)[:, None, None]

    def whole(hz, reach):
        wave = waving(75, hz=hz, reach=reach).joints
        raised, held = (rest * (1 - share) + pose * share for pose in (wave[:1], wave[-1:]))
        return clip(np.concatenate([raised, wave, held[::-1]]))

    waves = [whole(hz, reach) for hz in (1.0, 1.5, 2.0) for reach in (0.25, 0.35, 0.5)]
    said = classifier.scores(waves).argmax(axis=1)
    assert (said == classifier.classes.index("wave")).mean() > 0.5


def test_blobs_that_do_not_fit_are_refused():
    document, joints, world, pts = as_blobs(busy())
    with pytest.raises(EngineError, match="rows"):
        recognise(document, joints[:-1], world, pts, PARAMS)
    with pytest.raises(EngineError, match="size"):
        recognise(document.model_copy(update={"width": 0}), joints, world, pts, PARAMS)


def test_the_model_is_described_by_its_weights_without_loading_it():
    described = describe_actions(PARAMS)
    assert described.threads == 1
    assert len(described.model_revision) == 64
    with pytest.raises(UsageError, match="actions-17"):
        describe_actions(ActionsParams(model="none"))


def test_what_ships_agrees_with_its_record_and_taxonomy():
    classifier = open_classifier()
    folder = files("engines.actions").joinpath("weights")
    record = json.loads(folder.joinpath("actions-17-record.json").read_bytes())
    assert classifier.classes == load_taxonomy().names == tuple(record["classes"])
    assert classifier.min_probability == record["min_probability"]
    assert len(classifier.classes) == 18
    matrix = np.array(record["confusion_matrix"])
    assert matrix.sum() == record["clips"]
    assert np.trace(matrix) / matrix.sum() == pytest.approx(record["accuracy"], abs=1e-3)
    assert "research" in record["licence"]
    assert all(len(sha) == 64 for sha in record["data_sha256"].values())
    assert len(JOINTS) == 13
