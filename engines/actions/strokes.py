"""Micro segments: one limb's stroke from rest to rest, named by limb and direction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.signal import find_peaks

from engines.actions.motion import BodyMotion, Doubles

LIMBS: Final = (
    "left_wrist",
    "right_wrist",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
    "head",
)
_EDGE_SHARE: Final = 0.1
"""A stroke begins and ends where the speed is a tenth of its peak, or lowest between two peaks."""


@dataclass(frozen=True)
class Stroke:
    """Rows [first, last] of a motion."""

    first: int
    last: int
    label: str
    """Limb and direction in the picture: ``right wrist up``."""
    score: float
    """0 to 1: how straight the stroke is, distance over length of the way."""
    peak: int
    """Row of the highest speed."""


def find_strokes(
    motion: BodyMotion,
    names: Sequence[str],
    *,
    min_speed: float,
    min_distance: float,
    min_s: float,
) -> list[Stroke]:
    """Strokes of wrists, knees, ankles and head, by their beginning.

    Args:
        motion: of one person.
        names: joints of its rows.
        min_speed: what a stroke must reach, torso lengths per second.
        min_distance: how far it must go, torso lengths.
        min_s: shorter ones are twitches.
    """
    found = []
    for limb in LIMBS:
        if limb in names:
            row = list(names).index(limb)
            found += _limb_strokes(motion, row, limb, min_speed, min_distance, min_s)
    return sorted(found, key=lambda stroke: (stroke.first, stroke.label))


def _limb_strokes(
    motion: BodyMotion, row: int, limb: str, min_speed: float, min_distance: float, min_s: float
) -> list[Stroke]:
    path = motion.joints[:, row]
    speed = np.linalg.norm(motion.velocity[:, row], axis=1)
    peaks, _ = find_peaks(np.pad(speed, 1), height=min_speed, prominence=min_speed / 2.0)
    peaks = peaks - 1
    strokes = []
    for order, peak in enumerate(peaks):
        before = int(peaks[order - 1]) if order else 0
        after = int(peaks[order + 1]) if order + 1 < len(peaks) else len(speed) - 1
        first, last = _edges(speed, before, int(peak), after)
        way = path[last] - path[first]
        distance = float(np.linalg.norm(way))
        if distance < min_distance or last - first + 1 < min_s * motion.rate_hz:
            continue
        steps = np.linalg.norm(np.diff(path[first : last + 1], axis=0), axis=1).sum()
        straight = min(1.0, distance / max(float(steps), distance))
        label = f"{limb.replace('_', ' ')} {direction(way)}"
        strokes.append(Stroke(first, last, label, straight, int(peak)))
    return strokes


def _edges(speed: Doubles, before: int, peak: int, after: int) -> tuple[int, int]:
    """Outwards from the peak to where the limb rests or another stroke takes over."""
    slow = _EDGE_SHARE * speed[peak]
    first = before + int(speed[before : peak + 1].argmin())
    quiet = np.flatnonzero(speed[first : peak + 1] <= slow)
    first = first + int(quiet[-1]) if len(quiet) else first
    last = peak + int(speed[peak : after + 1].argmin())
    quiet = np.flatnonzero(speed[peak : last + 1] <= slow)
    return first, peak + int(quiet[0]) if len(quiet) else last


def direction(way: Doubles) -> str:
    """Main direction of a vector in picture axes: up, down, left, right, near or far."""
    axis = int(np.abs(way).argmax())
    forward, back = (("right", "left"), ("down", "up"), ("far", "near"))[axis]
    return forward if way[axis] > 0 else back
