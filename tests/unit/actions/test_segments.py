"""Cuts, strokes and keyframes where the formula put them; nesting; the ring buffer."""

import numpy as np
import pytest
from made_skeletons import clip, standing, waving

from engines.actions.motion import active_runs, change_points, keyframes, measure_motion
from engines.actions.normalise import normalise
from engines.actions.segments import SegmentSettings, label_run, segment
from engines.actions.skeleton import JOINTS
from engines.actions.stream import LiveActions, LiveSettings, PoseRing
from engines.actions.strokes import find_strokes
from engines.errors import UsageError

WRIST = JOINTS.index("right_wrist")


def reach(moments, way):
    """Minimum-jerk way of the right wrist."""
    share = np.linspace(0.0, 1.0, moments)
    along = 10 * share**3 - 15 * share**4 + 6 * share**5
    joints = standing(moments)
    joints[:, WRIST, :2] += along[:, None] * np.array(way)
    return joints


def still_then_up_then_still():
    up = reach(20, (0.0, -1.0))
    return clip(np.concatenate([standing(40), up, np.repeat(up[-1:], 40, axis=0)]))


def by_hand(windows):
    """Class 0 where the right wrist is above the shoulder at most moments, else class 1."""
    out = []
    for window in windows:
        joints, _ = normalise(window, JOINTS, view="flat")
        high = (joints[:, WRIST, 1] < -1.0).mean()
        out.append([high, 1.0 - high])
    return np.array(out, np.float32).reshape(len(out), 2)


def test_a_stroke_is_found_once_where_it_is_and_named():
    motion = measure_motion(still_then_up_then_still(), JOINTS, view="flat")
    (stroke,) = find_strokes(motion, JOINTS, min_speed=0.8, min_distance=0.25, min_s=0.1)
    assert stroke.label == "right wrist up"
    assert abs(stroke.first - 40) <= 4
    assert abs(stroke.last - 59) <= 4
    assert abs(stroke.peak - 49) <= 2
    assert stroke.score > 0.99


def test_nothing_moves_nothing_is_found():
    still = clip(standing(90))
    motion = measure_motion(still, JOINTS, view="flat")
    assert find_strokes(motion, JOINTS, min_speed=0.8, min_distance=0.25, min_s=0.1) == []
    assert segment(still, JOINTS, by_hand, SegmentSettings()) == []


def test_activity_begins_and_ends_with_the_movement():
    motion = measure_motion(still_then_up_then_still(), JOINTS, view="flat")
    ((first, last),) = active_runs(motion, enter=0.2, leave=0.1, bridge_s=0.3, min_s=0.2)
    assert 36 <= first <= 46
    assert 53 <= last <= 64


def test_keyframes_are_inside_and_never_missing():
    motion = measure_motion(waving(90), JOINTS, view="flat")
    assert all(10 <= k <= 50 for k in keyframes(motion, 10, 50, prominence=1.0))
    assert len(keyframes(motion, 10, 50, prominence=1e6)) == 1


def test_the_cut_lies_where_the_label_changes():
    two = clip(np.concatenate([waving(75).joints, waving(75).joints + 0.0]))
    joints = two.joints.copy()
    joints[75:, WRIST, 1] += 2.0
    both = clip(joints)
    parts = label_run(both, (0, 30, 75, 110, 150), by_hand, SegmentSettings())
    assert [(p.first, p.last, p.label) for p in parts] == [(0, 74, 0), (75, 149, 1)]


def test_segments_are_nested_and_fill_their_run():
    moving = np.concatenate([standing(30), waving(90).joints, standing(60), waving(60).joints])
    found = segment(clip(moving), JOINTS, by_hand, SegmentSettings())
    assert len(found) == 2
    for macro in found:
        assert macro.parts[0].first == macro.first
        assert macro.parts[-1].last == macro.last
        for before, after in zip(macro.parts, macro.parts[1:], strict=False):
            assert after.first == before.last + 1
        for part in macro.parts:
            assert part.strokes
            assert all(part.first <= s.first <= s.last <= part.last for s in part.strokes)


def test_change_points_keep_their_distance():
    motion = measure_motion(waving(120), JOINTS, view="flat")
    cuts = change_points(motion, spacing_s=0.3)
    assert len(cuts) > 2
    assert np.diff(cuts).min() >= 9


def test_ring_gives_the_last_poses_whatever_was_pushed():
    ring = PoseRing(5, 2)
    for k in range(13):
        ring.push(np.full((2, 3), k, np.float32), np.full(2, k, np.float32))
        joints, visibility = ring.last(4)
        expected = list(range(max(0, k - 3), k + 1))
        assert joints[:, 0, 0].tolist() == expected
        assert visibility[:, 1].tolist() == expected
    assert len(ring) == 5
    assert ring.last(99)[0][:, 0, 0].tolist() == [8, 9, 10, 11, 12]
    assert np.shares_memory(ring.last(3)[0], ring.last(5)[0])
    with pytest.raises(UsageError):
        PoseRing(0, 2)


def test_live_window_starts_anew_when_the_movement_changes():
    joints = np.concatenate([standing(90), waving(40).joints])
    live = LiveActions(by_hand, JOINTS, rate_hz=30.0, settings=LiveSettings(every=1))
    seen = np.ones(len(JOINTS), np.float32)
    said = [live.push(pose.astype(np.float32), seen) for pose in joints]
    assert said[14] is None
    assert said[89].window == 90
    assert said[89].label == 1
    assert said[108].window <= 30
    assert said[-1].label == 0


def test_a_forearm_that_waves_alone_is_activity_and_a_body_that_sways_is_not():
    settings = SegmentSettings()
    limits = {
        "enter": settings.enter_energy,
        "leave": settings.leave_energy,
        "bridge_s": settings.bridge_s,
        "min_s": settings.min_macro_s,
    }
    waved = measure_motion(waving(90, hz=1.5, reach=0.3), JOINTS, view="flat")
    assert [last - first + 1 for first, last in active_runs(waved, **limits)] == [
        pytest.approx(90, abs=12)
    ]
    rng = np.random.default_rng(0)
    swaying = clip(standing(90) + np.cumsum(rng.normal(0, 0.004, (90, 1, 3)), axis=0))
    assert active_runs(measure_motion(swaying, JOINTS, view="flat"), **limits) == []
