"""Word error rate over a corpus's transcripts, and silence where nothing is said.

The baseline of each row is the same recogniser given the whole sound at once, as a script would
call it: no voice detector, no checks, numbers written as the model likes.
"""

import csv
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from engines.contracts.media import SampleParams
from engines.contracts.speech import ListenParams
from engines.errors import EngineError
from engines.media.probe import probe
from engines.media.sample import decode
from engines.speech.audio import SAMPLE_RATE_HZ, Pcm, to_float
from engines.speech.channels import mono_mix
from engines.speech.listen import listen
from engines.speech.registry import load_recogniser
from engines.speech.whisper import MAX_WINDOW_S
from flows.bench import BenchReport, BenchRow

MAX_WORD_ERROR_RATE = 0.12
MAX_LATE_S = 0.1
_TRANSCRIPT = re.compile(r'transcript\b[^"]*="([^"]*)"')
_QUIET = re.compile(r"no speech|room noise|ambient audio|NOISE|transcript (must be )?empty")
_LATE = re.compile(r'"([^"]*)" heard from about ([0-9.]+) s')
_NOT_A_WORD = re.compile(r"[^a-z' ]")
_SECONDS_PER_MINUTE = 60


@dataclass(frozen=True)
class _Heard:
    """One file, both ways; errors are word edits against the transcript."""

    name: str
    words: int
    errors: int
    baseline_errors: int
    seconds: float
    cpu_s: float
    baseline_cpu_s: float


def run(corpus: Path, params: ListenParams | None = None) -> BenchReport:
    """Measure the engine alone on ``corpus/manifest.csv`` and on sounds without speech.

    Args:
        corpus: directory with ``manifest.csv`` (columns ``file`` and ``ground_truth``); rows
            whose ground truth has transcript="..." and whose file is there are measured, so are
            those that say that nothing is said, or from when.
        params: the engine's parameters; None for the defaults.
    """
    params = params or ListenParams()
    truths = list(_truths(corpus))
    heard = [_measure(corpus / name, m[1], params) for name, m in _matching(truths, _TRANSCRIPT)]
    rows = [_file_row(item) for item in heard]
    if heard:
        rows.append(_overall(heard))
    rows += [
        _late_row(corpus / name, m[1], float(m[2]), params) for name, m in _matching(truths, _LATE)
    ]
    for name, _ in _matching(truths, _QUIET):
        sound = _sound_of(corpus / name)
        pcm = None if sound is None else sound[0]
        rows.append(_quiet_row(name, pcm, params))
    rows.extend(_quiet_row(name, pcm, params) for name, pcm in _sounds_without_speech())
    return BenchReport(rows=tuple(rows))


def spoken_words(text: str) -> list[str]:
    """Lower-case words; everything but letters and the apostrophe parts them."""
    return _NOT_A_WORD.sub(" ", text.lower()).split()


def word_errors(wanted: list[str], got: list[str]) -> int:
    """Fewest insertions, deletions and substitutions that turn one into the other."""
    row = list(range(len(got) + 1))
    for i, want in enumerate(wanted, 1):
        diagonal, row[0] = row[0], i
        for j, have in enumerate(got, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (want != have))
    return row[-1]


def _truths(corpus: Path) -> Iterator[tuple[str, str]]:
    """File and ground truth of each row whose file is there."""
    with (corpus / "manifest.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if (corpus / row["file"]).is_file():
                yield row["file"], row["ground_truth"]


def _matching(
    truths: Iterable[tuple[str, str]], pattern: re.Pattern[str]
) -> Iterator[tuple[str, re.Match[str]]]:
    for name, truth in truths:
        found = pattern.search(truth)
        if found is not None:
            yield name, found


def _measure(path: Path, transcript: str, params: ListenParams) -> _Heard:
    sound = _sound_of(path)
    if sound is None:
        msg = f"{path.name} has a transcript and no sound"
        raise EngineError(msg)
    audio, start_pts, gaps = sound
    load_recogniser(params)
    started = time.process_time()
    document = listen(audio, start_pts, gaps, params)
    cpu_s = time.process_time() - started
    started = time.process_time()
    plain = _plain(mono_mix(audio), params)
    baseline_cpu_s = time.process_time() - started
    wanted = spoken_words(transcript)
    got = spoken_words(" ".join(utterance.text for utterance in document.utterances))
    return _Heard(
        path.name,
        len(wanted),
        word_errors(wanted, got),
        word_errors(wanted, spoken_words(plain)),
        audio.shape[1] / SAMPLE_RATE_HZ,
        cpu_s,
        baseline_cpu_s,
    )


def _sound_of(path: Path) -> tuple[Pcm, int, tuple[tuple[float, float], ...]] | None:
    """Sound, its start in 1/16000 s and its gaps; None where the file has none."""
    with TemporaryDirectory() as folder:
        document = decode(path, probe(path), SampleParams(), Path(folder))
        if document.audio is None:
            return None
        audio: Pcm = np.load(Path(folder) / "audio.npy")
    return audio, document.audio_start_pts, document.audio_gaps


def _plain(pcm: Pcm, params: ListenParams) -> str:
    recogniser = load_recogniser(params.model_copy(update={"numerals": "written"}))
    step = round(MAX_WINDOW_S * SAMPLE_RATE_HZ)
    blocks = (to_float(pcm[first : first + step]) for first in range(0, len(pcm), step))
    return " ".join(recogniser.recognise(block, language=params.language).text for block in blocks)


def _file_row(item: _Heard) -> BenchRow:
    return BenchRow(
        name=item.name,
        figures={
            "words": item.words,
            "word_error_rate": round(item.errors / max(item.words, 1), 4),
            "baseline_word_error_rate": round(item.baseline_errors / max(item.words, 1), 4),
            "seconds": round(item.seconds, 2),
            "cpu_s": round(item.cpu_s, 2),
        },
        must=None,
        holds=None,
    )


def _overall(heard: list[_Heard]) -> BenchRow:
    words = sum(item.words for item in heard)
    rate = sum(item.errors for item in heard) / max(words, 1)
    minutes = sum(item.seconds for item in heard) / _SECONDS_PER_MINUTE
    return BenchRow(
        name="overall",
        figures={
            "words": words,
            "word_error_rate": round(rate, 4),
            "baseline_word_error_rate": round(
                sum(item.baseline_errors for item in heard) / max(words, 1), 4
            ),
            "cpu_s_per_minute": round(sum(item.cpu_s for item in heard) / minutes, 2),
            "baseline_cpu_s_per_minute": round(
                sum(item.baseline_cpu_s for item in heard) / minutes, 2
            ),
        },
        must=f"word_error_rate <= {MAX_WORD_ERROR_RATE}",
        holds=rate <= MAX_WORD_ERROR_RATE,
    )


def _sounds_without_speech() -> Iterator[tuple[str, Pcm]]:
    """Twenty seconds each, seeded: digital silence, faint and loud noise, a tone, a tune."""
    rng = np.random.default_rng(20)
    t = np.arange(20 * SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ
    notes = 220 * 2 ** (rng.integers(0, 12, 40) / 12)
    pitch = np.repeat(notes, len(t) // len(notes))
    decay = np.exp(-4 * (t % 0.5))
    sounds = {
        "silence": np.zeros(len(t)),
        "faint noise": rng.uniform(-0.01, 0.01, len(t)),
        "loud noise": rng.normal(0, 0.1, len(t)),
        "tone": 0.3 * np.sin(2 * np.pi * 440 * t),
        "tune": 0.3 * decay * sum(np.sin(2 * np.pi * k * pitch * t) / k for k in range(1, 5)),
    }
    for name, signal in sounds.items():
        yield name, np.clip(signal * 32767, -32768, 32767).astype(np.int16)[None]


def _quiet_row(name: str, pcm: Pcm | None, params: ListenParams) -> BenchRow:
    got = plain = 0
    if pcm is not None:
        document = listen(pcm, 0, (), params)
        got = sum(len(utterance.words) for utterance in document.utterances)
        plain = len(_plain(mono_mix(pcm), params).split())
    return BenchRow(
        name=f"nothing said: {name}",
        figures={"words": got, "baseline_words": plain},
        must="words = 0",
        holds=got == 0,
    )


def _late_row(path: Path, words: str, start_s: float, params: ListenParams) -> BenchRow:
    sound = _sound_of(path)
    utterances = () if sound is None else listen(*sound, params).utterances
    first = min((u.span.start_s for u in utterances), default=None)
    errors = word_errors(spoken_words(words), spoken_words(" ".join(u.text for u in utterances)))
    return BenchRow(
        name=f"late sound: {path.name}",
        figures={"sound_from_s": start_s, "first_word_s": first, "word_errors": errors},
        must=f"first word within {MAX_LATE_S:g} s",
        holds=first is not None and abs(first - start_s) <= MAX_LATE_S,
    )
