"""Reads skeleton data sets (npz; joints as int16 times a scale) into clips in picture axes."""

import hashlib
import itertools
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.skeleton import SkeletonClip, joint_rows
from engines.errors import EmptyInputError, UsageError

Ints = npt.NDArray[np.int64]

KINECT_SIGNS: Final = (-1.0, -1.0, 1.0)
"""Kinect's x grows towards the person's right and its y upwards."""
NOMINAL_RATE_HZ: Final = {"utd": 30.0, "penn": 30.0, "florence": 10.0, "utkinect": 15.0}
"""Florence and UTKinect store fewer frames than the sensor's 30: rates from the clips' lengths."""
DEFAULT_RATE_HZ: Final = 30.0
_RANK: Final = 3
_AXES: Final = (2, 3)
_REQUIRED: Final = ("joints", "scale", "offsets", "action", "action_names", "joint_names")


@dataclass(frozen=True)
class SkeletonSet:
    """Labelled clips of one source."""

    name: str
    clips: tuple[SkeletonClip, ...]
    labels: Ints
    """int64 [n], into ``class_names``."""
    class_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    groups: Ints
    """int64 [n]: the person, or a number of its own for each clip where persons are not told."""
    has_depth: bool
    splits: tuple[tuple[Ints, Ints], ...] = ()
    """Stored (train groups, test groups), where the file has them."""
    sha256: str = ""

    def select(self, rows: npt.NDArray[np.bool_] | Ints) -> "SkeletonSet":
        """Some of the clips."""
        at = np.arange(len(self.clips))[rows]
        return SkeletonSet(
            self.name,
            tuple(self.clips[i] for i in at),
            self.labels[at],
            self.class_names,
            self.joint_names,
            self.groups[at],
            self.has_depth,
            self.splits,
            self.sha256,
        )


def read_set(path: Path, joints: tuple[str, ...] | None = None) -> SkeletonSet:
    """One file.

    Args:
        path: npz with joints int16 [frames, J, 2 or 3], scale, offsets, action, action_names,
            joint_names; optionally subject, visible and cross_subject_train and _test.
        joints: which, in which order; None takes all that the file has.

    Raises:
        UsageError: not such a file, its arrays do not fit together, or a joint is missing.
        EmptyInputError: no clip in it.
    """
    if not path.is_file():
        msg = f"no file {str(path)!r}"
        raise UsageError(msg)
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        msg = f"{path.name} is not a skeleton file: {error}"
        raise UsageError(msg) from error
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        msg = f"{path.name} has no array {missing[0]!r}"
        raise UsageError(msg)
    if arrays["offsets"].size <= 1:
        msg = f"{path.name} holds no clip"
        raise EmptyInputError(msg)
    problem = _problem(arrays)
    if problem is not None:
        msg = f"{path.name} is not a skeleton file: {problem}"
        raise UsageError(msg)
    return _build(path, arrays, joints)


def _problem(arrays: dict[str, npt.NDArray[np.generic]]) -> str | None:
    """What does not fit together, in words."""
    joints, names = arrays["joints"], arrays["joint_names"]
    offsets, action = arrays["offsets"], arrays["action"]
    clips, classes = offsets.size - 1, arrays["action_names"].size
    wanted = ("joints", "offsets", "action", "scale")
    words = [name for name in wanted if not np.issubdtype(arrays[name].dtype, np.number)]
    if words:
        return f"{words[0]} are not numbers"
    if joints.ndim != _RANK or joints.shape[2] not in _AXES or not np.isfinite(joints).all():
        return f"joints of shape {joints.shape}, wanted are finite ones of [frames, J, 2 or 3]"
    if joints.shape[1] != names.size:
        return f"{joints.shape[1]} joints with {names.size} names"
    if arrays["scale"].size != 1 or offsets.ndim != 1 or not np.isfinite(arrays["scale"]).all():
        return "the scale is not one number, or the offsets are no list"
    if offsets[0] != 0 or (np.diff(offsets) < 1).any() or offsets[-1] > len(joints):
        return f"offsets that do not rise from 0 to at most {len(joints)} frames"
    if action.shape != (clips,) or not np.isin(action, np.arange(classes)).all():
        return f"{action.size} labels for {clips} clips, or labels outside of {classes} classes"
    other = {"subject": (clips,), "visible": joints.shape[:2]}
    for name, shape in other.items():
        if name in arrays and arrays[name].shape != shape:
            return f"{name} of shape {arrays[name].shape}, wanted is {shape}"
    return None


def _build(
    path: Path, arrays: dict[str, npt.NDArray[np.generic]], joints: tuple[str, ...] | None
) -> SkeletonSet:
    names = tuple(str(name) for name in arrays["joint_names"])
    wanted = joints or names
    rows = joint_rows(names, wanted)
    values = np.asarray(arrays["joints"], np.float32) * np.float32(arrays["scale"])
    values, visible = values[:, rows], _visibility(arrays, rows, len(values))
    depth = values.shape[2] == len(KINECT_SIGNS)
    if depth:
        values = values * np.array(KINECT_SIGNS, np.float32)
    else:
        values = np.concatenate([values, np.zeros_like(values[..., :1])], axis=2)
    source = path.stem.split("_")[0].removesuffix("3d").lower()
    rate = NOMINAL_RATE_HZ.get(source, DEFAULT_RATE_HZ)
    edges = np.asarray(arrays["offsets"], np.int64)
    clips = tuple(
        SkeletonClip(values[a:b], visible[a:b], rate) for a, b in itertools.pairwise(edges)
    )
    labels = np.asarray(arrays["action"], np.int64)
    groups = np.asarray(arrays.get("subject", np.arange(len(clips))), np.int64)
    trains = np.asarray(arrays.get("cross_subject_train", np.zeros((0, 0))), np.int64)
    tests = np.asarray(arrays.get("cross_subject_test", np.zeros((0, 0))), np.int64)
    return SkeletonSet(
        source,
        clips,
        labels,
        tuple(str(name) for name in arrays["action_names"]),
        wanted,
        groups,
        depth,
        tuple(zip(trains, tests, strict=True)),
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def _visibility(
    arrays: dict[str, npt.NDArray[np.generic]], rows: list[int], frames: int
) -> npt.NDArray[np.float32]:
    if "visible" not in arrays:
        return np.ones((frames, len(rows)), np.float32)
    return np.asarray(arrays["visible"], np.float32)[:, rows]
