"""Confused pairs are found, rules are learned only where they help, and change nothing else."""

import numpy as np
from made_skeletons import squatting, waving

from engines.actions.confusions import (
    TimingRule,
    apply_rules,
    clip_timings,
    confused_pairs,
    confusion_matrix,
    correct,
    corrective_prompt,
    learn_rules,
)
from engines.actions.skeleton import JOINTS
from engines.actions.taxonomy import load_taxonomy
from engines.actions.timing import TIMINGS, timings

NAMES = ("wave", "knock", "squat")
FOLDS = np.arange(40) // 10
COLUMN = list(TIMINGS).index("strokes_per_s")


def torn(n=40, seed=0):
    """Waves and knocks that a classifier cannot tell apart, but their stroke rate can."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    measured = rng.normal(0.0, 1.0, (n, len(TIMINGS)))
    measured[:, COLUMN] = labels * 3.0 + rng.normal(0.0, 0.2, n)
    lean = rng.uniform(-0.05, 0.05, n)
    probabilities = np.stack([0.45 + lean, 0.45 - lean, np.full(n, 0.1)], axis=1)
    return probabilities.astype(np.float32), labels, measured


def test_matrix_and_pairs():
    matrix = confusion_matrix(np.array([0, 0, 1, 1, 1, 2]), np.array([1, 0, 0, 0, 1, 2]), 3)
    assert matrix.tolist() == [[1, 1, 0], [2, 1, 0], [0, 0, 1]]
    (pair,) = confused_pairs(matrix, NAMES)
    assert (pair.first, pair.second, pair.confused, pair.clips) == ("wave", "knock", 3, 5)


def test_a_rule_learned_on_some_clips_puts_others_right():
    (rule,) = learn_rules(*torn(seed=1), FOLDS, NAMES)
    assert rule.timing == "strokes_per_s"
    assert (rule.below, rule.above) == ("wave", "knock")
    probabilities, labels, measured = torn(seed=2)
    before = (probabilities.argmax(axis=1) == labels).mean()
    after = (correct(probabilities, measured, [rule], NAMES).argmax(axis=1) == labels).mean()
    assert before < 0.7
    assert after > 0.95


def test_no_rule_where_timings_say_nothing():
    probabilities, labels, measured = torn()
    noise = np.zeros_like(measured)
    assert learn_rules(probabilities, labels, noise, FOLDS, NAMES) == []


def test_a_rule_leaves_sure_and_other_clips_alone():
    rule = TimingRule(
        below="wave", above="knock", timing="strokes_per_s", threshold=1.0, margin=0.2, gain=9
    )
    sure = np.array([[0.8, 0.15, 0.05], [0.3, 0.25, 0.45]], np.float32)
    measured = np.full((2, len(TIMINGS)), 5.0)
    assert np.array_equal(correct(sure, measured, [rule], NAMES), sure)
    close = np.array([0.5, 0.45, 0.05], np.float32)
    fast = apply_rules([rule], waving(hz=3.0), JOINTS, NAMES, close)
    assert fast.tolist() == [close[1], close[0], close[2]]


def test_timings_measure_what_they_are_called():
    wave = dict(zip(TIMINGS, timings(waving(90, hz=2.0), JOINTS), strict=True))
    squat = dict(zip(TIMINGS, timings(squatting(90), JOINTS), strict=True))
    assert 3.0 < wave["strokes_per_s"] < 5.0
    assert wave["raised_share"] == 1.0
    assert squat["raised_share"] == 0.0
    assert abs(squat["lowest_at"] - 0.5) < 0.1
    assert squat["depth"] > 0.5 > wave["depth"]
    assert clip_timings([], JOINTS, view="flat").shape == (0, len(TIMINGS))


def test_the_prompt_names_both_classes_and_the_threshold():
    rule = TimingRule(
        below="wave", above="knock", timing="strokes_per_s", threshold=1.234, margin=0.2, gain=9
    )
    text = corrective_prompt(rule, load_taxonomy())
    assert "1.23" in text
    assert text.count("knock") >= 2
    assert TIMINGS["strokes_per_s"] in text
