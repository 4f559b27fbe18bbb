"""Skeletons that move by formula: who does what, and when, is known exactly."""

import numpy as np

from engines.actions.skeleton import JOINTS, SkeletonClip

CLASSES = ("wave", "squat", "stand")
STANDING = {
    "head": (0.0, -1.5),
    "left_shoulder": (0.4, -1.0),
    "right_shoulder": (-0.4, -1.0),
    "left_elbow": (0.5, -0.45),
    "right_elbow": (-0.5, -0.45),
    "left_wrist": (0.5, 0.05),
    "right_wrist": (-0.5, 0.05),
    "left_hip": (0.2, 0.0),
    "right_hip": (-0.2, 0.0),
    "left_knee": (0.2, 0.9),
    "right_knee": (-0.2, 0.9),
    "left_ankle": (0.2, 1.8),
    "right_ankle": (-0.2, 1.8),
}


def standing(moments):
    """float64 [moments, 13, 3]: a torso of length one, hips at the origin, facing the picture."""
    pose = np.array([(*STANDING[name], 0.0) for name in JOINTS])
    return np.repeat(pose[None], moments, axis=0)


def clip(joints, rate_hz=30.0):
    joints = np.asarray(joints, np.float32)
    return SkeletonClip(joints, np.ones(joints.shape[:2], np.float32), rate_hz)


def waving(moments=60, rate_hz=30.0, side="right", hz=2.0, reach=0.35):
    """One raised hand that goes from side to side."""
    joints = standing(moments)
    t = np.arange(moments) / rate_hz
    wrist, elbow = JOINTS.index(f"{side}_wrist"), JOINTS.index(f"{side}_elbow")
    out = -1.0 if side == "right" else 1.0
    joints[:, elbow, :2] = np.array([out * 0.75, -1.1])
    joints[:, wrist, 0] = out * 0.75 + reach * np.sin(2 * np.pi * hz * t)
    joints[:, wrist, 1] = -1.7
    return clip(joints, rate_hz)


def squatting(moments=60, rate_hz=30.0, depth=0.7):
    """Hips go down and up once."""
    joints = standing(moments)
    sunk = depth * np.sin(np.pi * np.arange(moments) / (moments - 1)) ** 2
    upper = [i for i, name in enumerate(JOINTS) if "knee" not in name and "ankle" not in name]
    joints[:, upper, 1] += sunk[:, None]
    knees = [JOINTS.index("left_knee"), JOINTS.index("right_knee")]
    joints[:, knees, 1] += sunk[:, None] / 2
    joints[:, knees, 0] += np.sign(joints[:, knees, 0]) * sunk[:, None] / 2
    return clip(joints, rate_hz)


def write_set(path, persons, seed, *, classes=CLASSES, flat=False):
    """A file as the data sets are: int16; two clips for each person and class.

    Kinect axes with depth and persons; or, flat, picture axes with what is visible.
    """
    rng = np.random.default_rng(seed)
    clips, labels, subjects = [], [], []
    for person in persons:
        size = rng.uniform(0.4, 0.6)
        for label in range(3):
            for _ in range(2):
                moments = int(rng.integers(40, 60))
                made = (waving(moments), squatting(moments), None)[label]
                joints = standing(moments) if made is None else made.joints
                noisy = joints * size + rng.normal(0, 0.01, joints.shape)
                clips.append(noisy * np.array([-1.0, -1.0, 1.0]) + np.array([0, 0, 2.5]))
                labels.append(label)
                subjects.append(person)
    every = np.concatenate(clips)
    arrays = {"subject": np.array(subjects, np.int8)}
    if flat:
        every = every[..., :2] * -1.0
        arrays = {"visible": np.ones(every.shape[:2], np.bool_)}
    np.savez(
        path,
        joints=(every * 1000).astype(np.int16),
        scale=np.float32(0.001),
        offsets=np.cumsum([0, *map(len, clips)]).astype(np.int32),
        action=np.array(labels, np.int16),
        action_names=np.array(classes),
        joint_names=np.array(JOINTS),
        **arrays,
    )
    return path
