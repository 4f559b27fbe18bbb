"""Joints, sides and axes; holes and jumps; what normalising must and must not change."""

import numpy as np
import pytest
from made_skeletons import clip, standing, waving

from engines.actions.dataset import read_set
from engines.actions.normalise import (
    disturb,
    mirror,
    normalise,
    normalise_clips,
    remove_jumps,
    turn,
)
from engines.actions.skeleton import (
    BLAZEPOSE_ROWS,
    JOINTS,
    SkeletonClip,
    from_blazepose,
    from_kinect,
    joint_rows,
    mirror_rows,
)
from engines.errors import UsageError


def test_mirror_rows_swap_sides_and_keep_the_middle():
    rows = mirror_rows(JOINTS)
    assert rows[JOINTS.index("head")] == JOINTS.index("head")
    assert rows[JOINTS.index("left_knee")] == JOINTS.index("right_knee")
    assert [rows[r] for r in rows] == list(range(len(JOINTS)))


def test_a_missing_joint_is_named():
    with pytest.raises(UsageError, match="left_hip"):
        joint_rows(["head", "right_hip"], ["head", "left_hip"])


def test_blazepose_rows_and_aspect():
    landmarks = np.zeros((2, 33, 4), np.float32)
    landmarks[:, 15] = (0.5, 0.25, 0.1, 0.9)  # the left wrist
    found = from_blazepose(landmarks, 25.0, aspect=16 / 9)
    wrist = JOINTS.index("left_wrist")
    assert BLAZEPOSE_ROWS[wrist] == 15
    assert found.joints[0, wrist] == pytest.approx([0.5 * 16 / 9, 0.25, 0.1 * 16 / 9])
    assert found.visibility[0, wrist] == pytest.approx(0.9)
    landmarks[1, 15, 0] = 1.2  # outside of the picture: a guess
    assert from_blazepose(landmarks, 25.0, 1.0).visibility[:, wrist].tolist() == [
        pytest.approx(0.9),
        0.0,
    ]
    with pytest.raises(UsageError, match="17"):
        from_blazepose(np.zeros((2, 17, 4), np.float32), 25.0, 1.0)


def _lengths(joints):
    """Legs, arms, shoulders, hips and head over the torso, medians over the moments."""
    at = dict(zip(JOINTS, joints.swapaxes(0, 1), strict=True))

    def way(first, second):
        return np.median(np.linalg.norm(first - second, axis=1))

    upper = (at["left_shoulder"] + at["right_shoulder"]) / 2
    lower = (at["left_hip"] + at["right_hip"]) / 2
    leg = way(at["left_hip"], at["left_knee"]) + way(at["left_knee"], at["left_ankle"])
    arm = way(at["left_shoulder"], at["left_elbow"]) + way(at["left_elbow"], at["left_wrist"])
    shoulders = way(at["left_shoulder"], at["right_shoulder"])
    hips = way(at["left_hip"], at["right_hip"])
    return np.array([leg, arm, shoulders, hips, way(at["head"], upper)]) / way(upper, lower)


def test_kinect_hips_and_head_move_and_nothing_else():
    person = waving(20)
    found = from_kinect(person)
    moved = {name for k, name in enumerate(JOINTS) if (found.joints != person.joints)[:, k].any()}
    assert moved == {"left_hip", "right_hip", "head"}
    # A torso of 1, legs of 1.8: 0.3 of the one go over to the other.
    assert _lengths(found.joints)[0] == pytest.approx(1.5 / 1.3, abs=0.01)
    assert _lengths(found.joints)[4] == pytest.approx(0.5 * 0.75 / 1.3, abs=0.01)
    other = from_kinect(SkeletonClip(person.joints * 3 + 7, person.visibility, person.rate_hz))
    assert np.allclose(other.joints, found.joints * 3 + 7, atol=1e-4)


@pytest.mark.parametrize("name", ["utd_mhad_train", "florence3d", "utkinect"])
def test_bodies_of_the_kinect_sets_become_those_of_video(skeletons_dir, name):
    clips = read_set(skeletons_dir / f"{name}.npz", JOINTS).clips
    found = np.median([_lengths(from_kinect(clip).joints) for clip in clips[::5]], axis=0)
    # BlazePose on ordinary video, and Penn Action: 1.3 to 1.6, 0.85 to 1, 0.55 to 0.7 ...
    assert (np.array([1.3, 0.85, 0.5, 0.3, 0.3]) <= found).all()
    assert (found <= np.array([1.6, 1.1, 0.75, 0.5, 0.53])).all()


@pytest.mark.parametrize("view", ["flat", "kept", "front"])
def test_normalising_forgets_place_and_size(view):
    moved = waving()
    other = SkeletonClip(moved.joints * 7.0 + 300.0, moved.visibility, moved.rate_hz)
    a, _ = normalise(moved, JOINTS, view=view)
    b, _ = normalise(other, JOINTS, view=view)
    assert a.shape == (64, 14, 3)
    assert np.abs(a - b).max() < 2e-3
    torso = a[:, JOINTS.index("left_shoulder"), 1] - a[:, JOINTS.index("left_hip"), 1]
    assert torso == pytest.approx(np.full(64, -1.0), abs=1e-3)


def test_front_view_forgets_where_the_camera_stood_and_flat_does_not():
    moved = waving()
    aside = turn(moved, 40.0)
    front = [normalise(c, JOINTS, view="front")[0] for c in (moved, aside)]
    flat = [normalise(c, JOINTS, view="flat")[0] for c in (moved, aside)]
    assert np.abs(front[0] - front[1]).max() < 1e-3
    assert np.abs(flat[0] - flat[1]).max() > 0.1


def test_the_same_movement_at_another_rate_comes_out_alike():
    slow, fast = waving(40, 20.0, hz=1.0), waving(80, 40.0, hz=1.0)
    a, b = (normalise(c, JOINTS, view="flat")[0] for c in (slow, fast))
    assert np.abs(a - b).max() < 0.15


def test_an_unseen_joint_is_left_out_and_a_hole_is_bridged():
    moved = waving()
    visibility = moved.visibility.copy()
    ankle, wrist = JOINTS.index("left_ankle"), JOINTS.index("right_wrist")
    visibility[:, ankle] = 0.1
    visibility[20:24, wrist] = 0.0
    joints = moved.joints.copy()
    joints[20:24, wrist] = 1e6
    found, mask = normalise(SkeletonClip(joints, visibility, 30.0), JOINTS, view="flat")
    assert mask[ankle] == 0
    assert not found[:, ankle].any()
    assert mask[wrist] == 1
    assert np.abs(found).max() < 5


def test_no_number_is_lost_when_nothing_is_seen():
    nobody = SkeletonClip(
        np.full((9, 13, 3), np.nan, np.float32), np.zeros((9, 13), np.float32), 30.0
    )
    found, mask = normalise(nobody, JOINTS, view="flat")
    assert np.isfinite(found).all()
    assert not mask.any()


def test_waist_up_pictures_are_scaled_by_the_shoulders():
    moved = waving()
    visibility = moved.visibility.copy()
    for name in JOINTS[7:]:
        visibility[:, JOINTS.index(name)] = 0.0
    found, mask = normalise(SkeletonClip(moved.joints, visibility, 30.0), JOINTS, view="flat")
    assert mask.sum() == 7
    assert 0.5 < np.abs(found[:, JOINTS.index("head")]).max() < 3.0


@pytest.mark.parametrize("hidden", ["shoulder", "hip", "shoulder hip", "left_shoulder left_hip"])
def test_whatever_is_hidden_a_body_keeps_about_its_size(hidden):
    moved = waving()
    whole, _ = normalise(moved, JOINTS, view="flat")
    visibility = moved.visibility.copy()
    gone = [i for i, name in enumerate(JOINTS) if any(part in name for part in hidden.split())]
    visibility[:, gone] = 0.0
    found, mask = normalise(SkeletonClip(moved.joints, visibility, 30.0), JOINTS, view="flat")
    kept = np.flatnonzero(mask)
    assert len(kept) == len(JOINTS) - len(gone)
    larger = np.ptp(found[:, kept], axis=(0, 1)).max() / np.ptp(whole[:, kept], axis=(0, 1)).max()
    assert 0.6 < larger < 1.6
    assert np.abs(found).max() < 6.0


def test_a_jump_of_one_frame_goes_and_a_stroke_stays():
    joints = standing(60)
    joints[:, 5, 0] += np.where(np.arange(60) > 30, 1.0, 0.0)
    joints[10, 3] += 5.0
    smooth = remove_jumps(joints, 30.0)
    assert np.abs(smooth[10, 3] - joints[9, 3]).max() < 1e-9
    assert smooth[40, 5, 0] - smooth[20, 5, 0] == pytest.approx(1.0)


def test_mirror_twice_is_nothing_and_disturbing_is_seeded():
    clips = normalise_clips([waving(), waving(side="left")], JOINTS, view="flat")
    assert np.array_equal(mirror(mirror(clips, JOINTS), JOINTS).joints, clips.joints)
    a, b = (disturb(clips, 0.1, 0.3, seed=4) for _ in range(2))
    assert np.array_equal(a.joints, b.joints)
    assert (a.mask[:, -1] == 1).all()
    assert len(normalise_clips([], JOINTS, view="flat")) == 0


def test_one_pose_is_enough_to_normalise():
    found, _ = normalise(clip(standing(1)), JOINTS, view="flat")
    assert np.isfinite(found).all()
