"""On-screen text of pictures made here, read by the real model."""

from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest

from engines.contracts.media import Sample
from engines.contracts.vision import ReadTextParams, TextDocument
from engines.vision.describe import describe_read_text
from engines.vision.label_engine import Picture
from engines.vision.ocr_engine import PaddleTextReader, Quad, Reading
from engines.vision.read_text import read_text

FPS = 4
TICKS = 1000
STEP = TICKS // FPS


@pytest.fixture(scope="module")
def real() -> PaddleTextReader:
    return PaddleTextReader(backend="openvino", threads=2, device="cpu", min_side=640, max_side=960)


class Counting:
    """Passes on to a reader and counts how often whole pictures are read."""

    def __init__(self, reader: PaddleTextReader) -> None:
        self._reader = reader
        self.pictures = 0
        self.places = 0

    def read(self, picture: Picture) -> list[Reading]:
        self.pictures += 1
        return self._reader.read(picture)

    def read_at(self, picture: Picture, quads: Sequence[Quad]) -> list[Reading]:
        self.places += len(quads)
        return self._reader.read_at(picture, quads)


class Made:
    """Samples drawn by a function of their index."""

    def __init__(self, count: int, draw: Callable[[int], Picture]) -> None:
        self._draw = draw
        self.samples = tuple(
            Sample(
                name=str(i),
                frame=i * 6,
                pts=i * STEP,
                end_pts=i * STEP + 40,
                motion=0,
                sharpness=0,
            )
            for i in range(count)
        )

    def read(self, name: str) -> Picture:
        return self._draw(int(name))


def scene(index: int, *, moving: bool = True) -> Picture:
    """A gradient with a disc that wanders: nothing to read."""
    height, width = 240, 426
    x = np.linspace(40, 180, width, dtype=np.uint8)
    made = np.repeat(np.repeat(x[None, :, None], height, 0), 3, 2).copy()
    centre = (60 + 9 * index if moving else 60, 200)
    cv2.circle(made, centre, 18, (200, 90, 40), -1)
    return made


def write(picture: Picture, text: str, x: int, y: int, scale: float = 0.7) -> Picture:
    cv2.putText(picture, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, (255, 255, 255), 2)
    return picture


def run(made: Made, reader: Counting) -> TextDocument:
    end = len(made.samples) * STEP
    return read_text(made, 1, TICKS, ReadTextParams(), end_pts=end, reader=reader)


def test_lines_get_their_spans_and_places(real: PaddleTextReader) -> None:
    def draw(i: int) -> Picture:
        picture = scene(i)
        if 6 <= i < 13:
            write(picture, "INVOICE 2041-77", 30, 60)
        if i >= 9:
            write(picture, "closes at 18:45", 200, 150, 0.6)
        return picture

    document = run(Made(20, draw), Counting(real))
    first, second = document.texts
    assert first.text.replace(" ", "") == "INVOICE2041-77"
    assert second.text.replace(" ", "") == "closesat18:45"
    # Truth: a line is drawn from sample 6 to before sample 13; half a step on either side.
    assert first.span.start_s == pytest.approx(6 / FPS, abs=0.126)
    assert first.span.end_s == pytest.approx(13 / FPS, abs=0.126)
    assert second.span.start_s == pytest.approx(9 / FPS, abs=0.126)
    assert second.span.end_s == 20 / FPS
    assert first.box.x == pytest.approx(30 / 426, abs=0.03)
    assert first.box.y + first.box.h == pytest.approx(62 / 240, abs=0.05)
    assert 0.9 < first.confidence <= 1


def test_a_line_of_two_samples_right_after_a_look_is_found(real: PaddleTextReader) -> None:
    first = 5

    def draw(i: int) -> Picture:
        picture = scene(i)
        return write(picture, "mind the gap", 120, 100) if first <= i < first + 2 else picture

    (line,) = run(Made(12, draw), Counting(real)).texts
    assert line.text.replace(" ", "") == "mindthegap"
    assert line.span.start_s == pytest.approx(first / FPS, abs=0.126)
    assert line.span.end_s == pytest.approx((first + 2) / FPS, abs=0.126)


def test_a_still_picture_is_read_once(real: PaddleTextReader) -> None:
    reader = Counting(real)
    still = write(scene(0), "Platform 9", 40, 80)
    document = run(Made(60, lambda _: still.copy()), reader)
    assert reader.pictures == 1
    assert reader.places == 0
    (line,) = document.texts
    assert (line.span.start_pts, line.span.end_pts) == (0, 60 * STEP)


def test_small_text_on_a_still_picture_is_noticed(real: PaddleTextReader) -> None:
    def draw(i: int) -> Picture:
        picture = scene(0)
        return write(picture, "fragile", 300, 230, 0.45) if 10 <= i < 20 else picture

    (line,) = run(Made(30, draw), Counting(real)).texts
    assert line.text.lower() == "fragile"
    assert line.span.start_s == pytest.approx(10 / FPS, abs=0.126)
    assert line.span.end_s == pytest.approx(20 / FPS, abs=0.126)


def test_a_counter_is_not_one_line_and_is_marked(real: PaddleTextReader) -> None:
    def draw(i: int) -> Picture:
        return write(scene(0), f"00:00:{i:02d}", 100, 120, 1.0)

    document = run(Made(17, draw), Counting(real))
    assert len(document.texts) >= 4
    assert all("counter" in line.flags for line in document.texts)
    for line in document.texts:
        # Each state is reported where it stood, for about one step.
        state = int(line.text.replace(" ", "")[-2:])
        assert line.span.start_s - 0.13 <= state / FPS <= line.span.end_s
        assert line.span.duration_s < 2 / FPS


def test_nothing_is_read_where_nothing_is_written(real: PaddleTextReader) -> None:
    assert run(Made(8, scene), Counting(real)).texts == ()
    black = np.zeros((240, 320, 3), np.uint8)
    reader = Counting(real)
    assert run(Made(40, lambda _: black), reader).texts == ()
    assert reader.pictures == 1


def test_no_samples_and_one_sample(real: PaddleTextReader) -> None:
    empty = run(Made(0, scene), Counting(real))
    assert empty.coverage.reason
    one = run(Made(1, lambda i: write(scene(i), "Only one", 40, 80)), Counting(real))
    assert [line.text.replace(" ", "") for line in one.texts] == ["Onlyone"]


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (400, 3), (2160, 3840)])
def test_odd_sizes(real: PaddleTextReader, size: tuple[int, int]) -> None:
    picture = np.full((*size, 3), 90, np.uint8)
    assert run(Made(2, lambda _: picture), Counting(real)).texts == ()


def test_description_tells_the_revision_without_loading() -> None:
    base = describe_read_text(ReadTextParams(threads=1))
    assert base == describe_read_text(ReadTextParams(threads=1))
    assert base != describe_read_text(ReadTextParams(threads=1, backend="onnxruntime"))
    assert len(base.model_revision) == 64


@pytest.mark.corpus
@pytest.mark.slow
def test_made_lines_of_the_corpus(corpus_dir: Path, real: PaddleTextReader) -> None:
    import av

    pictures: dict[str, Picture] = {}
    samples = []
    with av.open(str(corpus_dir / "real" / "ocr_made_lines.mp4")) as container:
        stream = container.streams.video[0]
        base = stream.time_base
        for index, frame in enumerate(container.decode(stream)):
            if index % 6 == 0:
                name = str(index)
                pictures[name] = frame.to_ndarray(format="rgb24")
                step = round(1 / 25 / base)
                samples.append(
                    Sample(
                        name=name,
                        frame=index,
                        pts=frame.pts,
                        end_pts=frame.pts + step,
                        motion=0,
                        sharpness=0,
                    )
                )

    class Source:
        def __init__(self) -> None:
            self.samples = samples

        def read(self, name: str) -> Picture:
            return pictures[name]

    document = read_text(
        Source(), base.numerator, base.denominator, ReadTextParams(), reader=Counting(real)
    )
    truth = {
        "INVOICE 2041-77": (1.0, 3.0),
        "Platform 9 closes at 18h45": (4.0, 7.0),
        "fragile - do not drop": (7.0, 10.0),
    }
    found = {line.text: (line.span.start_s, line.span.end_s) for line in document.texts}
    assert found.keys() == truth.keys()
    for text, (start, end) in truth.items():
        assert found[text] == pytest.approx((start, end), abs=0.3)
