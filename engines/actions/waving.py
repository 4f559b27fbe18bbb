"""A raised hand that goes from side to side, found by what a wave is and not by a network.

Training clips of waves begin and end with the raising and the lowering of the hand; in video people
wave from the first picture to the last, and the network does not know that. Strokes can be counted.
Its figures were chosen on the training files; see docs/actions.md.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d
from scipy.signal import find_peaks

from engines.actions.motion import Doubles
from engines.actions.normalise import SEEN, fill_holes, remove_jumps, to_body_frame
from engines.actions.skeleton import JOINTS, Floats, SkeletonClip, joint_rows

_SMOOTH_S: Final = 0.05
_LEAST_WAY: Final = 0.12
"""Of a stroke, torso lengths: a pose that shakes turns sooner."""
_LONGEST_S: Final = 1.0
_UPRIGHT: Final = 0.3
"""Mean height of the hand over the elbow in a stroke, lengths of the forearm."""
_APART: Final = 0.4
"""From hand to hand at the median of a stroke, torso lengths: who claps has less."""
_MOSTLY: Final = 0.75
"""Share of a stroke's moments in which the hand is above the shoulder, and the arm is seen."""
_LEAST_FOREARM: Final = 0.2
"""Torso lengths, for an arm that points at the camera."""


def longest_waving(clip: SkeletonClip) -> tuple[int, float]:
    """The longest series of strokes from side to side of one raised hand.

    In a stroke the hand goes at least as far sideways as up or down, is above elbow and shoulder
    and away from the other hand, and shoulder, elbow and hand are seen.

    Args:
        clip: of the shared joints, any length and rate.

    Returns:
        Strokes, and the share of the clip's time that they take.
    """
    raised = [
        sides for sides in (("left", "right"), ("right", "left")) if _is_raised(clip, sides[0])
    ]
    if not raised:  # nearly always, and all that follows costs as much as the network
        return 0, 0.0
    joints, known = fill_holes(clip, JOINTS)
    steady = remove_jumps(joints, clip.rate_hz)
    centred, _ = to_body_frame(steady, JOINTS, known, view="flat")
    flat = gaussian_filter1d(centred[..., :2], _SMOOTH_S * clip.rate_hz, axis=0, mode="nearest")
    best, moments = 0, 0
    for side, other in raised:
        hand = _Hand.of(flat, clip.visibility, side, other)
        first = count = 0
        for begin, end in pairwise(_turns(hand.wrist[:, 0] - hand.shoulder[:, 0])):
            is_quick = end - begin <= _LONGEST_S * clip.rate_hz
            if not (is_quick and hand.waves(slice(begin, end + 1))):
                count = 0
                continue
            first = begin if count == 0 else first
            count += 1
            if count > best:
                best, moments = count, end - first
    return best, moments / max(1, len(clip.joints))


@dataclass(frozen=True)
class _Hand:
    """One arm over T moments: places float64 [T, 2] in torso lengths, y down."""

    wrist: Doubles
    elbow: Doubles
    shoulder: Doubles
    other: Doubles
    """The other arm's wrist."""
    seen: npt.NDArray[np.bool_]
    forearm: float
    """Its length where it is seen from the side."""

    @classmethod
    def of(cls, joints: Doubles, visibility: Floats, side: str, other: str) -> Self:
        rows = joint_rows(JOINTS, [f"{side}_wrist", f"{side}_elbow", f"{side}_shoulder"])
        wrist, elbow, shoulder = (joints[:, row] for row in rows)
        length = float(np.quantile(np.linalg.norm(wrist - elbow, axis=1), 0.9)) if len(wrist) else 0
        return cls(
            wrist,
            elbow,
            shoulder,
            joints[:, JOINTS.index(f"{other}_wrist")],
            np.asarray((visibility[:, rows] >= SEEN).all(axis=1)),
            max(length, _LEAST_FOREARM),
        )

    def waves(self, stroke: slice) -> bool:
        """Whether the hand is raised in it and goes sideways."""
        wrist = self.wrist[stroke]
        sideways, height = abs(wrist[-1, 0] - wrist[0, 0]), float(np.ptp(wrist[:, 1]))
        upright = (self.elbow[stroke] - wrist)[:, 1].mean() / self.forearm
        raised = (wrist[:, 1] < self.shoulder[stroke][:, 1]).mean()
        apart = np.median(np.linalg.norm(wrist - self.other[stroke], axis=1))
        return bool(
            sideways >= max(height, _LEAST_WAY)
            and upright >= _UPRIGHT
            and apart >= _APART
            and min(raised, self.seen[stroke].mean()) >= _MOSTLY
        )


def _is_raised(clip: SkeletonClip, side: str) -> bool:
    """Whether the hand is seen above the shoulder at any moment."""
    rows = joint_rows(JOINTS, [f"{side}_wrist", f"{side}_shoulder"])
    seen = (clip.visibility[:, rows] >= SEEN).all(axis=1)
    return bool((seen & (clip.joints[:, rows[0], 1] < clip.joints[:, rows[1], 1])).any())


def _turns(curve: Doubles) -> list[int]:
    """Rows where a curve begins, turns and ends; ripples are no turns."""
    turns = [find_peaks(sign * curve, prominence=_LEAST_WAY)[0] for sign in (1, -1)]
    return [0, *sorted(int(row) for row in np.concatenate(turns)), len(curve) - 1]
