"""Timings of a movement that tell classes apart which look alike pose by pose."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.motion import BodyMotion, Doubles, measure_motion
from engines.actions.normalise import View
from engines.actions.skeleton import SkeletonClip, joint_rows
from engines.actions.strokes import find_strokes

TIMINGS: Final = {
    "strokes": "number of strokes of the busier hand",
    "strokes_per_s": "strokes of the busier hand per second",
    "peak_at": "share of the time that has passed when the busier hand is fastest",
    "raised_share": "share of the time in which a hand is above its shoulder",
    "near_head_share": "share of the time in which a hand is near the head",
    "hold_share": "share of the time in which the busier hand rests away from where it began",
    "first_down_share": "share of the strokes that go down",
    "across": "way of the busier hand towards the person's left, torso lengths",
    "reach": "farthest that the busier hand gets from its shoulder, torso lengths",
    "hands_apart": "least distance between the hands, torso lengths",
    "sunk_at_end": "how much lower the body is at the end than at the start, torso lengths",
    "lowest_at": "share of the time that has passed when the body is lowest",
    "depth": "how far the head sinks below where it began, torso lengths",
    "steps_per_s": "strokes of both ankles and knees per second",
    "hands_closing": "how much the distance between the hands changes, torso lengths",
    "beside_head": "sideways distance of the busier hand from the head, while it is highest",
    "turning": "area that the busier hand goes round, clockwise in the picture positive",
    "balance": "energy of the calmer hand over that of the busier one",
    "duration_s": "duration in seconds",
}
"""Names and what they mean, in words that a prompt can use."""

_NEAR: Final = 0.5
_HIGHEST: Final = 0.2
_REST_SPEED: Final = 0.4
_AWAY: Final = 0.4
_STROKES: Final = {"min_speed": 0.6, "min_distance": 0.15, "min_s": 0.08}


def timings(
    clip: SkeletonClip, names: Sequence[str], *, view: View = "flat"
) -> npt.NDArray[np.float64]:
    """One number for each of ``TIMINGS``, in their order: float64 [19].

    Args:
        clip: one window.
        names: of its joints; the shared thirteen must be among them.
        view: what is done with depth.
    """
    motion = measure_motion(clip, names, view=view)
    rows = dict(zip(_LOOKED_AT, joint_rows(names, _LOOKED_AT), strict=True))
    wrists = (rows["left_wrist"], rows["right_wrist"])
    effort = [float(np.linalg.norm(motion.velocity[:, w], axis=1).mean()) for w in wrists]
    side = int(effort[1] > effort[0])
    hand = motion.joints[:, wrists[side]]
    return np.array(
        [
            *_of_strokes(motion, names, ("left", "right")[side]),
            *_of_hand(motion, wrists[side], rows[("left_shoulder", "right_shoulder")[side]]),
            *_of_places(motion, rows, hand),
            *_of_shape(motion, rows, hand),
            min(effort) / max(*effort, 1e-6),
            clip.duration_s,
        ]
    )[_ORDER]


def _of_strokes(motion: BodyMotion, names: Sequence[str], side: str) -> tuple[float, ...]:
    strokes = find_strokes(motion, names, **_STROKES)
    seconds = max(len(motion.energy) / motion.rate_hz, 1e-6)
    hand = [s.label for s in strokes if s.label.startswith(f"{side} wrist")]
    legs = [s for s in strokes if "ankle" in s.label or "knee" in s.label]
    down = sum(label.endswith(" down") for label in hand) / max(1, len(hand))
    return float(len(hand)), len(hand) / seconds, down, len(legs) / seconds


def _of_hand(motion: BodyMotion, wrist: int, shoulder: int) -> tuple[float, ...]:
    hand = motion.joints[:, wrist]
    speed = np.linalg.norm(motion.velocity[:, wrist], axis=1)
    moved = np.linalg.norm(hand - hand[0], axis=1)
    rests = (speed < _REST_SPEED) & (moved > _AWAY)
    reach = np.linalg.norm(hand - motion.joints[:, shoulder], axis=1).max()
    across = hand[int(moved.argmax()), 0] - hand[0, 0]
    return float(speed.argmax()) / len(speed), float(rests.mean()), float(across), float(reach)


def _of_places(motion: BodyMotion, rows: dict[str, int], hand: Doubles) -> tuple[float, ...]:
    joints = motion.joints
    pairs = (("left_wrist", "left_shoulder"), ("right_wrist", "right_shoulder"))
    raised = [joints[:, rows[w], 1] < joints[:, rows[s], 1] for w, s in pairs]
    near = np.linalg.norm(hand - joints[:, rows["head"]], axis=1) < _NEAR
    apart = np.linalg.norm(joints[:, rows["left_wrist"]] - joints[:, rows["right_wrist"]], axis=1)
    path = joints[:, -1, 1]
    head = joints[:, rows["head"], 1] + path
    tail = max(1, len(path) // 10)
    return (
        float((raised[0] | raised[1]).mean()),
        float(near.mean()),
        float(apart.min()),
        float(path[-tail:].mean() - path[:tail].mean()),
        float(path.argmax()) / len(path),
        float(head.max() - head[0]),
    )


def _of_shape(motion: BodyMotion, rows: dict[str, int], hand: Doubles) -> tuple[float, ...]:
    apart = motion.joints[:, rows["left_wrist"]] - motion.joints[:, rows["right_wrist"]]
    high = hand[:, 1] <= np.quantile(hand[:, 1], _HIGHEST)
    beside = np.abs(hand[high, 0] - motion.joints[high, rows["head"], 0]).mean()
    way, middle = np.diff(hand[:, :2], axis=0), hand[:, :2] - hand[:, :2].mean(axis=0)
    swept = (middle[:-1, 0] * way[:, 1] - middle[:-1, 1] * way[:, 0]).sum() / 2.0
    return float(np.ptp(np.linalg.norm(apart, axis=1))), float(beside), float(swept)


_LOOKED_AT: Final = (
    "head",
    "left_shoulder",
    "right_shoulder",
    "left_wrist",
    "right_wrist",
)
_MADE: Final = (
    "strokes",
    "strokes_per_s",
    "first_down_share",
    "steps_per_s",
    "peak_at",
    "hold_share",
    "across",
    "reach",
    "raised_share",
    "near_head_share",
    "hands_apart",
    "sunk_at_end",
    "lowest_at",
    "depth",
    "hands_closing",
    "beside_head",
    "turning",
    "balance",
    "duration_s",
)
_ORDER: Final = [_MADE.index(name) for name in TIMINGS]
