"""The thirteen joints that every source of skeletons shares, and the axes they are told in.

Axes are those of a picture: x to the right, y down, z away from the camera, all three in the same
unit (pixels, picture heights, metres: nothing later depends on which). Sides are the person's own.
A pose of T moments is float32 [T, 13, 3] with visibility float32 [T, 13], 0 to 1; a joint that was
not seen has visibility 0 and any finite position. A source without depth has z = 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.errors import UsageError

Floats = npt.NDArray[np.float32]

JOINTS: Final = (
    "head",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
)
BLAZEPOSE_ROWS: Final = (0, 11, 12, 13, 14, 15, 16, 23, 24, 25, 26, 27, 28)
"""Row of each joint among the 33 landmarks of BlazePose (nose for head)."""

PARENTS: Final = {
    "head": "shoulder_center",
    "left_shoulder": "shoulder_center",
    "right_shoulder": "shoulder_center",
    "left_elbow": "left_shoulder",
    "right_elbow": "right_shoulder",
    "left_wrist": "left_elbow",
    "right_wrist": "right_elbow",
    "left_hand": "left_wrist",
    "right_hand": "right_wrist",
    "left_hip": "hip_center",
    "right_hip": "hip_center",
    "left_knee": "left_hip",
    "right_knee": "right_hip",
    "left_ankle": "left_knee",
    "right_ankle": "right_knee",
    "left_foot": "left_ankle",
    "right_foot": "right_ankle",
    "spine": "hip_center",
    "neck": "hip_center",
    "shoulder_center": "hip_center",
}
"""Towards the body's centre; the two centres are the means of both shoulders and of both hips."""

_KINECT_HIPS: Final = 0.3
"""How much further down the hips are than a Kinect has them, torso lengths."""
_KINECT_HIP_WIDTH: Final = 1.25
_KINECT_HEAD: Final = 0.25
"""A Kinect's head is the top of the skull, the others' the nose: nearer to the neck by so much."""


@dataclass(frozen=True)
class SkeletonClip:
    """One person over some moments, at a steady rate, in picture axes."""

    joints: Floats
    """float32 [T, J, 3]; z is 0 where the source has no depth."""
    visibility: Floats
    """float32 [T, J], 0 to 1."""
    rate_hz: float

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.joints) / self.rate_hz


def joint_rows(names: Sequence[str], wanted: Sequence[str] = JOINTS) -> list[int]:
    """Where each wanted joint stands among a source's joints.

    Raises:
        UsageError: one is not there.
    """
    known = {str(name): row for row, name in enumerate(names)}
    missing = [name for name in wanted if name not in known]
    if missing:
        msg = f"no joint {missing[0]!r} among {', '.join(known)}"
        raise UsageError(msg)
    return [known[name] for name in wanted]


def mirror_rows(names: Sequence[str]) -> list[int]:
    """For each joint the row of its counterpart on the other side; itself where it has none."""
    known = {str(name): row for row, name in enumerate(names)}
    swap = {"left_": "right_", "right_": "left_"}
    rows = []
    for name in map(str, names):
        side = next((s for s in swap if name.startswith(s)), None)
        other = name if side is None else swap[side] + name.removeprefix(side)
        rows.append(known.get(other, known[name]))
    return rows


def from_blazepose(landmarks: Floats, rate_hz: float, aspect: float) -> SkeletonClip:
    """The shared joints out of BlazePose landmarks.

    Args:
        landmarks: float32 [T, 33, 4] or [T, 13, 4] (x, y, z, visibility); x and z in widths of
            the picture, y in heights. A joint outside of the picture was guessed: it counts as
            not seen.
        rate_hz: moments per second.
        aspect: width of the picture over its height: without it a body would be stretched.

    Raises:
        UsageError: another number of landmarks.
    """
    if landmarks.ndim != 3 or landmarks.shape[1] not in (33, len(JOINTS)):  # noqa: PLR2004
        msg = f"landmarks of shape {landmarks.shape}; allowed are [T, 33, 4] and [T, 13, 4]"
        raise UsageError(msg)
    shared = landmarks[:, BLAZEPOSE_ROWS] if landmarks.shape[1] != len(JOINTS) else landmarks
    scale = np.array([aspect, 1.0, aspect], np.float32)
    joints = (shared[..., :3] * scale).astype(np.float32)
    inside = ((shared[..., :2] >= 0.0) & (shared[..., :2] <= 1.0)).all(axis=-1)
    return SkeletonClip(joints, (shared[..., 3] * inside).astype(np.float32), rate_hz)


def from_kinect(clip: SkeletonClip) -> SkeletonClip:
    """The same person with hips and head where a pose estimator and annotators have them.

    A Kinect's hips lie high in the body: over the length of the torso its legs measure 2.2, its
    arms 1.3 and its head 0.8, those of BlazePose on video 1.4 to 1.6, 0.9 to 1.0 and 0.35 to 0.5,
    those marked by people (Penn Action) 1.4, 0.9 and 0.4. Bodies are measured in torso lengths, so
    that difference would be one of all movements.

    Args:
        clip: of the shared joints.
    """
    joints = np.array(clip.joints, np.float32)
    head, *shoulders = joint_rows(JOINTS, ("head", "left_shoulder", "right_shoulder"))
    hips = joint_rows(JOINTS, ("left_hip", "right_hip"))
    upper = joints[:, shoulders].mean(axis=1, keepdims=True)
    lower = joints[:, hips].mean(axis=1, keepdims=True)
    wide = _KINECT_HIP_WIDTH * (joints[:, hips] - lower)
    joints[:, hips] = lower + wide + _KINECT_HIPS * (lower - upper)
    joints[:, head] += _KINECT_HEAD * (upper[:, 0] - joints[:, head])
    return SkeletonClip(joints, clip.visibility, clip.rate_hz)
