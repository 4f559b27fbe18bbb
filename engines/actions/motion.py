"""How much a body moves, when that changes, and the moments that tell a movement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d
from scipy.signal import find_peaks

from engines.actions.normalise import View, fill_holes, remove_jumps, to_body_frame
from engines.actions.skeleton import SkeletonClip

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SMOOTH_S: Final = 0.08
"""Standard deviation of the smoothing before steps are taken: strokes last 0.3 s and more."""
_LOUD_JOINTS: Final = 2
"""Motion is that of the joints that move most: a wave may move a hand and little of the arm."""
_NOISE_SCALE: Final = 1.4826
"""From median absolute deviation to standard deviation."""


@dataclass(frozen=True)
class BodyMotion:
    """One person's movement over T moments."""

    joints: Doubles
    """float64 [T, J + 1, 3] about the centre, torso lengths; the last row is the centre's path."""
    velocity: Doubles
    """float64 [T, J + 1, 3], torso lengths per second; joints relative to the centre."""
    energy: Doubles
    """float64 [T], torso lengths per second: mean speed of the joints that move most."""
    change: Doubles
    """float64 [T], torso lengths per second squared: how fast the velocities change."""
    rate_hz: float


def measure_motion(clip: SkeletonClip, names: Sequence[str], *, view: View) -> BodyMotion:
    """Velocities and energies of a clip, smoothed over about a tenth of a second."""
    filled, known = fill_holes(clip, names)
    smooth = remove_jumps(filled, clip.rate_hz)
    centred, path = to_body_frame(smooth, names, known, view=view)
    centred[:, ~known] = 0.0
    joints = np.concatenate([centred, path[:, None]], axis=1)
    if view == "flat":
        joints[..., 2] = 0.0
    joints = gaussian_filter1d(joints, SMOOTH_S * clip.rate_hz, axis=0, mode="nearest")
    if len(joints) < 2:  # noqa: PLR2004
        still = np.zeros(len(joints))
        return BodyMotion(joints, np.zeros_like(joints), still, still, clip.rate_hz)
    velocity = np.gradient(joints, 1.0 / clip.rate_hz, axis=0)
    acceleration = np.gradient(velocity, 1.0 / clip.rate_hz, axis=0)
    return BodyMotion(joints, velocity, _loudest(velocity), _loudest(acceleration), clip.rate_hz)


def _loudest(vectors: Doubles) -> Doubles:
    lengths = np.sort(np.linalg.norm(vectors, axis=2), axis=1)
    return np.asarray(lengths[:, -_LOUD_JOINTS:].mean(axis=1))


def change_points(motion: BodyMotion, *, spacing_s: float, prominence: float = 0.2) -> Ints:
    """Moments where one movement may end and another begin: rests, and turns of acceleration.

    Candidates are minima of the energy and peaks of the acceleration's size whose prominence is
    more than ``prominence`` standard deviations (robust) of the curve; of two that are closer than
    ``spacing_s`` the more prominent stays.

    Returns:
        int64 [k], rising, without the two ends.
    """
    found: list[tuple[float, int]] = []
    for curve in (-motion.energy, motion.change):
        scale = spread(curve)
        peaks, facts = find_peaks(curve, prominence=prominence * scale)
        strength = facts["prominences"] / scale
        found.extend((float(s), int(p)) for s, p in zip(strength, peaks, strict=True))
    spacing = max(1, round(spacing_s * motion.rate_hz))
    kept: list[int] = []
    for _, at in sorted(found, reverse=True):
        edge = min(at, len(motion.energy) - 1 - at)
        if edge >= spacing and all(abs(at - other) >= spacing for other in kept):
            kept.append(at)
    return np.array(sorted(kept), np.int64)


def keyframes(motion: BodyMotion, first: int, last: int, prominence: float) -> tuple[int, ...]:
    """Moments within [first, last] where the movement changes most.

    Peaks of the change energy with a prominence of ``prominence`` robust standard deviations of the
    whole curve; where there is none, the one moment of most change.
    """
    part = motion.change[first : last + 1]
    if len(part) == 0:
        return ()
    peaks, _ = find_peaks(part, prominence=prominence * spread(motion.change))
    return tuple(first + int(p) for p in peaks) or (first + int(part.argmax()),)


def spread(curve: Doubles) -> float:
    """Robust standard deviation; of a still body a small number above zero."""
    deviation = np.abs(curve - np.median(curve))
    return max(float(np.median(deviation)) * _NOISE_SCALE, 1e-3)


def active_runs(
    motion: BodyMotion, *, enter: float, leave: float, bridge_s: float, min_s: float
) -> list[tuple[int, int]]:
    """Runs [first, last] of activity, with hysteresis.

    Args:
        motion: of one person.
        enter: energy that a run must reach, torso lengths per second.
        leave: energy that it keeps above.
        bridge_s: shorter rests do not end a run.
        min_s: shorter runs are dropped.
    """
    above = motion.energy >= leave
    edges = np.flatnonzero(np.diff(np.concatenate([[0], above.astype(np.int8), [0]])))
    runs = [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]
    joined: list[tuple[int, int]] = []
    for run in runs:
        if joined and run[0] - joined[-1][1] - 1 <= bridge_s * motion.rate_hz:
            joined[-1] = (joined[-1][0], run[1])
        else:
            joined.append(run)
    return [
        (a, b)
        for a, b in joined
        if motion.energy[a : b + 1].max() >= enter and b - a + 1 >= min_s * motion.rate_hz
    ]
