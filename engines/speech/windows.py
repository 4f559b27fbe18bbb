"""Cuts sound into windows for the recogniser, at pauses, so that memory stays flat."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engines.speech.audio import Interval, overlap_s
from engines.speech.voice import CHUNK_S, VoiceProbabilities

MAX_VOICE_S = 28.0
"""With the padding on both sides a window stays within the recogniser's 30 s."""
MAX_PAUSE_S = 4.0
"""A longer pause ends a window: a recogniser left alone with it makes words up."""
TURN_PAUSE_S = 1.5
"""So does a shorter one, where a speaker or language may change, once there is enough voice."""
TURN_VOICE_S = 2.0
PAD_S = 0.24


@dataclass(frozen=True)
class Window:
    """What the recogniser gets in one call, and the voiced regions inside."""

    span: Interval
    regions: tuple[Interval, ...]

    @property
    def voiced_s(self) -> float:
        """Seconds of voice inside."""
        return sum(end - start for start, end in self.regions)


def plan_windows(
    regions: list[Interval],
    probabilities: VoiceProbabilities,
    barriers: list[Interval],
    total_s: float,
) -> list[Window]:
    """Pack voiced regions, in order, into windows of at most 28 s.

    Args:
        regions: voiced regions, disjoint and ordered.
        probabilities: to find the best place in a region that is longer than a window.
        barriers: gaps without decoded sound; no window reaches across one.
        total_s: length of the sound.
    """
    windows: list[Window] = []
    current: list[Interval] = []
    for region in (piece for r in regions for piece in _halves(r, probabilities)):
        if current and not _fits(current, region, barriers):
            windows.append(_window(current, barriers, total_s))
            current = []
        current.append(region)
    if current:
        windows.append(_window(current, barriers, total_s))
    return windows


def split_window(window: Window, barriers: list[Interval], total_s: float) -> list[Window]:
    """Two windows, parted at the longest pause; the window alone when it has one region."""
    regions = window.regions
    if len(regions) == 1:
        return [window]
    pauses = [b[0] - a[1] for a, b in pairwise(regions)]
    at = int(np.argmax(pauses)) + 1
    return [
        _window(list(regions[:at]), barriers, total_s),
        _window(list(regions[at:]), barriers, total_s),
    ]


def _fits(current: list[Interval], region: Interval, barriers: list[Interval]) -> bool:
    between = (current[-1][1], region[0])
    voiced_s = sum(end - start for start, end in current)
    max_pause_s = TURN_PAUSE_S if voiced_s >= TURN_VOICE_S else MAX_PAUSE_S
    return (
        region[1] - current[0][0] <= MAX_VOICE_S
        and between[1] - between[0] <= max_pause_s
        and not any(overlap_s(between, barrier) > 0 for barrier in barriers)
    )


def _window(regions: list[Interval], barriers: list[Interval], total_s: float) -> Window:
    start = max(0.0, regions[0][0] - PAD_S)
    end = min(total_s, regions[-1][1] + PAD_S)
    for low, high in barriers:
        if high <= regions[0][0]:
            start = max(start, high)
        if low >= regions[-1][1]:
            end = min(end, low)
    return Window((start, end), tuple(regions))


def _halves(region: Interval, probabilities: VoiceProbabilities) -> list[Interval]:
    """Cut a region that does not fit where its voice is weakest, in the later half of a window."""
    pieces: list[Interval] = []
    start, end = region
    while end - start > MAX_VOICE_S:
        low = int((start + MAX_VOICE_S / 2) / CHUNK_S)
        high = int((start + MAX_VOICE_S) / CHUNK_S)
        cut = (low + int(np.argmin(probabilities[low:high]))) * CHUNK_S
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, end)]
