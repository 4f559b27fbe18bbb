"""What the two channels of a stereo recording are: one sound, or a speaker on each."""

from dataclasses import dataclass

import numpy as np

from engines.errors import UsageError
from engines.speech.audio import SAMPLE_RATE_HZ, Pcm, frame_level_db, to_float
from engines.speech.voice import VoiceDetector, voiced_regions

APART_CORRELATION = 0.35
OUT_OF_PHASE = -0.5
_BLOCK = 2 * SAMPLE_RATE_HZ
_MAX_BLOCKS = 120
_MAX_LAG = SAMPLE_RATE_HZ // 50
_MIN_LEVEL_DB = -55.0
_MIN_VOICE_S = 0.5
_DEAF_DB = 40.0
_CHANNELS = (1, 2)
_AXES = 2


@dataclass(frozen=True)
class Track:
    """Mono sound to be written down by itself."""

    speaker: str | None
    """``left``, ``right``, or None for a mix."""
    pcm: Pcm


def check_audio(audio: Pcm) -> None:
    """Hold the caller to int16 [channels, n] with one or two channels.

    Raises:
        UsageError: any other dtype or shape.
    """
    if audio.dtype != np.int16 or audio.ndim != _AXES or len(audio) not in _CHANNELS:
        msg = f"sound must be int16 [1 or 2, n], not {audio.dtype} {list(audio.shape)}"
        raise UsageError(msg)


def mono_mix(audio: Pcm) -> Pcm:
    """int16 [n] from [channels, n]: the mean, minding channels that are dead or out of phase.

    The mean of a voice and its inverted copy is silence, and a dead channel halves the level;
    so opposite phases are subtracted and a channel 40 dB below the other is left out.
    """
    left: Pcm = audio[0]
    if len(audio) == 1:
        return left
    levels = [_level_db(channel) for channel in audio]
    if abs(levels[0] - levels[1]) > _DEAF_DB:
        louder: Pcm = audio[int(np.argmax(levels))]
        return louder
    sign = -1 if channel_correlation(audio) < OUT_OF_PHASE else 1
    mixed = np.empty(audio.shape[1], dtype=np.int16)
    for start in range(0, audio.shape[1], _BLOCK):
        block = audio[:, start : start + _BLOCK].astype(np.int32)
        mixed[start : start + _BLOCK] = (block[0] + sign * block[1]) // 2
    return mixed


def channel_correlation(audio: Pcm) -> float:
    """Likeness of two channels: the strongest normalised cross-correlation within 20 ms.

    Looking over lags lets one speaker before two spaced microphones count as one sound. Median
    over blocks of 2 s in which both channels are above -55 dB; 1 where there is no such block
    (nothing speaks for taking them apart). Signed: -1 is the same sound out of phase.
    """
    starts = range(0, max(1, audio.shape[1] - _BLOCK // 2), _BLOCK)
    stride = max(1, len(starts) // _MAX_BLOCKS)
    values = []
    for start in starts[::stride]:
        pair = audio[:, start : start + _BLOCK]
        if min(_level_db(pair[0]), _level_db(pair[1])) > _MIN_LEVEL_DB:
            values.append(_block_correlation(pair))
    return float(np.median(values)) if values else 1.0


def split_tracks(audio: Pcm, detector: VoiceDetector) -> list[Track]:
    """One mixed track, or left and right where each carries its own speaker.

    Apart means: the channels' correlation is under 0.35 either way, and each has at least half a
    second of voice by itself.
    """
    if len(audio) == 1 or audio.shape[1] == 0:
        return [Track(None, mono_mix(audio))]
    if abs(channel_correlation(audio)) < APART_CORRELATION and all(
        _voice_s(channel, detector) >= _MIN_VOICE_S for channel in audio
    ):
        return [Track("left", audio[0]), Track("right", audio[1])]
    return [Track(None, mono_mix(audio))]


def _voice_s(channel: Pcm, detector: VoiceDetector) -> float:
    regions = voiced_regions(detector.probabilities(channel))
    return sum(end - start for start, end in regions)


def _level_db(channel: Pcm) -> float:
    levels = frame_level_db(channel, 0.1)
    return float(levels.max()) if len(levels) else -120.0


def _block_correlation(pair: Pcm) -> float:
    left, right = (to_float(channel) - to_float(channel).mean() for channel in pair)
    size = 1 << (2 * len(left) - 1).bit_length()
    spectrum = np.fft.rfft(left, size) * np.conj(np.fft.rfft(right, size))
    products = np.fft.irfft(spectrum, size)
    near = np.concatenate([products[: _MAX_LAG + 1], products[-_MAX_LAG:]])
    norm = float(np.linalg.norm(left) * np.linalg.norm(right))
    strongest = float(near[int(np.argmax(np.abs(near)))])
    return strongest / norm if norm > 0 else 0.0
