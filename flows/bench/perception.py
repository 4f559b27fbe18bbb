"""The default perception models: the plain way against the chosen engine, and truth where known.

Each part runs in a process of its own, one after the other, and its rows are told on stderr as
they come: a part that fails, hangs or dies is a row that says so and takes no other with it.
"""

import multiprocessing
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pebble import ProcessPool

from engines.contracts.media import SampleParams
from engines.errors import ReelgraphError
from engines.media.probe import probe
from engines.media.sample import decode
from engines.speech.audio import Pcm
from engines.speech.channels import mono_mix
from flows.bench import BenchReport, BenchRow
from flows.bench.perception_aligner import aligner_row
from flows.bench.perception_image import (
    SAMPLES,
    gate_rows,
    machine_rows,
    refusal_rows,
    thread_rows,
    whole_rows,
)
from flows.bench.perception_sound import classifier_row, events_row, recogniser_row, voice_row
from flows.bench.perception_text import hard_text_rows, text_rows
from flows.bench.perception_tokens import memory_row, token_rows
from flows.bench.rows import Rows
from flows.commands.output import tell

PART_LIMIT_S = 300.0
"""After which a part is killed."""
_SPEECH = "real/librivox_sense_0870.wav"
_PICTURES = {".mp4", ".avi", ".mov", ".mkv", ".webm"}

Part = Callable[[Path, Path], list[BenchRow]]
"""Called with the cache of converted networks and a folder with ``samples/`` and the speech."""


def run(cache_dir: Path | None = None, corpus: Path | None = None) -> BenchReport:
    """Measure all rows; about eight minutes with a corpus, three without.

    Args:
        cache_dir: where converted networks are kept; None makes one for this run.
        corpus: directory with ``real/``: its videos are the user's own pictures that INT8 is
            calibrated on and judged by. Without it the rows that need them are left out.
    """
    parts = dict(MADE)
    if corpus is not None:
        parts = {"samples of the corpus": partial(_take, corpus), **FROM_CORPUS, **MADE}
    with TemporaryDirectory(prefix="reelgraph-bench-") as made:
        folder = Path(made)
        return run_parts(parts, cache_dir or folder / "networks", folder, PART_LIMIT_S)


def run_parts(parts: dict[str, Part], cache_dir: Path, folder: Path, limit_s: float) -> BenchReport:
    """Run one part after the other, each in a new process.

    Args:
        parts: by the name that a failure's row carries; functions that can be pickled.
        cache_dir: given to each.
        folder: given to each; what one part leaves there the next ones find.
        limit_s: after so many seconds a part is killed.
    """
    rows = Rows()
    context = multiprocessing.get_context("spawn")
    # A process for each: decoding fixes the allocator's thresholds, and torch pays for that.
    with ProcessPool(max_workers=1, max_tasks=1, context=context) as pool:
        for name, part in parts.items():
            rows.say(f"{name} ...")
            future = pool.schedule(part, args=(cache_dir, folder), timeout=limit_s)
            # Asked for and not raised: whatever it is, the other parts go on.
            problem = future.exception()
            rows.add([_failed(name, problem, limit_s)] if problem is not None else future.result())
    return BenchReport(rows=tuple(rows.all))


def _take(corpus: Path, _cache_dir: Path, folder: Path) -> list[BenchRow]:
    """Sample the corpus's videos, an archive for each, and decode some speech; no row of its own.

    Files that do not decode are left out: they are the media bench's.
    """
    for path in sorted((corpus / "real").glob("*")):
        if path.suffix not in _PICTURES:
            continue
        work = folder / SAMPLES / path.stem
        work.mkdir(parents=True)
        try:
            decode(path, probe(path), SampleParams(), work)
        except ReelgraphError as problem:
            tell(f"  {path.name} is left out: {problem}")
        for other in work.iterdir():
            if other.name != "samples.zip":
                other.unlink()
    speech = folder / "speech"
    speech.mkdir()
    path = corpus / _SPEECH
    decode(path, probe(path), SampleParams(), speech)
    return []


def _speech(folder: Path) -> Pcm:
    audio: Pcm = np.load(folder / "speech" / "audio.npy")
    return mono_mix(audio)


def _with_speech(
    measure: Callable[[Pcm], BenchRow], _cache_dir: Path, folder: Path
) -> list[BenchRow]:
    return [measure(_speech(folder))]


def _aligner(_cache_dir: Path, _folder: Path) -> list[BenchRow]:
    return [aligner_row()]


def _memory(_cache_dir: Path, _folder: Path) -> list[BenchRow]:
    return [memory_row()]


FROM_CORPUS: dict[str, Part] = {
    "image model, gate of INT8": gate_rows,
    "image model, refusal of a bad calibration": refusal_rows,
    "image model, end to end": whole_rows,
    "token compression": token_rows,
    "voice activity": partial(_with_speech, voice_row),
    "speech recogniser": partial(_with_speech, recogniser_row),
    "sound classes": partial(_with_speech, classifier_row),
    "sound events": partial(_with_speech, events_row),
}
MADE: dict[str, Part] = {
    "image model, all cores": machine_rows,
    "image model, one thread": thread_rows,
    "on-screen text": text_rows,
    "on-screen text, harder": hard_text_rows,
    "alignment": _aligner,
    "memory of windowed attention": _memory,
}
"""What needs no corpus; the image model is measured in INT8 too where there are its pictures."""


def _failed(name: str, problem: BaseException, limit_s: float) -> BenchRow:
    killed = isinstance(problem, TimeoutError)
    said = f"killed at its limit of {limit_s:g} s" if killed else repr(problem)
    return BenchRow(name=name, figures={"error": said}, must="runs to its end", holds=False)
