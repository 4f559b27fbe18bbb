"""From a confusion matrix to timing rules and prompts for exactly the pairs that are mixed up.

The matrix gives the pairs with most confusions; a rule is the one timing and threshold that best
tells the clips of a pair apart. It is applied only where one of the two leads and the other is
close, and it is kept only if it helps on clips that it was not learned from.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from pydantic import Field

from engines.actions.normalise import View
from engines.actions.skeleton import Floats, SkeletonClip
from engines.actions.taxonomy import Taxonomy
from engines.actions.timing import TIMINGS, timings
from engines.contracts.base import Contract

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

MIN_CONFUSED: Final = 2
"""A pair that was confused less often is left alone: a rule for it would be learned from chance."""
MIN_GAIN: Final = 2
"""Clips that a rule must put right, less those that it spoils, where it was not learned."""
MARGINS: Final = (0.1, 0.2, 0.35, 0.5, 1.0)
_QUANTILES: Final = np.linspace(0.1, 0.9, 17)


class TimingRule(Contract):
    """Of two classes, says which by one timing."""

    below: str
    """Class where the timing is below the threshold."""
    above: str
    timing: str
    threshold: float
    margin: float = Field(gt=0, le=1)
    """Applied where one of the two leads and their probabilities differ by less than this."""
    gain: int
    """Clips put right, less clips spoiled, by rules learned the same way without those clips."""


class RuleBook(Contract):
    """The rules that go with a model, and what a language model is told instead."""

    model: str
    rules: tuple[TimingRule, ...]
    prompts: tuple[str, ...]
    """One for each rule."""
    pairs: tuple["ConfusedPair", ...]
    """All that were confused, also those for which no rule helped."""
    accuracy_before: float
    accuracy_after: float
    """Of clips from which neither the network nor the rules were learned."""


class ConfusedPair(Contract):
    """Two classes that are taken for each other."""

    first: str
    second: str
    confused: int
    clips: int


def confusion_matrix(true: Ints, said: Ints, classes: int) -> Ints:
    """int64 [classes, classes]; rows are true, columns what was said."""
    flat = np.bincount(true * classes + said, minlength=classes * classes)
    return flat.reshape(classes, classes).astype(np.int64)


def confused_pairs(matrix: Ints, names: Sequence[str], *, most: int = 8) -> list[ConfusedPair]:
    """Pairs with at least ``MIN_CONFUSED`` confusions, most confused first."""
    both = matrix + matrix.T
    rows, columns = np.triu_indices(len(names), 1)
    order = np.argsort(-both[rows, columns], kind="stable")[:most]
    totals = matrix.sum(axis=1)
    return [
        ConfusedPair(
            first=names[i],
            second=names[j],
            confused=int(both[i, j]),
            clips=int(totals[i] + totals[j]),
        )
        for i, j in ((int(rows[k]), int(columns[k])) for k in order)
        if both[i, j] >= MIN_CONFUSED
    ]


def clip_timings(
    clips: Sequence[SkeletonClip], joint_names: Sequence[str], *, view: View
) -> Doubles:
    """float64 [n, timings] for ``learn_rules`` and ``correct``."""
    rows = [timings(clip, joint_names, view=view) for clip in clips]
    return np.array(rows).reshape(len(rows), len(TIMINGS))


def learn_rules(
    probabilities: Floats, labels: Ints, measured: Doubles, folds: Ints, names: Sequence[str]
) -> list[TimingRule]:
    """Rules for the confused pairs, from predictions for clips that were not trained on.

    A rule is kept only if rules that were learned the same way without a fold, asked about that
    fold, gain ``MIN_GAIN`` clips over all folds.

    Args:
        probabilities: float32 [n, C], out of fold.
        labels: int64 [n].
        measured: float64 [n, timings].
        folds: int64 [n]; clips of one person are in one fold.
        names: of the C classes.
    """
    matrix = confusion_matrix(labels, probabilities.argmax(axis=1), len(names))
    rules = []
    for pair in confused_pairs(matrix, names):
        gain = 0
        for fold in np.unique(folds):
            learn, check = folds != fold, folds == fold
            rule = _best_rule(pair, probabilities[learn], labels[learn], measured[learn], names)
            if rule is not None:
                gain += _gain(rule, probabilities[check], labels[check], measured[check], names)
        rule = _best_rule(pair, probabilities, labels, measured, names)
        if rule is not None and gain >= MIN_GAIN:
            rules.append(rule.model_copy(update={"gain": gain}))
    return rules


def _gain(
    rule: TimingRule, probabilities: Floats, labels: Ints, measured: Doubles, names: Sequence[str]
) -> int:
    """Clips that the rule puts right, less those that it spoils."""
    after = correct(probabilities, measured, [rule], names).argmax(axis=1)
    before = probabilities.argmax(axis=1)
    return int((after == labels).sum()) - int((before == labels).sum())


def _best_rule(
    pair: ConfusedPair,
    probabilities: Floats,
    labels: Ints,
    measured: Doubles,
    names: Sequence[str],
) -> TimingRule | None:
    """The stump that tells the pair's clips apart best, with the margin that gains most."""
    a, b = names.index(pair.first), names.index(pair.second)
    own = np.isin(labels, (a, b))
    is_b = labels[own] == b
    if is_b.all() or not is_b.any():
        return None
    column, threshold, b_above = _best_stump(measured[own], is_b)
    below, above = (a, b) if b_above else (b, a)
    rules = [
        TimingRule(
            below=names[below],
            above=names[above],
            timing=list(TIMINGS)[column],
            threshold=round(threshold, 4),
            margin=margin,
            gain=0,
        )
        for margin in MARGINS
    ]
    gains = [_gain(rule, probabilities, labels, measured, names) for rule in rules]
    best = int(np.argmax(gains))
    return rules[best] if gains[best] > 0 else None


def _best_stump(measured: Doubles, is_b: npt.NDArray[np.bool_]) -> tuple[int, float, bool]:
    """Column, threshold and side with the highest balanced accuracy."""
    best = (-1.0, 0, 0.0, True)
    for column in range(measured.shape[1]):
        for threshold in np.unique(np.quantile(measured[:, column], _QUANTILES)):
            above = measured[:, column] > threshold
            right = (float(above[is_b].mean()) + float((~above[~is_b]).mean())) / 2.0
            best = max(best, (right, column, float(threshold), True))
            best = max(best, (1.0 - right, column, float(threshold), False))
    return best[1:]


def _close(probabilities: Floats, a: int, b: int, margin: float) -> npt.NDArray[np.bool_]:
    """Rows, bool [n], in which a or b leads and the other is close."""
    leads = np.isin(probabilities.argmax(axis=1), (a, b))
    return np.asarray(leads & (np.abs(probabilities[:, a] - probabilities[:, b]) < margin))


def correct(
    probabilities: Floats, measured: Doubles, rules: Sequence[TimingRule], names: Sequence[str]
) -> Floats:
    """Probabilities with the two values exchanged wherever a rule says the other class.

    Args:
        probabilities: float32 [n, C].
        measured: float64 [n, timings].
        rules: those of pairs that are confused most come first, and go first.
        names: of the C classes.
    """
    out = probabilities.copy()
    columns = list(TIMINGS)
    for rule in rules:
        below, above = names.index(rule.below), names.index(rule.above)
        at = _close(out, below, above, rule.margin)
        is_above = measured[:, columns.index(rule.timing)] > rule.threshold
        swap = at & ((out[:, above] > out[:, below]) != is_above)
        out[np.ix_(swap, (below, above))] = out[np.ix_(swap, (above, below))]
    return out


def apply_rules(
    rules: Sequence[TimingRule],
    window: SkeletonClip,
    joint_names: Sequence[str],
    names: Sequence[str],
    probabilities: Floats,
) -> Floats:
    """``correct`` for one flat window, float32 [C]; measured only where a rule may apply."""
    leader = names[int(probabilities.argmax())]
    asked = [rule for rule in rules if leader in (rule.below, rule.above)]
    if not asked:
        return probabilities
    measured = timings(window, joint_names)[None]
    return np.asarray(correct(probabilities[None], measured, asked, names)[0])


def corrective_prompt(rule: TimingRule, taxonomy: Taxonomy) -> str:
    """What a language model that judges clips is told about one confused pair."""
    entries = {entry.name: entry for entry in taxonomy.classes}

    def told(name: str) -> tuple[str, str]:
        if name in entries:
            return entries[name].title, entries[name].definition
        return name.replace("_", " "), taxonomy.other.definition

    (below, below_is), (above, above_is) = told(rule.below), told(rule.above)
    return (
        f'"{below}" and "{above}" are easily taken for each other. '
        f"{below.capitalize()}: {below_is} {above.capitalize()}: {above_is} "
        "Where both seem possible, look at this: "
        f'{TIMINGS[rule.timing]}. Up to {rule.threshold:.2f} say "{below}", above it say "{above}".'
    )
