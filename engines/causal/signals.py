"""Events in the motion and brightness of the picture: bursts, stops, light on and off."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, signal

from engines.causal.series import Floats

MOTION_COLUMNS = ("motion", "residual", "change1")
"""What is left after camera shift and brightness offset says more than the raw change."""
BASELINE_S = 8.0
QUIET_SHARE = 0.25
"""A burst begins and ends where motion falls to this share of its height above the baseline."""
MIN_APART_S = 0.25
SMALLEST_MOTION = 1e-4
"""Mean luma change that no codec noise reaches in a still picture, per frame."""
MAD_TO_DEVIATION = 1.4826
STEP_WINDOW_S = 0.16
CUT_GUARD_S = 0.12
MIN_FRAMES = 8


@dataclass(frozen=True)
class MotionSignals:
    """Blob ``signals`` of the sample stage with its times.

    Attributes:
        values: float32 [n, k], one row per decoded frame.
        pts: int64 [n + 1] in units of ``time_base_s``; the last entry is the end.
        names: the columns: ``luma``, and one of ``motion``, ``residual``, ``change1``; all 0-1.
        time_base_s: seconds per tick.
    """

    values: NDArray[np.float32]
    pts: NDArray[np.int64]
    names: tuple[str, ...]
    time_base_s: float

    @property
    def time_s(self) -> Floats:
        """Start of every frame and the end of the last: float64 [n + 1], asset clock."""
        return self.pts.astype(np.float64) * self.time_base_s

    def column(self, name: str) -> Floats | None:
        """One signal as float64 [n] with non-finite values as 0, or None when absent.

        ``motion`` is the first there is of the columns that measure it.
        """
        if name == "motion":
            name = next((m for m in MOTION_COLUMNS if m in self.names), name)
        if name not in self.names or len(self.values) == 0:
            return None
        column = self.values[:, self.names.index(name)].astype(np.float64)
        return np.nan_to_num(column, nan=0.0, posinf=0.0, neginf=0.0)


@dataclass(frozen=True)
class Interval:
    """A found change: frames [start, end), and how strong it is in robust deviations."""

    start: int
    end: int
    strength: float


def _robust_spread(values: Floats) -> float:
    centre = np.median(values)
    return float(MAD_TO_DEVIATION * np.median(np.abs(values - centre)))


def _near_cut(time_s: Floats, cuts_s: Floats, guard_s: float) -> NDArray[np.bool_]:
    if len(cuts_s) == 0:
        return np.zeros(len(time_s), dtype=np.bool_)
    at = np.clip(np.searchsorted(cuts_s, time_s), 1, len(cuts_s)) - 1
    after = np.minimum(at + 1, len(cuts_s) - 1)
    nearest = np.minimum(np.abs(time_s - cuts_s[at]), np.abs(time_s - cuts_s[after]))
    return nearest <= guard_s


def frame_step(time_s: Floats) -> float:
    """Median time between frames in seconds."""
    return float(np.median(np.diff(time_s))) if len(time_s) > 1 else 0.04


def _deviations(motion: Floats, step: float, prominence: float) -> Floats:
    """Height above the surroundings in robust standard deviations of those surroundings.

    Args:
        motion: float64 [n] of one take; NaN beside its cuts.
        step: seconds between frames.
        prominence: of a peak that counts; bounds the smallest deviation from below, so that the
            noise of a codec never makes one.
    """
    still = np.nan_to_num(motion, nan=float(np.nanmedian(motion)) if motion.size else 0.0)
    size = min(max(3, round(BASELINE_S / step) | 1), len(still) | 1)
    base = ndimage.percentile_filter(still, 30, size=size, mode="mirror")
    centre = ndimage.median_filter(still, size, mode="mirror")
    spread = MAD_TO_DEVIATION * ndimage.median_filter(np.abs(still - centre), size, mode="mirror")
    above = ndimage.uniform_filter1d(np.maximum(still - base, 0.0), 3, mode="mirror")
    heights: Floats = above / np.maximum(spread, SMALLEST_MOTION / prominence)
    return heights


def motion_bursts(signals: MotionSignals, cuts_s: Floats, *, prominence: float) -> list[Interval]:
    """Spans in which motion stands clear of its surroundings; changes at cuts are left out.

    Args:
        signals: needs a column ``motion``.
        cuts_s: float64, sorted times of cuts.
        prominence: height of a peak above its surroundings in robust standard deviations.
    """
    motion = signals.column("motion")
    if motion is None or len(motion) < MIN_FRAMES:
        return []
    time_s = signals.time_s
    step = frame_step(time_s)
    quiet = np.where(_near_cut(time_s[:-1], cuts_s, CUT_GUARD_S), np.nan, motion)
    # Each take by itself: what stands out in a still scene is nothing in one filmed by hand.
    edges = [0, *np.searchsorted(time_s[:-1], cuts_s), len(quiet)]
    takes = [_deviations(quiet[a:b], step, prominence) for a, b in pairwise(edges) if b > a]
    above = np.concatenate(takes)
    peaks, facts = signal.find_peaks(
        above, prominence=prominence, distance=max(1, round(MIN_APART_S / step))
    )
    found: list[Interval] = []
    for peak, height in zip(peaks, facts["prominences"], strict=True):
        floor = above[peak] - height * (1.0 - QUIET_SHARE)
        start, end = peak, peak
        while start > 0 and above[start - 1] > floor:
            start -= 1
        while end < len(above) and above[end] > floor:
            end += 1
        if found and start < found[-1].end:
            last = found[-1]
            found[-1] = Interval(last.start, max(end, last.end), max(last.strength, height))
        else:
            found.append(Interval(int(start), int(end), float(height)))
    return found


def light_steps(
    signals: MotionSignals, cuts_s: Floats, *, smallest: float
) -> list[tuple[int, float]]:
    """Lasting changes of brightness as (frame, signed change); changes at cuts are left out.

    Args:
        signals: needs a column ``luma``.
        cuts_s: float64, sorted times of cuts.
        smallest: least change of mean luma (0-1).
    """
    luma = signals.column("luma")
    if luma is None or len(luma) < MIN_FRAMES:
        return []
    time_s = signals.time_s
    half = max(2, round(STEP_WINDOW_S / frame_step(time_s)))
    padded = np.pad(luma, half, mode="edge")
    means = np.convolve(padded, np.ones(half) / half, mode="valid")
    change = means[half : half + len(luma)] - means[: len(luma)]
    change[_near_cut(time_s[:-1], cuts_s, STEP_WINDOW_S + CUT_GUARD_S)] = 0.0
    noise = 4.0 * _robust_spread(change)
    limit = max(smallest, noise)
    peaks, _ = signal.find_peaks(np.abs(change), height=limit, distance=half)
    return [(int(p), float(change[p])) for p in peaks]
