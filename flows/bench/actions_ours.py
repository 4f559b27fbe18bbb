"""Ours: five networks and a kernel machine, put together and judged on given clips."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.covariance import fit_kernel_machine, with_views
from engines.actions.dataset import SkeletonSet
from engines.actions.normalise import NormalisedClips, View, disturb, normalise_clips, turn
from engines.actions.skeleton import Floats
from engines.actions.training import with_mirrored
from flows.bench.actions_jobs import NOISES, TURNS, Material, Outcome, noise_name

Ints = npt.NDArray[np.int64]
NETWORK_SHARE: Final = 0.5
"""Of the networks in the mean with the kernel machine; chosen on the training files."""
FLAT: Final = 2
MIRROR_GAIN: Final = 0.01
"""Share of the clips that mirror images must put right; less is chance and costs twice as much."""
_FOLDS: Final = 4


@dataclass(frozen=True)
class Judged:
    """Probabilities [m, classes] of each part, for each view of the test clips."""

    networks: tuple[dict[str, Floats], ...]
    kernel: dict[str, Floats]

    def ensemble(self, view: str = "plain") -> Floats:
        """Mean of the networks."""
        return np.asarray(np.mean([n[view] for n in self.networks], axis=0), np.float32)

    def ours(self, view: str = "plain") -> Floats:
        """Networks and kernel machine."""
        both = NETWORK_SHARE * self.ensemble(view) + (1.0 - NETWORK_SHARE) * self.kernel[view]
        return np.asarray(both, np.float32)


def accuracy(probabilities: Floats, labels: Ints) -> float:
    """Share of rows whose largest value is the label's."""
    return float((probabilities.argmax(axis=1) == labels).mean())


def make_material(known: SkeletonSet, asked: SkeletonSet, *, dimensions: int) -> Material:
    """Normalised clips of both sides, and whether mirror images help, told by the training side.

    Args:
        known: to train on.
        asked: to judge on.
        dimensions: 3 reads depth and turns bodies to the front; 2 reads what a camera sees: no
            test clip has depth then, and training clips have it only to be turned.
    """
    names = known.joint_names
    flat = dimensions == FLAT
    of_known: View = "front" if not flat else "kept" if known.has_depth else "flat"
    of_asked: View = "flat" if flat else "front"
    train = normalise_clips(known.clips, names, view=of_known)
    plain = normalise_clips(asked.clips, names, view=of_asked)
    views = {"plain": plain}
    for degrees in TURNS if known.has_depth else ():
        turned = [turn(clip, degrees) for clip in asked.clips]
        views[f"turned {degrees:g}"] = normalise_clips(turned, names, view=of_asked)
    for noise, dropout in NOISES:
        views[noise_name(noise, dropout)] = disturb(plain, noise, dropout, seed=0)
    mirrored = mirror_helps(train, known, dimensions)
    classes = len(known.class_names)
    return Material(
        train, known.labels, views, classes, names, dimensions, known.has_depth, mirrored
    )


def group_folds(groups: Ints, folds: int = _FOLDS) -> Ints:
    """int64 [n]: persons dealt to folds by chance; clips, where there is one person only."""
    unique, inverse = np.unique(groups, return_inverse=True)
    if len(unique) == 1:
        unique, inverse = np.arange(len(groups)), np.arange(len(groups))
    dealt = np.random.default_rng(0).permutation(len(unique)) % folds
    return np.asarray(dealt[inverse], np.int64)


def mirror_helps(train: NormalisedClips, known: SkeletonSet, dimensions: int) -> bool:
    """Whether the kernel machine, with persons left out, is better with mirror images added."""
    fold_of = group_folds(known.groups)
    right = [0, 0]
    for fold in range(min(_FOLDS, 2)):
        check = fold_of == fold
        learn, labels = train.select(~check), known.labels[~check]
        both = with_mirrored(learn, labels, known.joint_names)
        for way, (clips, said) in enumerate(((learn, labels), both)):
            machine = fit_kernel_machine(clips, said, len(known.class_names), dimensions)
            found = machine.probabilities(train.select(check)).argmax(axis=1)
            right[way] += int((found == known.labels[check]).sum())
    return right[1] - right[0] > MIRROR_GAIN * len(known.labels)


def judge(material: Material, outcomes: Sequence[Outcome]) -> Judged:
    """The networks beside kernel machines, trained and asked alike.

    A flat kernel machine knows one view only: a second one, with copies of the training clips seen
    from aside, is asked too.
    """
    clips, labels = material.train, material.labels
    if material.mirrored:
        clips, labels = with_mirrored(clips, labels, material.joint_names)
    sets = [(clips, labels)]
    if material.has_depth and material.dimensions == FLAT:
        sets.append(with_views(clips, labels))
    machines = [fit_kernel_machine(c, y, material.classes, material.dimensions) for c, y in sets]

    def asked(some: NormalisedClips) -> Floats:
        said = [machine.probabilities(some) for machine in machines]
        return np.asarray(np.mean(said, axis=0), np.float32)

    return Judged(tuple(o.views for o in outcomes), material.asked(asked))
