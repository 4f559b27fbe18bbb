"""Trains the network that ships, and writes down how good it is and from what it was made.

Each clip is learned from twice: as its sensor or its annotators have it, and as the pose estimator
sees it when it is drawn.

Four folds: the persons of a fold (clips of Penn Action, which names no persons) are left out, and
so is a quarter of the classes that count as other, to see what the network does with movements that
it has never met. The figures come from those; what ships is then trained on everything.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.augment import Augmentation
from engines.actions.confusions import (
    RuleBook,
    clip_timings,
    confused_pairs,
    confusion_matrix,
    correct,
    corrective_prompt,
    learn_rules,
)
from engines.actions.estimated import ToSee
from engines.actions.normalise import NormalisedClips, disturb, even_effort, normalise_clips, turn
from engines.actions.skeleton import JOINTS, Floats, SkeletonClip
from engines.actions.taxonomy import OTHER, Taxonomy, load_taxonomy
from engines.actions.training import (
    TrainedNetwork,
    TrainingSettings,
    train_network,
    with_mirrored,
)
from engines.actions.union import FLAT, STILL, Union, read_union
from engines.actions.weights import StoredModel, to_bytes

Bools = npt.NDArray[np.bool_]

FOLDS: Final = 4
_TELL_EVERY: Final = 50
THRESHOLDS: Final = tuple(round(0.05 * k, 2) for k in range(4, 18))
SETTINGS: Final = TrainingSettings(
    dimensions=FLAT,
    epochs=18,
    batch_size=48,
    balance=0.5,
    augmentation=Augmentation(
        turn_degrees=60.0,
        crop=0.5,  # video shows actions without their ends: see docs/actions.md
        extend=0.2,
        scale=0.15,
        offset=0.06,
        noise=0.03,
        joint_dropout=0.1,
    ),
)
LICENCE: Final = (
    "the weights were trained on UTD-MHAD, Penn Action, Florence 3D Actions and UTKinect-Action3D, "
    "which are for research use with citation"
)
Say = Callable[[str], None]
SeeAll = Callable[[Sequence[ToSee]], Iterator[SkeletonClip | None]]
"""Calls ``seen_by_estimator`` for each, on as many cores as there are."""


@dataclass(frozen=True)
class Shipment:
    """What is stored."""

    weights: bytes
    rules: bytes
    record: dict[str, object]
    """Data hashes, settings, figures: JSON."""


@dataclass(frozen=True)
class _Material:
    """All that is learned from."""

    union: Union
    taxonomy: Taxonomy
    rows: npt.NDArray[np.int64]
    """int64 [k], rising: which clips of the union the pose estimator found somebody in."""
    seen: NormalisedClips
    """What it saw, k of them."""

    def train(self, chosen: Bools, seed: int) -> TrainedNetwork:
        """A network from some of the clips, bool [n]."""
        union, names = self.union, self.taxonomy.names
        mirrored = self.taxonomy.mirrored
        image = np.array([names.index(mirrored.get(name, name)) for name in names], np.int64)
        too = chosen[self.rows]
        clips = union.normalised.select(chosen).join(self.seen.select(too))
        labels = np.concatenate([union.labels[chosen], union.labels[self.rows[too]]])
        clips, labels = with_mirrored(clips, labels, JOINTS, image)
        return train_network(clips, labels, len(names), JOINTS, SETTINGS, has_depth=True, seed=seed)


@dataclass(frozen=True)
class _FoldScores:
    """Predictions for clips whose persons were left out, and for classes never met."""

    probabilities: Floats
    """float32 [n, classes] for every clip, by the network that did not see its person."""
    unseen: Floats
    """float32 [n, classes] for clips of other classes, by the network that never met the class."""
    turned: Floats
    disturbed: Floats
    """Like ``probabilities``, 30 degrees aside; and with jitter and missing joints."""
    estimated: Floats
    """The same for what the pose estimator saw, float32 [k, classes]."""


def train_shipment(directory: Path, *, name: str, seed: int, see_all: SeeAll, say: Say) -> Shipment:
    """Everything from the files to what is stored.

    Args:
        directory: with the four skeleton files.
        name: of the model.
        seed: of everything random.
        see_all: runs the pose estimator.
        say: told what is going on.

    Raises:
        UsageError, EngineError: see ``read_union`` and ``seen_by_estimator``.
    """
    taxonomy = load_taxonomy()
    union = read_union(directory, taxonomy, seed=seed)
    say(f"{len(union.clips)} clips, {len(taxonomy.names)} classes")
    material = _material(union, taxonomy, seed, see_all, say)
    fold_of, class_fold = assign_folds(union)
    scores = _cross_validate(material, fold_of, class_fold, seed, say)
    known = union.labels != taxonomy.names.index(OTHER)
    measured = clip_timings(union.clips, JOINTS, view="flat")
    book = rule_book(name, union.labels, taxonomy, scores.probabilities, fold_of, measured)
    threshold, curve = choose_threshold(scores.probabilities, scores.unseen, union.labels, known)
    final = material.train(np.ones(len(known), np.bool_), seed)
    weights = to_bytes(StoredModel(final, taxonomy.names, threshold))
    record = _record(material, scores, seed)
    record |= {"min_probability": threshold, "thresholds": curve}
    record |= {"rules_accuracy": [book.accuracy_before, book.accuracy_after]}
    return Shipment(weights, book.model_dump_json(indent=2).encode() + b"\n", record)


def _material(union: Union, taxonomy: Taxonomy, seed: int, see_all: SeeAll, say: Say) -> _Material:
    wanted = [
        ToSee(clip, bool(np.any(clip.joints[..., 2])), (seed, row))
        for row, clip in enumerate(union.clips)
    ]
    found: dict[int, SkeletonClip] = {}
    for row, clip in enumerate(see_all(wanted)):
        if clip is not None:
            found[row] = clip
        if (row + 1) % _TELL_EVERY == 0:
            say(f"{row + 1} of {len(wanted)} clips drawn, somebody found in {len(found)}")
    seen = normalise_clips(list(found.values()), JOINTS, view="flat")
    return _Material(union, taxonomy, np.array(list(found), np.int64), even_effort(seen, FLAT))


def assign_folds(union: Union) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Fold of each clip by its person, and by its source class: int64 [n] twice.

    Within each set the persons take turns, so that each fold has some of every set.
    """
    by_person = {group: k for k, group in enumerate(sorted(set(union.groups)))}
    by_source = {source: k for k, source in enumerate(sorted(set(union.sources)))}
    persons = np.array([by_person[g] % FOLDS for g in union.groups], np.int64)
    sources = np.array([by_source[s] % FOLDS for s in union.sources], np.int64)
    return persons, sources


def _cross_validate(
    material: _Material,
    fold_of: npt.NDArray[np.int64],
    class_fold: npt.NDArray[np.int64],
    seed: int,
    say: Say,
) -> _FoldScores:
    union, names = material.union, material.taxonomy.names
    other = union.labels == names.index(OTHER)
    met = np.array([source == STILL for source in union.sources])
    shape = (len(union.labels), len(names))
    held, unseen, turned, disturbed = (np.zeros(shape, np.float32) for _ in range(4))
    estimated = np.zeros((len(material.rows), len(names)), np.float32)
    for fold in range(FOLDS):
        away = fold_of == fold
        never = other & ~met & (class_fold == fold)
        network = material.train(~away & ~never, seed)
        clips = _seen_from(union, away, 0.0)
        held[away] = _scores(network, clips)
        unseen[never] = _scores(network, _seen_from(union, never, 0.0))
        turned[away] = _scores(network, _seen_from(union, away, 30.0))
        disturbed[away] = _scores(network, disturb(clips, 0.05, 0.1, seed))
        too = away[material.rows]
        estimated[too] = network.probabilities(material.seen.select(too))
        right = held[away].argmax(axis=1) == union.labels[away]
        say(f"fold {fold + 1} of {FOLDS}: {right.mean():.3f} of {away.sum()} clips right")
    return _FoldScores(held, unseen, turned, disturbed, estimated)


def _seen_from(union: Union, rows: Bools, degrees: float) -> NormalisedClips:
    """Some clips as one camera aside has them; those without depth only get narrower."""
    chosen = [turn(union.clips[i], degrees) for i in np.flatnonzero(rows)]
    return normalise_clips(chosen, JOINTS, view="flat")


def _scores(network: TrainedNetwork, clips: NormalisedClips) -> Floats:
    return network.probabilities(even_effort(clips, FLAT))


def choose_threshold(
    held: Floats, unseen: Floats, labels: npt.NDArray[np.int64], known: Bools
) -> tuple[float, list[dict[str, float]]]:
    """The probability below which a window counts as none of the classes.

    Args:
        held: float32 [n, classes], by networks that did not see the clip's person.
        unseen: float32 [n, classes], by networks that never met the clip's class; zero rows
            where there is none.
        labels: int64 [n].
        known: bool [n], clips of a class that is not other.

    Returns:
        The threshold with the highest mean of two shares, and for each threshold tried: known clips
        that get their class, and clips of classes never met that get none.
    """
    other = held.shape[1] - 1
    judged = unseen.sum(axis=1) > 0
    curve = []
    for threshold in THRESHOLDS:
        said, sure = held[known].argmax(axis=1), held[known].max(axis=1) >= threshold
        right = float(((said == labels[known]) & sure).mean())
        stray = unseen[judged]
        rejected = (stray.argmax(axis=1) == other) | (stray.max(axis=1) < threshold)
        curve.append(
            {
                "min_probability": threshold,
                "known_right": round(right, 4),
                "never_met_rejected": round(float(rejected.mean()), 4),
            }
        )
    best = max(curve, key=lambda row: row["known_right"] + row["never_met_rejected"])
    return best["min_probability"], curve


def rule_book(
    name: str,
    labels: npt.NDArray[np.int64],
    taxonomy: Taxonomy,
    held: Floats,
    fold_of: npt.NDArray[np.int64],
    measured: npt.NDArray[np.float64],
) -> RuleBook:
    """Rules from all held-out predictions; their gain from rules that did not see the fold.

    Args:
        name: of the model.
        labels: int64 [n].
        taxonomy: of the labels.
        held: float32 [n, classes], by networks that did not see the clip's person.
        fold_of: int64 [n].
        measured: float64 [n, timings], as ``clip_timings`` gives them.

    Returns:
        The book; without a rule where rules gain nothing on folds they were not learned from.
    """
    names = taxonomy.names
    after = np.zeros_like(held)
    for fold in range(FOLDS):
        learn, check = fold_of != fold, fold_of == fold
        rules = learn_rules(held[learn], labels[learn], measured[learn], fold_of[learn], names)
        after[check] = correct(held[check], measured[check], rules, names)
    matrix = confusion_matrix(labels, held.argmax(axis=1), len(names))
    before_right = float((held.argmax(axis=1) == labels).mean())
    after_right = float((after.argmax(axis=1) == labels).mean())
    gains = after_right > before_right
    rules = learn_rules(held, labels, measured, fold_of, names) if gains else []
    return RuleBook(
        model=name,
        rules=tuple(rules),
        prompts=tuple(corrective_prompt(rule, taxonomy) for rule in rules),
        pairs=tuple(confused_pairs(matrix, names)),
        accuracy_before=round(before_right, 4),
        accuracy_after=round(after_right, 4),
    )


def _record(material: _Material, scores: _FoldScores, seed: int) -> dict[str, object]:
    union, names = material.union, material.taxonomy.names
    labels = union.labels
    said = scores.probabilities.argmax(axis=1)
    known = labels != names.index(OTHER)
    drawn = labels[material.rows]
    right = scores.estimated.argmax(axis=1) == drawn
    return {
        "data_sha256": union.hashes,
        "licence": LICENCE,
        "protocol": f"{FOLDS} folds by person (Penn Action by clip), x and y only",
        "seed": seed,
        "settings": asdict(SETTINGS),
        "clips": len(labels),
        "accuracy": _share(said == labels),
        "accuracy_known": _share((said == labels)[known]),
        "accuracy_known_30_degrees": _share((scores.turned.argmax(axis=1) == labels)[known]),
        "accuracy_known_noise_0.05_dropout_0.1": _share(
            (scores.disturbed.argmax(axis=1) == labels)[known]
        ),
        "clips_estimated": len(drawn),
        "accuracy_known_estimated": _share(right[known[material.rows]]),
        "accuracy_other_estimated": _share(right[~known[material.rows]]),
        "per_class": _per_class(names, labels, said),
        "confusion_matrix": confusion_matrix(labels, said, len(names)).tolist(),
        "classes": list(names),
    }


def _per_class(
    names: Sequence[str], labels: npt.NDArray[np.int64], said: npt.NDArray[np.int64]
) -> dict[str, dict[str, float]]:
    out = {}
    for row, name in enumerate(names):
        is_class, told = labels == row, said == row
        out[name] = {
            "clips": int(is_class.sum()),
            "recall": _share(told[is_class]),
            "precision": _share(is_class[told]),
        }
    return out


def _share(right: Bools) -> float:
    return round(float(right.mean()), 4) if len(right) else 0.0


def record_bytes(record: dict[str, object]) -> bytes:
    """As JSON, the same for the same record."""
    return json.dumps(record, indent=1).encode() + b"\n"
