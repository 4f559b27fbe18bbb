"""Ours: five networks and a kernel machine, put together and judged on given clips."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.covariance import (
    describe,
    fit_kernel_machine,
    join,
    seen_aside,
    select,
)
from engines.actions.dataset import SkeletonSet
from engines.actions.normalise import (
    NormalisedClips,
    View,
    disturb,
    even_effort,
    mirror,
    normalise_clips,
    turn,
)
from engines.actions.skeleton import Floats
from flows.bench.actions_jobs import NOISES, TURNS, Material, noise_name

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


def make_material(
    known: SkeletonSet, asked: SkeletonSet, *, dimensions: int, plain_only: bool = False
) -> Material:
    """Clips of both sides at an even effort, and whether mirror images help by the training side.

    Args:
        known: to train on.
        asked: to judge on.
        dimensions: 3 reads depth and turns bodies to the front; 2 reads what a camera sees: no
            test clip has depth then, and training clips have it only to be turned.
        plain_only: leave out the turned and the disturbed test clips.
    """
    names = known.joint_names
    flat = dimensions == FLAT
    of_known: View = "front" if not flat else "kept" if known.has_depth else "flat"
    of_asked: View = "flat" if flat else "front"
    steady = normalise_clips(known.clips, names, view=of_known)
    train = even_effort(steady, dimensions)
    # A flat clip shows one view: copies seen from aside are made while there is depth to do it.
    aside = seen_aside(steady) if of_known == "kept" else ()
    plain = normalise_clips(asked.clips, names, view=of_asked)
    views = {"plain": plain}
    for degrees in TURNS if known.has_depth and not plain_only else ():
        turned = [turn(clip, degrees) for clip in asked.clips]
        views[f"turned {degrees:g}"] = normalise_clips(turned, names, view=of_asked)
    for noise, dropout in () if plain_only else NOISES:
        views[noise_name(noise, dropout)] = disturb(plain, noise, dropout, seed=0)
    views = {name: even_effort(clips, dimensions) for name, clips in views.items()}
    mirrored = mirror_helps(train, known, dimensions)
    return Material(
        train,
        tuple(even_effort(clips, dimensions) for clips in aside),
        known.labels,
        views,
        len(known.class_names),
        names,
        dimensions,
        known.has_depth,
        mirrored,
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
    plain = describe(train, dimensions)
    image = describe(mirror(train, known.joint_names), dimensions)
    right = [0, 0]
    for fold in range(min(_FOLDS, 2)):
        learn, check = fold_of != fold, fold_of == fold
        for way, parts in enumerate(((plain,), (plain, image))):
            features = join(*(select(part, learn) for part in parts))
            labels = np.tile(known.labels[learn], len(parts))
            machine = fit_kernel_machine(features, labels, len(known.class_names))
            found = machine.probabilities(select(plain, check)).argmax(axis=1)
            right[way] += int((found == known.labels[check]).sum())
    return right[1] - right[0] > MIRROR_GAIN * len(known.labels)


def kernel_views(material: Material) -> dict[str, Floats]:
    """Probabilities [m, classes] of a kernel machine for each view of the test clips.

    It learns from the training clips, from copies seen from aside where there are some, and from
    mirror images of all where those help.
    """
    copies = [material.train, *material.aside]
    if material.mirrored:
        copies += [mirror(clips, material.joint_names) for clips in copies]
    features = join(*(describe(clips, material.dimensions) for clips in copies))
    labels = np.tile(material.labels, len(copies))
    machine = fit_kernel_machine(features, labels, material.classes)
    return material.asked(lambda clips: machine.probabilities(describe(clips, material.dimensions)))
