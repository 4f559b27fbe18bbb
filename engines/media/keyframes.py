"""Keyframes: where the picture changes most within a shot, and one sharp picture of each shot."""

import numpy as np
import numpy.typing as npt

from engines.contracts.media import Keyframe, Sample, SampleDocument, Shot
from engines.contracts.time import TimeSpan
from engines.media.doubt import column

FloatArray = npt.NDArray[np.float32]
Int64Array = npt.NDArray[np.int64]

_SMOOTHING = np.array([0.25, 0.5, 0.25], dtype=np.float32)
_EDGE = 2
_FLOOR = 0.004


def change_energy(signals: FloatArray) -> FloatArray:
    """float32 [n]: luma change plus a share of the colour change, smoothed over three frames."""
    raw = column(signals, "change1") + 0.1 * column(signals, "histogram")
    return np.convolve(raw, _SMOOTHING, mode="same").astype(np.float32)


def find_keyframes(
    document: SampleDocument,
    signals: FloatArray,
    pts: Int64Array,
    shots: list[Shot],
    sensitivity: float,
) -> list[Keyframe]:
    """Choose keyframes among the samples.

    A peak of the change energy counts when its prominence within its shot is at least
    ``1 - sensitivity`` of the shot's largest; the sample that follows it shows what it led to.
    Shots without a sample (one-frame shots, mostly) have none.

    Args:
        document: with the samples.
        signals: float32 [n, k] as in ``SIGNAL_NAMES``.
        pts: int64 [n + 1] frame times and the end.
        shots: over all frames.
        sensitivity: 0-1, higher finds more.
    """
    energy = change_energy(signals)
    found = []
    for ordinal, shot in enumerate(shots):
        inside = [s for s in document.samples if shot.start_frame <= s.frame < shot.end_frame]
        if not inside:
            continue
        for sample, reason in _choose(inside, energy, shot, sensitivity):
            found.append(
                Keyframe(
                    span=TimeSpan(
                        start_pts=int(pts[sample.frame]),
                        end_pts=int(pts[sample.frame + 1]),
                        time_base_num=document.time_base_num,
                        time_base_den=document.time_base_den,
                    ),
                    shot_ordinal=ordinal,
                    frame=sample.frame,
                    sample_name=sample.name,
                    reason=reason,
                    energy=float(energy[sample.frame]),
                )
            )
    return found


def _choose(
    inside: list[Sample], energy: FloatArray, shot: Shot, sensitivity: float
) -> list[tuple[Sample, str]]:
    first_half = inside[: max(1, (len(inside) + 1) // 2)]
    sharpest = max(first_half, key=lambda s: s.sharpness)
    chosen: dict[int, tuple[Sample, str]] = {sharpest.frame: (sharpest, "sharpest")}
    part = energy[shot.start_frame : shot.end_frame].copy()
    # The change that begins a shot is the cut itself.
    part[:_EDGE] = part[_EDGE:].min(initial=float(part.min(initial=0.0)))
    needed = max(_FLOOR, (1 - sensitivity) * float(part.max(initial=0.0) - part.min(initial=0.0)))
    # Loaded by the stage that needs it, not by every decode worker (50 MB).
    from scipy.signal import find_peaks

    peaks, _ = find_peaks(part, prominence=needed)
    for peak in peaks:
        frame = shot.start_frame + int(peak)
        after = next((s for s in inside if s.frame >= frame), inside[-1])
        chosen.setdefault(after.frame, (after, "change_peak"))
    return [chosen[frame] for frame in sorted(chosen)]
