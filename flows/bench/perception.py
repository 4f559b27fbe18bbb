"""The default perception models: the plain way against the chosen engine, and truth where known.

Ratios of CPU time: on a shared machine, wall time says more about the neighbours.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from engines.contracts.media import SampleParams
from engines.errors import ReelgraphError
from engines.media.probe import probe
from engines.media.sample import decode
from engines.speech.audio import Pcm
from engines.speech.channels import mono_mix
from flows.bench import BenchReport, BenchRow
from flows.bench.perception_aligner import aligner_row
from flows.bench.perception_image import image_rows
from flows.bench.perception_sound import sound_rows
from flows.bench.perception_text import text_rows
from flows.bench.perception_tokens import memory_row, token_rows

_SPEECH = "real/librivox_sense_0870.wav"
_PICTURES = {".mp4", ".avi", ".mov", ".mkv", ".webm"}


def run(cache_dir: Path | None = None, corpus: Path | None = None) -> BenchReport:
    """Measure all rows; about five minutes of CPU with a corpus, one without.

    Args:
        cache_dir: where converted networks are kept; None makes one for this run.
        corpus: directory with ``real/``: its videos are the user's own pictures that INT8 is
            calibrated on and judged by. Without it the rows that need them are left out.
    """
    with TemporaryDirectory(prefix="reelgraph-bench-") as made:
        folder = Path(made)
        cache = cache_dir or folder / "networks"
        samples = _samples(corpus, folder / "samples") if corpus is not None else None
        rows: list[BenchRow] = image_rows(cache, samples)
        rows += text_rows(folder)
        rows += sound_rows(_speech(corpus, folder) if corpus is not None else None)
        rows.append(aligner_row())
        rows.append(memory_row())
        if samples is not None:
            rows += token_rows(cache, samples)
    return BenchReport(rows=tuple(rows))


def _samples(corpus: Path, folder: Path) -> Path | None:
    """Sampled pictures of the corpus's videos, an archive for each; None where it has none."""
    for path in sorted((corpus / "real").glob("*")):
        if path.suffix not in _PICTURES:
            continue
        work = folder / path.stem
        work.mkdir(parents=True)
        try:
            decode(path, probe(path), SampleParams(), work)
        except ReelgraphError:
            continue  # a bench of models; files that do not decode are the media bench's
        for other in work.iterdir():
            if other.name != "samples.zip":
                other.unlink()
    return folder if folder.is_dir() else None


def _speech(corpus: Path, folder: Path) -> Pcm | None:
    path = corpus / _SPEECH
    if not path.is_file():
        return None
    work = folder / "speech"
    work.mkdir()
    decode(path, probe(path), SampleParams(), work)
    audio: Pcm = np.load(work / "audio.npy")
    return mono_mix(audio)
