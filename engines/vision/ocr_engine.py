"""Finds and reads lines of text in one picture: PP-OCRv6 (PaddleOCR), weights from rapidocr.

The two networks run through this project's sessions, so that precision and backend are stated;
turning the text map into boxes is rapidocr's own code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt
import onnx

from engines.errors import EngineError
from engines.runtime.backends import open_session
from engines.runtime.batching import BatchRunner, batches_by_length
from engines.runtime.manifest import revision, verified_path
from engines.runtime.session import NetworkSource, Session, SessionOptions, TensorSpec
from engines.vision.describe import DETECTOR, RECOGNISER
from engines.vision.label_engine import Picture

Quad = npt.NDArray[np.float32]
"""float32 [4, 2]: corners x, y in pixels, clockwise from the top left."""

_OUTPUT = "fetch_name_0"
_LINE_HEIGHT = 48
_MIN_LINE_WIDTH = 32
_MAX_LINE_WIDTH = 2048
_WIDTH_MULTIPLE = 64
_MAX_LINES = 8
_SIZE_MULTIPLE = 32
_HALF_RANGE = 127.5
_TALL = 1.5
_TEXT_THRESHOLD = 0.3
_BOX_THRESHOLD = 0.5
_UNCLIP = 1.6
_MAX_BOXES = 1000


@dataclass(frozen=True, eq=False)
class Reading:
    """One line as read in one picture."""

    text: str
    score: float
    """Mean probability of its characters, 0-1."""
    quad: Quad


class TextReader(Protocol):
    """Finds and reads text."""

    def read(self, picture: Picture) -> list[Reading]:
        """Every line of a picture, top to bottom; uint8 [h, w, 3] RGB."""
        ...

    def read_at(self, picture: Picture, quads: Sequence[Quad]) -> list[Reading]:
        """What stands at known places; an empty text where nothing does."""
        ...


class PaddleTextReader:
    """See ``TextReader``."""

    def __init__(
        self, *, backend: str, threads: int | None, device: str, min_side: int, max_side: int
    ) -> None:
        """Load both networks.

        Args:
            backend: see ``open_session``.
            threads: None lets the backend decide.
            device: ``cpu`` or what the backend calls its device.
            min_side: pictures whose longer side is below this are enlarged to it.
            max_side: pictures whose longer side is above this are shrunk to it.

        Raises:
            ModelMissingError, ModelHashError: weights not there, or not the pinned bytes.
        """
        from rapidocr.ch_ppocr_det.utils import DBPostProcess

        options = SessionOptions(threads=threads, device=device)
        self._detector = _open(backend, DETECTOR, (None, 3, None, None), options)
        recogniser = _open(backend, RECOGNISER, (None, 3, _LINE_HEIGHT, None), options)
        self._recogniser = BatchRunner(recogniser, _MAX_LINES)
        self._used = self._padded = 0
        self._characters = _characters(verified_path(RECOGNISER))
        self._boxes = DBPostProcess(
            thresh=_TEXT_THRESHOLD,
            box_thresh=_BOX_THRESHOLD,
            max_candidates=_MAX_BOXES,
            unclip_ratio=_UNCLIP,
            use_dilation=True,
        )
        self._min_side = min_side
        self._max_side = max_side
        info = self._detector.describe()
        self.name = (
            f"PP-OCRv6 small@{revision(DETECTOR)[:6]}+{revision(RECOGNISER)[:6]} {info.provider} "
            f"{info.precision}"
        )

    def read(self, picture: Picture) -> list[Reading]:
        """See ``TextReader.read``."""
        height, width = picture.shape[:2]
        scale = self._scale(max(height, width))
        size = (_fit(width * scale), _fit(height * scale))
        how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        pixels = _normalise(cv2.resize(picture, size, interpolation=how))
        text_map = self._detector.run({"x": pixels[None]})[_OUTPUT]
        quads, _ = self._boxes(text_map, (height, width))
        ordered = sorted(
            (np.asarray(quad, np.float32) for quad in quads), key=lambda q: (q[0, 1], q[0, 0])
        )
        return [r for r in self.read_at(picture, ordered) if r.text]

    def read_at(self, picture: Picture, quads: Sequence[Quad]) -> list[Reading]:
        """See ``TextReader.read_at``."""
        strips = [_strip(picture, quad) for quad in quads]
        found: dict[int, Reading] = {}
        batches = batches_by_length(
            [strip.shape[1] for strip in strips],
            max_items=_MAX_LINES,
            multiple=_WIDTH_MULTIPLE,
        )
        for batch in batches:
            rows = np.zeros((len(batch.indices), 3, _LINE_HEIGHT, batch.length), np.float32)
            for row, index in zip(rows, batch.indices, strict=True):
                row[:, :, : strips[index].shape[1]] = _normalise(strips[index])
            self._padded += batch.length * len(batch.indices)
            self._used += sum(strips[index].shape[1] for index in batch.indices)
            probabilities = self._recogniser.run({"x": rows})[_OUTPUT].astype(np.float32)
            for index, line in zip(batch.indices, probabilities, strict=True):
                text, score = self._decode(line)
                found[index] = Reading(text, score, quads[index])
        return [found[index] for index in range(len(quads))]

    @property
    def padding_waste(self) -> float:
        """Share of all that the recogniser was given so far which was padding."""
        return 1 - self._used / self._padded if self._padded else 0.0

    def _decode(self, line: npt.NDArray[np.float32]) -> tuple[str, float]:
        """Best path of a CTC output: repeats collapse, class 0 is the blank."""
        best = line.argmax(axis=1)
        if line.shape[1] != len(self._characters):
            msg = f"{line.shape[1]} classes come out, {len(self._characters)} characters are known"
            raise EngineError(msg)
        keep = (best != 0) & np.concatenate([[True], best[1:] != best[:-1]])
        if not keep.any():
            return "", 0.0
        text = "".join(self._characters[i] for i in best[keep]).strip()
        return text, min(1.0, float(line.max(axis=1)[keep].mean()))

    def _scale(self, longer: int) -> float:
        if longer > self._max_side:
            return self._max_side / longer
        return max(1.0, self._min_side / longer)


def _open(
    backend: str, name: str, shape: tuple[int | None, ...], options: SessionOptions
) -> Session:
    source = NetworkSource(
        name=name,
        onnx_path=verified_path(name),
        weights_sha256=revision(name),
        inputs=(TensorSpec(name="x", dtype="float32", shape=shape),),
        outputs=(_OUTPUT,),
    )
    return open_session(backend, source, options)


@lru_cache(maxsize=2)
def _characters(path: Path) -> tuple[str, ...]:
    """The recogniser's classes: blank, those in the file's own metadata, space."""
    stored = {p.key: p.value for p in onnx.load(path, load_external_data=False).metadata_props}
    return ("", *stored["character"].split("\n"), " ")


def _normalise(picture: Picture) -> npt.NDArray[np.float32]:
    """uint8 [h, w, 3] RGB to float32 [3, h, w], -1 to 1, BGR: the order the networks know."""
    scaled = picture[:, :, ::-1].astype(np.float32) / _HALF_RANGE - 1
    return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def _strip(picture: Picture, quad: Quad) -> Picture:
    """The quadrangle made straight, 48 pixels high, at most 2048 wide; upright text is turned."""
    sides = np.linalg.norm(quad - np.roll(quad, -1, axis=0), axis=1)
    wide = max(float(sides[0]), float(sides[2]), 1.0)
    high = max(float(sides[1]), float(sides[3]), 1.0)
    turned = high / wide >= _TALL
    length, thickness = (high, wide) if turned else (wide, high)
    width = min(max(round(_LINE_HEIGHT * length / thickness), _MIN_LINE_WIDTH), _MAX_LINE_WIDTH)
    corners = np.array([[0, 0], [width, 0], [width, _LINE_HEIGHT], [0, _LINE_HEIGHT]], np.float32)
    # Text that runs downwards or upwards is read with its top turned to the left, as in training.
    source = np.roll(quad, -1, axis=0) if turned else quad
    matrix = cv2.getPerspectiveTransform(np.ascontiguousarray(source, np.float32), corners)
    strip: Picture = cv2.warpPerspective(
        picture,
        matrix,
        (width, _LINE_HEIGHT),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return strip


def _fit(length: float) -> int:
    return max(_SIZE_MULTIPLE, round(length / _SIZE_MULTIPLE) * _SIZE_MULTIPLE)
