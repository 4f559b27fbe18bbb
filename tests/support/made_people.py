"""Drawn people in poses that tests need, and what the pose estimator makes of them."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

import numpy as np

from engines.actions.drawing import Joints
from engines.actions.pose.find import LookedAt, PoseRows, find_people
from engines.actions.pose.geometry import Picture
from engines.contracts.actions import PoseDocument, PoseParams

BASE: Final = Fraction(1, 12_000)
STEP: Final = 1000
"""Ticks between pictures: twelve a second."""

STANDING: Final[Joints] = {
    "head": (0.0, -0.41),
    "left_shoulder": (0.11, -0.30),
    "right_shoulder": (-0.11, -0.30),
    "left_elbow": (0.16, -0.13),
    "right_elbow": (-0.16, -0.13),
    "left_wrist": (0.18, 0.03),
    "right_wrist": (-0.18, 0.03),
    "left_hip": (0.06, 0.02),
    "right_hip": (-0.06, 0.02),
    "left_knee": (0.07, 0.24),
    "right_knee": (-0.07, 0.24),
    "left_ankle": (0.075, 0.45),
    "right_ankle": (-0.075, 0.45),
}
"""Upright, arms hanging; origin in the middle of the body, y down."""


def raised_arm(angle: float) -> Joints:
    """Standing, the right forearm up and turned by ``angle`` radians."""
    elbow = (-0.25, -0.32)
    wrist = (elbow[0] - 0.16 * float(np.sin(angle)), elbow[1] - 0.16 * float(np.cos(angle)))
    return {**STANDING, "right_elbow": elbow, "right_wrist": wrist}


def spread_arms(angle: float) -> Joints:
    """Standing, both arms straight and lifted by ``angle`` radians from hanging."""
    joints = dict(STANDING)
    for side, sign in (("left", 1), ("right", -1)):
        x, y = STANDING[f"{side}_shoulder"]
        along = (sign * float(np.sin(angle)), float(np.cos(angle)))
        for joint, length in (("elbow", 0.17), ("wrist", 0.33)):
            joints[f"{side}_{joint}"] = (x + length * along[0], y + length * along[1])
    return joints


def follow(pictures: Iterable[Picture], **params: object) -> tuple[PoseDocument, PoseRows]:
    """Twelve pictures a second."""
    shown = list(pictures)
    looked_at = LookedAt(time_base=BASE, rate_hz=12.0, covered_s=len(shown) / 12)
    timed = ((i * STEP, picture) for i, picture in enumerate(shown))
    return find_people(timed, looked_at, PoseParams(threads=1, **params))
