"""The default vision models: the naive way against the chosen engine, in one run.

Ratios of CPU time: on a shared machine, wall time says more about the neighbours. Naive means
what a script does first: torch eager, one picture at a time; the OCR package's own pipeline on
every sampled picture.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np
import numpy.typing as npt

from engines.contracts.media import Sample
from engines.contracts.vision import ReadTextParams, TextDocument
from engines.runtime.backends import open_session
from engines.runtime.choice import check_reference, choose_session
from engines.runtime.session import Session, SessionOptions
from engines.vision.efficientnet_engine import network_source, reference, reference_pixels
from engines.vision.label_engine import Picture
from engines.vision.ocr_engine import PaddleTextReader
from engines.vision.read_text import read_text
from flows.bench import BenchReport, BenchRow

IMAGE_RATIO = 5.0
TEXT_RATIO = 2.0
SPAN_TOLERANCE_S = 0.3
_NUM_PICTURES = 16
_BATCH = 8
"""Rows per run of the engine: four pictures in two views."""
_ROUNDS = 2
_THREADS = 1
"""Both ways on one thread: several wait for each other in loops that count as CPU time, which on
a busy machine makes torch's default look ten times worse than it is."""
_FPS = 4
_TICKS = 1000
_NUM_SAMPLES = 20
_LINES = (("INVOICE 2041-77", 3, 10, 40, 70), ("closes at 18:45", 8, 16, 90, 300))
"""Text, first sample, first sample without it, left, baseline."""


def run(cache_dir: Path | None = None) -> BenchReport:
    """Measure all rows; takes about half a minute of CPU.

    Args:
        cache_dir: where converted networks are kept; None makes one for this run.
    """
    if cache_dir is None:
        with TemporaryDirectory() as made:
            return run(Path(made))
    return BenchReport(rows=(_image_row(cache_dir), _text_row()))


def _image_row(cache_dir: Path) -> BenchRow:
    source = network_source(cache_dir)
    options = SessionOptions(cache_dir=cache_dir, threads=_THREADS)
    pixels = reference_pixels(_NUM_PICTURES)
    session, choice = choose_session(
        source,
        options,
        reference(),
        ("openvino", "onnxruntime", "tensorrt"),
        timing_rows={"pixels": pixels[:_BATCH]},
        cache_dir=cache_dir,
    )
    naive = open_session("torch", source, options)
    error = check_reference(session, reference())
    # One after the other in each round: a change in the machine's speed meets both.
    naive_s, chosen_s = _interleaved(
        lambda: _run_all(naive, pixels, 1), lambda: _run_all(session, pixels, _BATCH)
    )
    ratio = naive_s / chosen_s
    return BenchRow(
        name="image model efficientnet-lite0",
        figures={
            "naive_images_per_cpu_s": round(_NUM_PICTURES / naive_s, 1),
            "engine_images_per_cpu_s": round(_NUM_PICTURES / chosen_s, 1),
            "ratio": round(ratio, 2),
            "engine": f"{session.describe().provider} {session.describe().precision}",
            "max_error": error,
            **{f"wall_images_per_s_{m.backend}": m.rows_per_s for m in choice.measured},
        },
        must=f"ratio >= {IMAGE_RATIO:g}",
        holds=ratio >= IMAGE_RATIO,
    )


def _run_all(session: Session, pixels: npt.NDArray[np.uint8], batch: int) -> None:
    for start in range(0, len(pixels), batch):
        session.run({"pixels": pixels[start : start + batch]})


def _text_row() -> BenchRow:
    clip = _Clip()
    params = ReadTextParams(threads=_THREADS)
    reader = PaddleTextReader(
        backend=params.backend,
        threads=params.threads,
        device=params.device,
        min_side=params.min_side,
        max_side=params.max_side,
    )
    reader.read(clip.read("0"))
    naive = _naive_reader()
    naive(clip.read("0"))
    start = time.process_time()
    document = read_text(clip, 1, _TICKS, params, end_pts=clip.end_pts, reader=reader)
    chosen_s = time.process_time() - start
    start = time.process_time()
    repeated = sum(naive(clip.read(sample.name)) for sample in clip.samples)
    naive_s = time.process_time() - start
    right = _lines_right(document)
    ratio = naive_s / chosen_s
    return BenchRow(
        name="on-screen text PP-OCRv6",
        figures={
            "naive_cpu_s": round(naive_s, 2),
            "engine_cpu_s": round(chosen_s, 2),
            "ratio": round(ratio, 2),
            "clip_s": clip.end_pts / _TICKS,
            "naive_lines": repeated,
            "engine_lines": len(document.texts),
            "lines_right": right,
            "lines": len(_LINES),
        },
        must=f"ratio >= {TEXT_RATIO:g}, every line once within {SPAN_TOLERANCE_S:g} s",
        holds=ratio >= TEXT_RATIO and right == len(_LINES) == len(document.texts),
    )


def _naive_reader() -> Callable[[Picture], int]:
    from rapidocr import RapidOCR

    threads = {"EngineConfig.onnxruntime.intra_op_num_threads": _THREADS}
    pipeline = RapidOCR(params={"Global.log_level": "error", **threads})
    return lambda picture: len(pipeline(np.ascontiguousarray(picture[..., ::-1])).txts or ())


def _lines_right(document: TextDocument) -> int:
    """Made lines that were found once, with their text and both ends within the tolerance."""
    right = 0
    for text, first, stop, _, _ in _LINES:
        found = [
            line
            for line in document.texts
            if line.text.replace(" ", "") == text.replace(" ", "")
            and abs(line.span.start_s - first / _FPS) <= SPAN_TOLERANCE_S
            and abs(line.span.end_s - stop / _FPS) <= SPAN_TOLERANCE_S
        ]
        right += len(found) == 1
    return right


def _interleaved(naive: Callable[[], object], chosen: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of each way, best of a few rounds, after one to warm up."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS + 1):
        for way, spent in zip((naive, chosen), times, strict=True):
            start = time.process_time()
            way()
            spent.append(time.process_time() - start)
    return min(times[0][1:]), min(times[1][1:])


class _Clip:
    """Five seconds of a moving camera over noise, with two lines written on it."""

    def __init__(self) -> None:
        self.end_pts = _NUM_SAMPLES * _TICKS // _FPS
        rng = np.random.default_rng(11)
        coarse: npt.NDArray[np.uint8] = rng.integers(30, 150, (24, 60, 3), dtype=np.uint8)
        self._scenery = cv2.resize(coarse, (1000, 400), interpolation=cv2.INTER_CUBIC)
        self.samples: Sequence[Sample] = tuple(
            Sample(
                name=str(i),
                frame=i * 6,
                pts=i * _TICKS // _FPS,
                end_pts=i * _TICKS // _FPS + 40,
                motion=0,
                sharpness=0,
            )
            for i in range(_NUM_SAMPLES)
        )

    def read(self, name: str) -> Picture:
        """640 x 360."""
        index = int(name)
        picture: Picture = self._scenery[20:380, 7 * index : 7 * index + 640].copy()
        for text, first, stop, left, base in _LINES:
            if first <= index < stop:
                font, white = cv2.FONT_HERSHEY_SIMPLEX, (255, 255, 255)
                cv2.putText(picture, text, (left, base), font, 0.9, white, 2, cv2.LINE_AA)
        return picture
