"""Short-time spectra of a whole recording, block by block, reduced to what sound events need."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engines.speech.audio import SAMPLE_RATE_HZ, Pcm, to_float

HOP = 160
HOP_S = HOP / SAMPLE_RATE_HZ
_WINDOW = 400
_FFT = 512
_BANDS = 32
_BLOCK_FRAMES = 6000
_LOWEST_HZ = 80.0
_LAG = 2
_TONE_HALF_WIDTH = 2
# Power of a band below which nothing is heard (about -80 dB of full scale): keeps the step from
# digital silence to dither from looking like a bang.
_FLOOR = 1e-6

Series = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SpectralTrack:
    """One value per 10 ms; frame i is centred at ``i * HOP_S`` seconds.

    Attributes:
        flux: mean rise of log power over the bands against two frames before, in dB.
        tone_share: part of the power that lies in the strongest 5 bins (1 for a pure tone).
        peak_hz: frequency of the strongest bin.
    """

    flux: Series
    tone_share: Series
    peak_hz: Series


def spectral_track(pcm: Pcm) -> SpectralTrack:
    """Flux and tonality of int16 [n]; memory is bounded by blocks of a minute.

    The flux follows Boeck and Widmer, Maximum Filter Vibrato Suppression for Onset Detection,
    2013: rises are measured against the maximum over neighbouring bands, so that a gliding voice
    or vibrato does not count as an onset.
    """
    frames = len(pcm) // HOP + 1 if len(pcm) else 0
    flux = np.zeros(frames, dtype=np.float32)
    share = np.zeros(frames, dtype=np.float32)
    peak = np.zeros(frames, dtype=np.float32)
    bands = _band_matrix()
    before = np.full((_LAG, _BANDS), 10 * np.log10(_FLOOR), dtype=np.float32)
    for first in range(0, frames, _BLOCK_FRAMES):
        last = min(frames, first + _BLOCK_FRAMES)
        power = _power(pcm, first, last)
        level = 10 * np.log10(power @ bands + _FLOOR)
        history = np.vstack([before, level])
        wide = np.maximum(history, np.maximum(_shift(history, 1), _shift(history, -1)))
        flux[first:last] = np.maximum(level - wide[: len(level)], 0).mean(axis=1)
        before = history[-_LAG:]
        share[first:last], peak[first:last] = _tonality(power)
    flux[: _LAG + 1] = 0  # the recording's own beginning is no event
    return SpectralTrack(flux, share, peak)


def _power(pcm: Pcm, first: int, last: int) -> Series:
    """float32 [last - first, 257] power spectra, scaled so that a full-scale sine gives 1."""
    half = _WINDOW // 2
    start, end = first * HOP - half, (last - 1) * HOP + half
    samples = to_float(pcm[max(0, start) : min(len(pcm), end)])
    samples = np.pad(samples, (max(0, -start), max(0, end - len(pcm))))
    frames = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::HOP]
    window = np.hanning(_WINDOW).astype(np.float32)
    spectra = np.fft.rfft(frames * window, _FFT)
    scale = np.float32(2.0 / window.sum())
    return (np.abs(spectra).astype(np.float32) * scale) ** 2


def _tonality(power: Series) -> tuple[Series, Series]:
    strongest = power.argmax(axis=1)
    sums = np.cumsum(np.pad(power, ((0, 0), (1, 0))), axis=1)
    low = np.clip(strongest - _TONE_HALF_WIDTH, 0, power.shape[1])
    high = np.clip(strongest + _TONE_HALF_WIDTH + 1, 0, power.shape[1])
    rows = np.arange(len(power))
    inside = sums[rows, high] - sums[rows, low]
    share = inside / (sums[:, -1] + 1e-12)
    hertz = strongest * (SAMPLE_RATE_HZ / _FFT)
    return share.astype(np.float32), hertz.astype(np.float32)


def _shift(values: Series, by: int) -> Series:
    """Bands moved up or down by one, edges repeated."""
    padded = np.pad(values, ((0, 0), (1, 1)), mode="edge")
    return padded[:, 1 + by : 1 + by + values.shape[1]]


def _band_matrix() -> Series:
    """float32 [257, 32]: triangular bands, evenly spaced on the mel scale from 80 Hz."""
    top = SAMPLE_RATE_HZ / 2
    mel = np.linspace(_mel(_LOWEST_HZ), _mel(top), _BANDS + 2)
    edges = 700.0 * (10 ** (mel / 2595.0) - 1)
    hertz = np.arange(_FFT // 2 + 1) * (SAMPLE_RATE_HZ / _FFT)
    rising = (hertz[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - hertz[:, None]) / (edges[2:] - edges[1:-1])
    weights = np.clip(np.minimum(rising, falling), 0, None)
    return weights.astype(np.float32)


def _mel(hertz: float) -> float:
    return float(2595.0 * np.log10(1 + hertz / 700.0))
