"""Clips drawn and seen through the pose estimator."""

import numpy as np
import pytest
from made_skeletons import clip, squatting, waving

from engines.actions.estimated import RATE_HZ, ToSee, seen_by_estimator
from engines.actions.normalise import normalise
from engines.actions.skeleton import JOINTS, SkeletonClip
from engines.actions.waving import longest_waving


def _seen(made, number=0, *, has_depth=False):
    return seen_by_estimator(ToSee(made, has_depth, (0, number)))


def test_the_movement_is_found_again_in_the_pictures():
    made = squatting(60)
    found = _seen(made)
    assert found.duration_s == pytest.approx(made.duration_s, abs=2 / RATE_HZ)
    wanted, _ = normalise(made, JOINTS, view="flat", frames=16)
    got, _ = normalise(found, JOINTS, view="flat", frames=16)
    knees = [JOINTS.index("left_knee"), JOINTS.index("right_knee")]
    for row in knees:
        assert np.corrcoef(wanted[:, row, 1], got[:, row, 1])[0, 1] > 0.9


def test_strokes_of_a_hand_survive():
    made = waving(90, hz=1.5)
    assert abs(longest_waving(_seen(made))[0] - longest_waving(made)[0]) <= 2


def test_the_same_number_gives_the_same_and_another_does_not():
    made = waving(40)
    assert np.array_equal(_seen(made).joints, _seen(made).joints)
    assert not np.array_equal(_seen(made).joints, _seen(made, 1).joints)


def test_a_turned_person_is_narrower():
    def width(found):
        ways = found.joints[:, JOINTS.index("left_shoulder"), 0]
        return float(np.median(ways - found.joints[:, JOINTS.index("right_shoulder"), 0]))

    made = waving(30)
    widths = [width(_seen(made, number, has_depth=True)) for number in range(6)]
    assert min(widths) < 0.9 * max(widths)


def test_what_cannot_be_drawn_is_left_out():
    assert _seen(clip(waving(10).joints)) is None
    made = waving(40)
    hidden = made.visibility.copy()
    hidden[:, JOINTS.index("left_ankle")] = 0.0
    assert _seen(SkeletonClip(made.joints, hidden, made.rate_hz)) is None
