"""Strokes of a raised hand, counted on skeletons that move by formula and on drawn people."""

import numpy as np
import pytest
from made_people import follow, raised_arm
from made_skeletons import clip, standing, waving

from engines.actions.classify import open_classifier
from engines.actions.drawing import Place, draw_people
from engines.actions.recognise import recognise
from engines.actions.skeleton import JOINTS, SkeletonClip
from engines.actions.waving import longest_waving
from engines.contracts.actions import ActionsParams

PARAMS = ActionsParams(threads=1)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("rate_hz", [12.0, 25.0, 60.0])
@pytest.mark.parametrize("hz", [0.8, 1.5, 2.5])
def test_strokes_are_counted_whatever_the_rate(side, rate_hz, hz):
    found, share = longest_waving(waving(round(4 * rate_hz), rate_hz, side, hz, 0.35))
    assert abs(found - 2 * hz * 4) <= 1.5
    assert share > 0.9


def test_the_share_is_that_of_the_waving():
    wave = waving(60).joints
    longer = clip(np.concatenate([np.repeat(wave[:1], 60, axis=0), wave]))
    assert longest_waving(longer)[1] == pytest.approx(0.5, abs=0.06)


def _hand(x, y, other=None):
    joints = standing(90)
    joints[:, JOINTS.index("right_elbow"), :2] = [-0.75, -1.1]
    joints[:, JOINTS.index("right_wrist"), 0] = x
    joints[:, JOINTS.index("right_wrist"), 1] = y
    if other is not None:
        joints[:, JOINTS.index("left_wrist"), :2] = other
    return clip(joints)


TIME = np.arange(90) / 30.0
SWING = 0.35 * np.sin(2 * np.pi * 1.5 * TIME)
CLAP = 0.2 * np.sin(2 * np.pi * 1.5 * TIME)


@pytest.mark.parametrize(
    "made",
    [
        _hand(-0.75 + SWING, np.full(90, -0.3)),
        _hand(np.full(90, -0.75), -1.7 + SWING),
        _hand(-0.75 + 0.1 * SWING, np.full(90, -1.7)),
        _hand(-0.2 + CLAP, np.full(90, -1.4), np.stack([0.2 - CLAP, np.full(90, -1.4)], axis=1)),
        _hand(-0.75 + 0.35 * np.sin(2 * np.pi * 0.3 * TIME), np.full(90, -1.7)),
        clip(standing(90)),
        clip(standing(1)),
    ],
    ids=["hand down", "up and down", "trembling", "clapping", "slow", "standing", "one pose"],
)
def test_what_is_no_waving(made):
    assert longest_waving(made)[0] < 4


def test_an_arm_that_is_not_seen_does_not_wave():
    wave = waving(90)
    hidden = wave.visibility.copy()
    hidden[:, JOINTS.index("right_wrist")] = np.where(np.arange(90) % 2, 0.2, 0.9)
    assert longest_waving(SkeletonClip(wave.joints, hidden, wave.rate_hz))[0] == 0


def test_somebody_who_shakes_does_not_wave():
    rng = np.random.default_rng(4)
    raised = np.repeat(waving(1).joints, 90, axis=0)
    shaken = [clip(raised + rng.normal(0, 0.08, raised.shape)) for _ in range(20)]
    assert max(longest_waving(one)[0] for one in shaken) < 4


@pytest.mark.parametrize("side", ["left", "right"])
def test_waving_without_end_is_a_wave_and_probabilities_stay_probabilities(side):
    classifier = open_classifier()
    scores = classifier.scores([waving(75, side=side, hz=hz) for hz in (1.0, 1.5, 2.0)])
    assert np.array(classifier.classes)[scores.argmax(axis=1)].tolist() == ["wave"] * 3
    assert scores[:, classifier.classes.index("wave")].min() > 0.8
    assert np.allclose(scores.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("hz", [1.0, 1.5, 2.0])
def test_a_drawn_person_who_waves_throughout_waves(hz):
    angles = 0.6 * np.sin(2 * np.pi * hz * np.arange(36) / 12)
    people = [(raised_arm(angle), Place(190, 118, 150)) for angle in angles]
    document, rows = follow(draw_people((384, 216), person)[0] for person in people)
    found = recognise(document, rows.joints, rows.world, rows.pts, PARAMS).actions
    labels = [action.label for action in found if action.granularity == "meso"]
    assert labels == ["wave"]
