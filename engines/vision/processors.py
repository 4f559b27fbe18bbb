"""Image processors of a model directory, on PIL and numpy: no torchvision is needed.

``AutoImageProcessor`` asks for torchvision before it looks at the directory, so the class is
looked up here by the name that the directory's own configuration gives. Importing this loads
transformers.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from transformers import (
    CLIPImageProcessorPil,
    SiglipImageProcessorPil,
    VideoMAEImageProcessorPil,
    ViTImageProcessorPil,
)

from engines.errors import EngineError, ModelMissingError, UsageError

_CLASSES = {
    "CLIP": CLIPImageProcessorPil,
    "Siglip": SiglipImageProcessorPil,
    "VideoMAE": VideoMAEImageProcessorPil,
    "ViT": ViTImageProcessorPil,
}
_SUFFIXES = ("Fast", "Pil", "ImageProcessor", "FeatureExtractor")
_CONFIG = "preprocessor_config.json"


ImageProcessor = Callable[..., Mapping[str, npt.NDArray[np.float32]]]
"""Makes pictures (a list, for clips a list of lists, uint8 [h, w, 3] RGB each) into what a model
was trained on: called with ``return_tensors="np"``, ``pixel_values`` float32 [n, 3, h, w], for
clips [n, t, 3, h, w]."""


def load_processor(path: Path) -> ImageProcessor:
    """The processor that a directory's ``preprocessor_config.json`` describes.

    Raises:
        ModelMissingError: no such file.
        EngineError: it is no JSON object.
        UsageError: a kind that is not known here; the message names those that are.
    """
    try:
        config = json.loads((path / _CONFIG).read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{path} has no {_CONFIG}: how its pictures are made is not known"
        raise ModelMissingError(msg) from error
    except ValueError as error:
        msg = f"{path / _CONFIG} is not JSON: {error}"
        raise EngineError(msg) from error
    if not isinstance(config, dict):
        msg = f"{path / _CONFIG} holds {type(config).__name__}, not an object"
        raise EngineError(msg)
    named = str(config.get("image_processor_type") or config.get("feature_extractor_type") or "")
    kind = named
    for suffix in _SUFFIXES:
        kind = kind.removesuffix(suffix)
    if kind not in _CLASSES:
        msg = f"{path} names the image processor {named!r}; known are: {', '.join(_CLASSES)}"
        raise UsageError(msg)
    processor: ImageProcessor = _CLASSES[kind].from_pretrained(path, local_files_only=True)
    return processor
