"""The clips of all skeleton sets under one taxonomy, as the shipped network is trained on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.dataset import SkeletonSet, read_set
from engines.actions.normalise import NormalisedClips, View, even_effort, normalise_clips
from engines.actions.skeleton import JOINTS, SkeletonClip, from_kinect
from engines.actions.taxonomy import OTHER, Taxonomy
from engines.errors import UsageError

Ints = npt.NDArray[np.int64]

FILES: Final = ("utd_mhad_train", "penn_action_train", "florence3d", "utkinect")
STILL: Final = "made:still"
MAX_OTHER_PER_CLASS: Final = 24
"""Of each class that counts as other: there are many such classes."""
FLAT: Final = 2
"""Axes that the shipped network reads."""
_STILL_CLIPS: Final = 160
_STILL_S: Final = 2.0
_DRIFT: Final = 0.03
"""Sway of a person who stands still, torso lengths; BlazePose shakes about as much."""


@dataclass(frozen=True)
class Union:
    """Labelled clips of the shared joints."""

    clips: tuple[SkeletonClip, ...]
    normalised: NormalisedClips
    labels: Ints
    """int64 [n], into the taxonomy's names."""
    sources: tuple[str, ...]
    """``SET:CLASS`` of each clip."""
    groups: tuple[str, ...]
    """``SET/PERSON`` of each clip, or ``SET/CLIP`` where persons are not told."""
    hashes: dict[str, str]
    """SHA-256 by file name."""


def read_union(directory: Path, taxonomy: Taxonomy, *, seed: int) -> Union:
    """Read all sets of ``FILES``.

    Raises:
        UsageError: a file is missing or is no skeleton set.
        EngineError: the taxonomy does not say what to do with one of its classes.
    """
    parts: list[tuple[SkeletonSet, Ints]] = []
    hashes = {}
    for stem in FILES:
        path = directory / f"{stem}.npz"
        if not path.is_file():
            msg = f"no file {path.name} in {directory}"
            raise UsageError(msg)
        found = read_set(path, JOINTS)
        hashes[path.name] = found.sha256
        if found.has_depth:
            found = replace(found, clips=tuple(from_kinect(clip) for clip in found.clips))
        parts.append((found, _chosen(found, taxonomy, np.random.default_rng(seed))))
    return _join(parts, taxonomy, hashes, seed)


def _chosen(data: SkeletonSet, taxonomy: Taxonomy, rng: np.random.Generator) -> Ints:
    """Rows to keep: every clip of a class, a bounded number of each other class."""
    other = taxonomy.names.index(OTHER)
    rows: list[int] = []
    for label, name in enumerate(data.class_names):
        target = taxonomy.class_of(f"{data.name}:{name}")
        at = np.flatnonzero(data.labels == label)
        if target is None:
            continue
        if target == other and len(at) > MAX_OTHER_PER_CLASS:
            at = rng.choice(at, MAX_OTHER_PER_CLASS, replace=False)
        rows += [int(row) for row in at]
    return np.array(sorted(rows), np.int64)


def _join(
    parts: Sequence[tuple[SkeletonSet, Ints]],
    taxonomy: Taxonomy,
    hashes: dict[str, str],
    seed: int,
) -> Union:
    clips: list[SkeletonClip] = []
    labels: list[int] = []
    sources: list[str] = []
    groups: list[str] = []
    normalised: list[NormalisedClips] = []
    rng = np.random.default_rng(seed)
    for data, rows in parts:
        some = data.select(rows)
        names = [f"{data.name}:{data.class_names[label]}" for label in some.labels]
        persons = [f"{data.name}/{group}" for group in some.groups]
        still_from = rng.choice(len(some.clips), _STILL_CLIPS // len(parts))
        still = [make_still(some.clips[int(i)], rng) for i in still_from]
        every = [*some.clips, *still]
        clips += every
        sources += [*names, *(STILL for _ in still)]
        groups += [*persons, *(persons[int(i)] for i in still_from)]
        labels += [label for name in names if (label := taxonomy.class_of(name)) is not None]
        labels += [taxonomy.names.index(OTHER)] * len(still)
        view: View = "front" if data.has_depth else "flat"
        normalised.append(even_effort(normalise_clips(every, JOINTS, view=view), FLAT))
    joined = normalised[0]
    for more in normalised[1:]:
        joined = joined.join(more)
    return Union(
        tuple(clips), joined, np.array(labels, np.int64), tuple(sources), tuple(groups), hashes
    )


def make_still(clip: SkeletonClip, rng: np.random.Generator) -> SkeletonClip:
    """Somebody who keeps one pose of a clip for two seconds and sways a little."""
    count = max(2, round(_STILL_S * clip.rate_hz))
    pose = int(rng.integers(len(clip.joints)))
    height = float(np.ptp(clip.joints[pose, :, 1])) or 1.0
    torso = height / 3.0
    sway = np.cumsum(rng.normal(0.0, 1.0, (count, clip.joints.shape[1], 3)), axis=0)
    sway *= _DRIFT * torso / max(float(np.abs(sway).max()), 1e-9)
    joints = clip.joints[pose][None] + sway
    visibility = np.repeat(clip.visibility[pose][None], count, axis=0)
    return SkeletonClip(joints.astype(np.float32), visibility, clip.rate_hz)
