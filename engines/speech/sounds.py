"""Sound events as labels of the vocabulary ``sound``.

``speech`` from the voice detector, ``music`` and ``singing`` from the sound classifier, ``tone``,
``silence`` and ``onset`` from the signal itself.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import uniform_filter1d

from engines.contracts.time import TimeSpan
from engines.contracts.vision import Label
from engines.speech.audio import (
    SAMPLE_RATE_HZ,
    Interval,
    Pcm,
    covered_s,
    frame_level_db,
    merge,
    subtract,
)
from engines.speech.onsets import Onset, find_onsets
from engines.speech.sound_classes import CLASSES, HOP_S, ClassProbabilities
from engines.speech.spectrum import Series, SpectralTrack, spectral_track
from engines.speech.voice import CHUNK_S, VoiceProbabilities

VOCABULARY = "sound"
SIGNAL_MODEL = "signal"
SILENCE_DB = -60.0
_MIN_SILENCE_S = 0.5
_MIN_CLASS_S = {"music": 2.0, "singing": 1.0}
_SMOOTH_S = 0.5
_ENTER = 0.6
_LEAVE = 0.4
_CLASS_GAP_S = 0.5
_SPEECH_GAP_S = 0.5
_VOICE_MARGIN_S = 0.15
_SPEECH_CLASS = 0.5
_SUNG_VOICE = 0.5
_BEGINNING_S = 0.12
_SILENCE_GAP_S = 0.05
_GAP_MARGIN_S = 0.05
_TONE_SHARE = 0.95
_TONE_DB = -50.0
_TONE_DRIFT_HZ = 40.0
_MIN_TONE_S = 0.15
_MOSTLY = 0.5
_RISE_MIDDLE_DB = 10.0
_RISE_SCALE_DB = 4.0


@dataclass(frozen=True)
class HeardSpeech:
    """What the voice detector said of the mixed sound."""

    regions: list[Interval]
    probabilities: VoiceProbabilities
    model: str


@dataclass(frozen=True)
class HeardClasses:
    """What the sound classifier said of the mixed sound."""

    probabilities: ClassProbabilities
    model: str


@dataclass(frozen=True)
class _Event:
    name: str
    span: Interval
    score: float
    model: str
    flags: tuple[str, ...] = ()


def label_sounds(
    pcm: Pcm,
    start_pts: int,
    gaps: list[Interval],
    speech: HeardSpeech,
    classes: HeardClasses | None,
) -> tuple[Label, ...]:
    """All sound events of mono int16 [n], ordered by start.

    Args:
        pcm: the mixed sound.
        start_pts: of its first sample, in 1/16000 s on the asset clock.
        gaps: spans without decoded sound, seconds of the track: nothing is said about them.
        speech: where there is voice.
        classes: for music and singing, or None.
    """
    track = spectral_track(pcm)
    levels = frame_level_db(pcm)
    tones = _tones(track, levels, speech.regions)
    music = _class_events(classes, "music", [event.span for event in tones], gaps)
    sung = [
        event
        for event in _class_events(classes, "singing", [], gaps)
        if _peak_voice(speech, event.span) >= _SUNG_VOICE
    ]
    events = [
        *_speech_events(speech),
        *_silences(levels, gaps),
        *tones,
        *music,
        *sung,
        *_onset_events(pcm, track, gaps, speech, classes, [event.span for event in music]),
    ]
    labels = [_to_label(event, start_pts) for event in events]
    return tuple(sorted(labels, key=lambda label: (label.span.start_pts, label.label)))


def _to_label(event: _Event, start_pts: int) -> Label:
    first = start_pts + round(event.span[0] * SAMPLE_RATE_HZ)
    last = start_pts + round(event.span[1] * SAMPLE_RATE_HZ)
    return Label(
        span=TimeSpan(
            start_pts=first,
            end_pts=max(first + 1, last),
            time_base_num=1,
            time_base_den=SAMPLE_RATE_HZ,
        ),
        flags=event.flags,
        label=event.name,
        score=round(min(1.0, max(0.0, event.score)), 4),
        vocabulary=VOCABULARY,
        model=event.model,
    )


def _speech_events(speech: HeardSpeech) -> list[_Event]:
    return [
        _Event("speech", span, _peak_voice(speech, span), speech.model)
        for span in merge(speech.regions, _SPEECH_GAP_S)
    ]


def _peak_voice(speech: HeardSpeech, span: Interval) -> float:
    first = int(span[0] / CHUNK_S)
    part = speech.probabilities[first : max(first + 1, int(span[1] / CHUNK_S))]
    return float(part.max()) if len(part) else 0.0


def _silences(levels: Series, gaps: list[Interval]) -> list[_Event]:
    quiet = subtract(merge(_runs(levels < SILENCE_DB, 0.0), _SILENCE_GAP_S), gaps)
    return [
        _Event("silence", span, 1.0, SIGNAL_MODEL)
        for span in quiet
        if span[1] - span[0] >= _MIN_SILENCE_S
    ]


def _onset_events(
    pcm: Pcm,
    track: SpectralTrack,
    gaps: list[Interval],
    speech: HeardSpeech,
    classes: HeardClasses | None,
    music: list[Interval],
) -> list[_Event]:
    """Onsets outside speech: each syllable is a rise, and so is the edge of a gap."""
    ignore = [(a - _VOICE_MARGIN_S, b + _VOICE_MARGIN_S) for a, b in speech_spans(speech, classes)]
    ignore += [(a - _GAP_MARGIN_S, b + _GAP_MARGIN_S) for a, b in gaps]
    ignore.append((-1.0, _BEGINNING_S))
    return [
        _Event(
            "onset",
            (onset.start_s, onset.end_s),
            _onset_score(onset),
            SIGNAL_MODEL,
            ("in_music",) if any(a <= onset.start_s < b for a, b in music) else (),
        )
        for onset in find_onsets(pcm, track.flux, ignore)
    ]


def speech_spans(speech: HeardSpeech, classes: HeardClasses | None) -> list[Interval]:
    """Where either witness hears speech, short pauses included."""
    spans = list(speech.regions)
    if classes is not None:
        spans += _runs(classes.probabilities[:, CLASSES.index("speech")] >= _SPEECH_CLASS, 0.1)
    return merge(spans, _SPEECH_GAP_S)


def _onset_score(onset: Onset) -> float:
    """Logistic in the rise: 0.5 at 10 dB, 0.95 at 22 dB."""
    return float(1 / (1 + np.exp(-(onset.rise_db - _RISE_MIDDLE_DB) / _RISE_SCALE_DB)))


def _class_events(
    classes: HeardClasses | None, name: str, tones: list[Interval], gaps: list[Interval]
) -> list[_Event]:
    """Spans of a class by two thresholds on the smoothed probability.

    A steady pure tone is what the classifier takes for music: spans made up of tones are left
    to the label ``tone``.
    """
    if classes is None or not len(classes.probabilities):
        return []
    raw = classes.probabilities[:, CLASSES.index(name)]
    smooth = uniform_filter1d(raw, size=round(_SMOOTH_S / HOP_S), mode="nearest")
    events = []
    for span in merge(_hysteresis(smooth), _CLASS_GAP_S):
        for piece in subtract([span], gaps):
            length = piece[1] - piece[0]
            if length < _MIN_CLASS_S[name] or covered_s(piece, tones) > _MOSTLY * length:
                continue
            part = smooth[round(piece[0] / HOP_S) : max(1, round(piece[1] / HOP_S))]
            events.append(_Event(name, piece, float(part.max()), classes.model))
    return events


def _hysteresis(values: Series) -> list[Interval]:
    """Spans that stay above the lower threshold and reach the upper one."""
    return [
        span
        for span in _runs(values >= _LEAVE, 0.0)
        if values[round(span[0] / HOP_S) : round(span[1] / HOP_S)].max() >= _ENTER
    ]


def _tones(track: SpectralTrack, levels: Series, voice: list[Interval]) -> list[_Event]:
    """Steady single tones: nearly all power in one place, level up, pitch standing still."""
    count = min(len(levels), len(track.tone_share))
    drift = np.abs(np.diff(track.peak_hz[:count], prepend=track.peak_hz[:1]))
    steady = (
        (track.tone_share[:count] >= _TONE_SHARE)
        & (levels[:count] >= _TONE_DB)
        & (drift <= _TONE_DRIFT_HZ)
    )
    return [
        _Event(
            "tone",
            span,
            float(track.tone_share[round(span[0] / HOP_S) : round(span[1] / HOP_S)].mean()),
            SIGNAL_MODEL,
        )
        for span in _runs(steady, _MIN_TONE_S)
        if covered_s(span, [(a - _VOICE_MARGIN_S, b + _VOICE_MARGIN_S) for a, b in voice]) == 0
    ]


def _runs(mask: npt.NDArray[np.bool_], min_s: float) -> list[Interval]:
    """Runs of True in a mask with one value per 10 ms, in seconds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    runs = zip(edges[::2], edges[1::2], strict=True)
    return [(a * HOP_S, b * HOP_S) for a, b in runs if (b - a) * HOP_S >= min_s - 1e-9]
