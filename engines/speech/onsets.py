"""Sudden loud sounds: clicks, bangs, bells, each to a few milliseconds."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import median_filter
from scipy.signal import find_peaks

from engines.speech.audio import SAMPLE_RATE_HZ, Interval, Pcm, frame_level_db
from engines.speech.spectrum import HOP_S, Series

MIN_RISE_DB = 6.0
MIN_LEVEL_DB = -45.0
_MIN_FLUX_DB = 2.5
_FLUX_OVER_MEDIAN = 4.0
_BELOW_LOUDEST_DB = 30.0
_CONTEXT_S = 10.0
_REFRACTORY_S = 0.06
_FINE_S = 0.001
_SEARCH_S = 0.04
_MAX_DECAY_S = 1.0
_DECAY_DB = 20.0


@dataclass(frozen=True)
class Onset:
    """One transient; seconds of the track."""

    start_s: float
    end_s: float
    """Where it has decayed by 20 dB or back to what was before, at most a second later."""
    rise_db: float
    """Level just after against level just before."""


def find_onsets(pcm: Pcm, flux: Series, ignore: list[Interval]) -> list[Onset]:
    """Transients by peaks of spectral flux that also raise the level.

    A peak counts when its prominence is above 2.5 dB and four times the median flux of the 3 s
    around, the level rises by at least 6 dB within 30 ms, and it is not 30 dB below the loudest
    within 10 s.

    Args:
        pcm: int16 [n].
        flux: of ``spectral_track(pcm)``.
        ignore: spans (speech, edges of gaps) in which a rise says nothing.
    """
    levels = frame_level_db(pcm)
    if len(levels) < round(2 * _REFRACTORY_S / HOP_S):
        return []
    base = median_filter(flux, size=301, mode="nearest")
    peaks, found = find_peaks(
        flux, height=_MIN_FLUX_DB, prominence=_MIN_FLUX_DB, distance=round(_REFRACTORY_S / HOP_S)
    )
    onsets = []
    for index, prominence in zip(peaks, found["prominences"], strict=True):
        if prominence < _FLUX_OVER_MEDIAN * base[index]:
            continue
        onset = _measure(pcm, levels, int(index))
        if onset is not None and not any(a <= onset.start_s < b for a, b in ignore):
            onsets.append(onset)
    return onsets


def _measure(pcm: Pcm, levels: npt.NDArray[np.float32], index: int) -> Onset | None:
    """Check the level around a flux peak and find its exact time; None when it is no onset."""
    before = levels[max(0, index - 12) : max(0, index - 2)]
    after = levels[max(0, index - 1) : index + 4]
    if not len(before) or not len(after):
        return None
    ground = max(float(np.percentile(before, 80)), -90.0)
    peak = float(after.max())
    reach = round(_CONTEXT_S / HOP_S)
    loudest = float(levels[max(0, index - reach) : index + reach].max())
    if peak - ground < MIN_RISE_DB or peak < max(MIN_LEVEL_DB, loudest - _BELOW_LOUDEST_DB):
        return None
    start_s = _exact_start(pcm, index * HOP_S, ground)
    return Onset(start_s, _decay_end(levels, start_s, ground, peak), peak - ground)


def _exact_start(pcm: Pcm, about_s: float, ground_db: float) -> float:
    """First millisecond near ``about_s`` that stands halfway (in dB) over what was before."""
    first = max(0, round((about_s - _SEARCH_S) * SAMPLE_RATE_HZ))
    last = min(len(pcm), round((about_s + _SEARCH_S) * SAMPLE_RATE_HZ))
    fine = frame_level_db(pcm[first:last], _FINE_S)
    if not len(fine):
        return about_s
    bound = (ground_db + float(fine.max())) / 2
    return first / SAMPLE_RATE_HZ + int(np.argmax(fine >= bound)) * _FINE_S


def _decay_end(
    levels: npt.NDArray[np.float32], start_s: float, ground_db: float, peak_db: float
) -> float:
    first = round(start_s / HOP_S) + 1
    bound = max(peak_db - _DECAY_DB, ground_db + 3)
    tail = levels[first + 3 : first + round(_MAX_DECAY_S / HOP_S)]
    below = np.flatnonzero(tail < bound)
    frames = int(below[0]) + 3 if len(below) else len(tail)
    return max(start_s + HOP_S, (first + frames) * HOP_S)
