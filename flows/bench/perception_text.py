"""On-screen text: the OCR package's own pipeline against the engine, and lines that are known.

Both on one made video, encoded and decoded again, whose lines, times and letters are stated here.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from engines.contracts.media import Sample, SampleParams
from engines.contracts.vision import ReadTextParams, TextDocument, TextLine
from engines.media.probe import probe
from engines.media.sample import decode
from engines.media.samples import SampleArchive
from engines.vision.label_engine import Picture
from engines.vision.read_text import open_reader, read_text
from flows.bench import BenchRow
from flows.bench.speech import word_errors

TEXT_RATIO = 2.0
SPAN_TOLERANCE_S = 0.3
MIN_SHARE = 0.95
_THREADS = 1
_FPS = 12
_SIZE = (768, 432)
_SECONDS = 24
_SLOT_S = 4.0
_HERSHEY = (
    cv2.FONT_HERSHEY_SIMPLEX,
    cv2.FONT_HERSHEY_DUPLEX,
    cv2.FONT_HERSHEY_COMPLEX,
    cv2.FONT_HERSHEY_TRIPLEX,
)
_TEXTS = (
    "INVOICE 2041-77",
    "Platform 9 closes at 18:45",
    "fragile - do not drop",
    "Temperature 21.5 C",
    "Gate B12 now boarding",
    "MIND THE STEP",
    "Chapter three: the harbour",
    "serial no. QX-40917",
    "Next train in 7 min",
    "Price: 129.90",
    "water under pressure",
    "EXIT ONLY",
    "Room 204, second floor",
    "Please wait here",
    "Camera 3 north yard",
    "total 48 of 96 units",
    "Speed limit 30",
    "open daily 9 to 17",
    "Do not lean on the glass",
    "batch 77 passed",
    "Lecture 5: memory",
    "Score 3 : 2",
    "left turn ahead",
    "Version 2.10 ready",
)
_NAIVE_STEP = 4
"""The naive way is measured on every fourth sample and counted for all: it costs the same each."""
_LETTER_SIZES = (18, 24, 32, 44)
_EACH = 6
_SHORT_S = 0.6


@dataclass(frozen=True)
class _Written:
    """One line as it was drawn."""

    text: str
    start_s: float
    end_s: float
    left: int
    top: int
    size: int
    font: int
    """0 is Pillow's own font, the others are OpenCV's."""
    fade_s: float = 0.0
    """It comes and goes in so many seconds."""
    rise_px_s: float = 0.0
    """It moves up so fast."""


def text_rows(_cache_dir: Path, folder: Path) -> list[BenchRow]:
    """The speed row and the made-lines row, from one made video."""
    lines = _script()
    samples = _sampled(folder / "lines", lines)
    params = ReadTextParams(threads=_THREADS)
    reader = open_reader(params)
    naive = _naive_reader()
    first = samples.read(samples.samples[0].name)
    reader.read(first)
    naive(first)
    start = time.process_time()
    document = read_text(
        samples, *samples.time_base, params, end_pts=samples.end_pts, reader=reader
    )
    chosen_s = time.process_time() - start
    some = samples.samples[::_NAIVE_STEP]
    start = time.process_time()
    repeated = sum(naive(samples.read(sample.name)) for sample in some)
    naive_s = (time.process_time() - start) * len(samples.samples) / len(some)
    figures = {
        "naive_cpu_s": round(naive_s, 2),
        "engine_cpu_s": round(chosen_s, 2),
        "clip_s": _SECONDS,
        "naive_lines_in_a_quarter": repeated,
        "engine_lines": len(document.texts),
        "padding_waste": round(reader.padding_waste, 3),
    }
    return [
        _speed_row(naive_s / chosen_s, figures),
        _lines_row("made lines of text: each once, in its time", document, lines),
    ]


def hard_text_rows(_cache_dir: Path, folder: Path) -> list[BenchRow]:
    """Lines of half a second, subtitles without a pause between them, fading and rolling lines."""
    lines = _hard_script()
    samples = _sampled(folder / "hard-lines", lines)
    params = ReadTextParams(threads=_THREADS)
    document = read_text(
        samples, *samples.time_base, params, end_pts=samples.end_pts, reader=open_reader(params)
    )
    return [_lines_row("made lines: short, back to back, fading, rolling", document, lines)]


def _speed_row(ratio: float, figures: dict[str, float | int]) -> BenchRow:
    return BenchRow(
        name="on-screen text PP-OCRv6, its package on every sample against the engine",
        figures={"ratio": round(ratio, 2), **figures},
        must=f"ratio >= {TEXT_RATIO:g}",
        holds=ratio >= TEXT_RATIO,
    )


def _lines_row(name: str, document: TextDocument, lines: Sequence[_Written]) -> BenchRow:
    pairs = [(line, _nearest(line, document.texts)) for line in lines]
    timed = [
        found is not None
        and abs(found.span.start_s - line.start_s) <= SPAN_TOLERANCE_S
        and abs(found.span.end_s - line.end_s) <= SPAN_TOLERANCE_S
        and _errors(line.text, found.text) <= len(line.text) // 4
        for line, found in pairs
    ]
    letters = sum(len(_letters(line.text)) for line in lines)
    wrong = sum(
        len(_letters(line.text)) if found is None else _errors(line.text, found.text)
        for line, found in pairs
    )
    share = sum(timed) / len(lines)
    missed = [line.text for line, right in zip(lines, timed, strict=True) if not right]
    return BenchRow(
        name=name,
        figures={
            "lines": len(lines),
            "share_found_in_time": round(share, 4),
            "character_error_rate": round(wrong / letters, 4),
            "invented_lines": len(document.texts) - sum(found is not None for _, found in pairs),
            "missed": "; ".join(missed) or "none",
        },
        must=f"share >= {MIN_SHARE:g} with both ends within {SPAN_TOLERANCE_S:g} s",
        holds=share >= MIN_SHARE,
    )


def _nearest(line: _Written, found: Sequence[TextLine]) -> TextLine | None:
    near = [
        f
        for f in found
        if f.span.start_s < line.end_s
        and f.span.end_s > line.start_s
        and (line.rise_px_s or abs(_middle(f) - (line.top + line.size / 2)) < line.size)
    ]
    return min(near, key=lambda f: _errors(line.text, f.text), default=None)


def _middle(line: TextLine) -> float:
    return (line.box.y + line.box.h / 2) * _SIZE[1]


def _letters(text: str) -> list[str]:
    """Spaces are no letters: how wide a gap counts as one is the font's taste."""
    return list(text.replace(" ", ""))


def _errors(wanted: str, got: str) -> int:
    return word_errors(_letters(wanted), _letters(got))


def _script() -> list[_Written]:
    """Four lines to a slot of four seconds, each with its own start and end inside it."""
    rng = np.random.default_rng(31)
    lines = []
    for number, text in enumerate(_TEXTS):
        slot, place = divmod(number, 4)
        start = slot * _SLOT_S + round(float(rng.uniform(0.2, 1.0)) * _FPS) / _FPS
        end = slot * _SLOT_S + round(float(rng.uniform(2.6, 3.8)) * _FPS) / _FPS
        size = _LETTER_SIZES[(number + slot) % len(_LETTER_SIZES)]
        left, top = int(rng.integers(20, 120)), 20 + place * 100 + int(rng.integers(0, 40))
        lines.append(_Written(text, start, end, left, top, size, number % 5))
    return lines


def _hard_script() -> list[_Written]:
    """Each kind by itself, six lines of each, one kind after the other."""
    rng = np.random.default_rng(32)
    texts = iter(_TEXTS)
    lines: list[_Written] = []

    def add(text: str, start_s: float, end_s: float, top: int, **more: float) -> None:
        size, font = int(rng.choice(_LETTER_SIZES)), int(rng.integers(5))
        start, end = (round(t * _FPS) / _FPS for t in (start_s, end_s))
        lines.append(_Written(text, start, end, 40, top, size, font, **more))

    for number in range(_EACH):
        at = 0.4 + 0.8 * number + float(rng.uniform(0, 0.2))
        add(next(texts), at, at + _SHORT_S, 40 + 110 * (number % 3))
    for number in range(_EACH):
        add(next(texts), 6 + 1.5 * number, 6 + 1.5 * (number + 1), 340)
    for number in range(_EACH):
        at = 15.2 + 1.4 * (number // 2)
        add(next(texts), at, at + 1.3, 60 + 130 * (number % 2), fade_s=0.3)
    for number in range(_EACH):
        at = 19.5 + 0.7 * number
        add(next(texts), at, min(at + 3.6, _SECONDS), 370, rise_px_s=95.0)
    return lines


class _Samples:
    """Samples of the decoded video, for the text engine."""

    def __init__(self, folder: Path, path: Path) -> None:
        document = decode(path, probe(path), SampleParams(), folder)
        self.samples: Sequence[Sample] = document.samples
        self.time_base = (document.time_base_num, document.time_base_den)
        self.end_pts = int(np.load(folder / "pts.npy")[-1])
        self._archive = SampleArchive(folder / "samples.zip")

    def read(self, name: str) -> Picture:
        return self._archive.read(name)


def _sampled(folder: Path, lines: Sequence[_Written]) -> _Samples:
    folder.mkdir()
    path = folder / "lines.mp4"
    with av.open(str(path), "w") as container:
        options = {"preset": "veryfast", "crf": "20"}
        video = container.add_stream("libx264", rate=Fraction(_FPS), options=options)
        video.width, video.height = _SIZE
        video.pix_fmt = "yuv420p"
        for picture in _frames(lines):
            container.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(video.encode(None))
    work = folder / "samples"
    work.mkdir()
    return _Samples(work, path)


def _frames(lines: Sequence[_Written]) -> Iterator[Picture]:
    """A camera that moves over coarse scenery, the lines written on it."""
    rng = np.random.default_rng(11)
    coarse: npt.NDArray[np.uint8] = rng.integers(30, 150, (24, 60, 3), dtype=np.uint8)
    width, height = _SIZE
    scenery = cv2.resize(coarse, (width * 2, height), interpolation=cv2.INTER_CUBIC)
    for index in range(_SECONDS * _FPS):
        now = index / _FPS
        picture = np.ascontiguousarray(scenery[:, 2 * index : 2 * index + width])
        for line in lines:
            if line.start_s <= now < line.end_s:
                picture = _shown(picture, line, now)
        yield picture


def _shown(picture: Picture, line: _Written, now: float) -> Picture:
    top = line.top - round(line.rise_px_s * (now - line.start_s))
    written = _write(picture.copy(), replace(line, top=top))
    if not line.fade_s:
        return written
    # Never quite away: the line is there from its first frame to its last.
    near = min(now - line.start_s, line.end_s - 1 / _FPS - now) + 1 / _FPS
    part = min(1.0, near / line.fade_s)
    mixed: Picture = cv2.addWeighted(written, part, picture, 1 - part, 0)
    return mixed


def _write(picture: Picture, line: _Written) -> Picture:
    white = (255, 255, 255)
    if line.font == 0:
        image = Image.fromarray(picture)
        font = ImageFont.load_default(line.size)
        ImageDraw.Draw(image).text((line.left, line.top), line.text, white, font)
        return np.array(image)
    face = _HERSHEY[line.font - 1]
    base = (line.left, line.top + line.size)
    scale, thickness = line.size / 30, 1 if line.size < 30 else 2
    cv2.putText(picture, line.text, base, face, scale, white, thickness, cv2.LINE_AA)
    return picture


def _naive_reader() -> Callable[[Picture], int]:
    from rapidocr import RapidOCR

    threads = {"EngineConfig.onnxruntime.intra_op_num_threads": _THREADS}
    pipeline = RapidOCR(params={"Global.log_level": "error", **threads})
    return lambda picture: len(pipeline(np.ascontiguousarray(picture[..., ::-1])).txts or ())
