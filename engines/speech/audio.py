"""Arrays and units that the speech modules share."""

import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ = 16_000
FULL_SCALE = 32_768.0

Pcm = npt.NDArray[np.int16]
Signal = npt.NDArray[np.float32]

Interval = tuple[float, float]
"""[start_s, end_s), seconds from the first sample unless said otherwise."""


def to_float(pcm: Pcm) -> Signal:
    """int16 samples as float32 in -1..1."""
    return pcm.astype(np.float32) / np.float32(FULL_SCALE)


def cut(pcm: Pcm, span: Interval) -> Signal:
    """The samples of ``span`` (clipped to the array) as float32 in -1..1."""
    start = max(0, round(span[0] * SAMPLE_RATE_HZ))
    end = min(len(pcm), round(span[1] * SAMPLE_RATE_HZ))
    return to_float(pcm[start:end])


def frame_level_db(pcm: Pcm, hop_s: float = 0.01) -> npt.NDArray[np.float32]:
    """RMS level in dB of full scale for each whole hop; float32 [n // hop], floor -120."""
    hop = round(hop_s * SAMPLE_RATE_HZ)
    count = len(pcm) // hop
    levels = np.empty(count, dtype=np.float32)
    block = 6000  # bounds the float copy to a minute of sound
    for first in range(0, count, block):
        last = min(count, first + block)
        frames = pcm[first * hop : last * hop].astype(np.float32).reshape(-1, hop) / FULL_SCALE
        levels[first:last] = 10 * np.log10(np.mean(frames * frames, axis=1) + 1e-12)
    return levels


def overlap_s(a: Interval, b: Interval) -> float:
    """Length of the common part of two intervals, 0 when they do not meet."""
    return max(0.0, min(a[1], b[1]) - max(a[0], b[0]))


def covered_s(span: Interval, intervals: list[Interval]) -> float:
    """How much of ``span`` lies in the (disjoint) intervals."""
    return sum(overlap_s(span, other) for other in intervals)


def subtract(intervals: list[Interval], holes: list[Interval]) -> list[Interval]:
    """The intervals without the holes, in order."""
    left = list(intervals)
    for hole in holes:
        pieces: list[Interval] = []
        for start, end in left:
            if overlap_s((start, end), hole) == 0:
                pieces.append((start, end))
                continue
            pieces.extend(
                piece for piece in ((start, hole[0]), (hole[1], end)) if piece[1] > piece[0]
            )
        left = pieces
    return sorted(left)


def merge(intervals: list[Interval], gap_s: float) -> list[Interval]:
    """Join intervals that overlap or whose distance is at most ``gap_s``."""
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start - joined[-1][1] <= gap_s:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
