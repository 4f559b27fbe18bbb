"""CLIP and SigLIP from a directory of the user's own: classes by their names, and text vectors.

Importing this loads torch and transformers. The directory is what ``save_pretrained`` writes:
config, weights, tokenizer, image processor; nothing is fetched. Its revision is the hash of all
those files, so that a changed tokenizer is another model.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from transformers import AutoConfig, AutoImageProcessor, AutoModel, AutoTokenizer

from engines.contracts.vision import EmbedParams
from engines.errors import EngineError, ModelMissingError, UsageError
from engines.runtime.batching import BatchRunner
from engines.runtime.manifest import directory_revision
from engines.runtime.session import NetworkSource, SessionOptions, TensorSpec
from engines.runtime.torch_session import TorchSession
from engines.vision.label_engine import Picture, Seen

_KINDS = ("clip", "siglip", "siglip2")
_TINY = 1e-12


class _ImageTower(nn.Module):  # type: ignore[misc] # torch is not followed by mypy
    """float32 [n, 3, h, w] to the vectors that text is compared with, float32 [n, d]."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._model = model

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Not normalised."""
        return self._model.get_image_features(pixel_values=pixel_values).pooler_output


class ZeroShotEngine:
    """See ``LabelEngine``; classes are ``params.classes``, asked for as ``params.prompt``."""

    vocabulary = "zero-shot"

    def __init__(self, params: EmbedParams) -> None:
        """Load from ``params.model``.

        Raises:
            ModelMissingError: the directory lacks a part.
            UsageError: another kind of model, or a backend other than torch asked for.
        """
        if params.backend not in {"auto", "torch"}:
            msg = f"a model directory runs on torch, not on {params.backend!r}"
            raise UsageError(msg)
        path = Path(params.model)
        revision = directory_revision(path)
        self._model = _load(path)
        self._tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        self._processor = AutoImageProcessor.from_pretrained(
            path, local_files_only=True, backend="pil"
        )
        size = int(self._model.config.vision_config.image_size)
        source = NetworkSource(
            name=path.name,
            onnx_path=None,
            weights_sha256=revision,
            inputs=(TensorSpec(name="pixel_values", dtype="float32", shape=(None, 3, size, size)),),
            outputs=("features",),
            make_torch=lambda: _ImageTower(self._model),
        )
        options = SessionOptions(
            precision=params.precision, threads=params.threads, device=params.device
        )
        self._session = TorchSession(source, options)
        self._runner = BatchRunner(self._session, params.batch_size)
        self._is_siglip = self._model.config.model_type != "clip"
        self._scale = float(self._model.logit_scale.exp())
        self._bias = float(self._model.logit_bias) if self._is_siglip else 0.0
        self.classes = params.classes
        self._class_vectors = self._embed_classes(params)
        self.dimension = self._class_vectors.shape[1]
        info = self._session.describe()
        self.name = f"{path.name}@{revision[:12]} {info.provider} {info.precision}"

    def see(self, pictures: Sequence[Picture]) -> Seen:
        """See ``LabelEngine.see``.

        CLIP's probabilities compare the classes with each other and sum to 1; SigLIP's stand
        each for itself.
        """
        pixels = self._processor(list(pictures), return_tensors="np")["pixel_values"]
        rows = np.asarray(pixels, np.float32)
        features = self._runner.run({"pixel_values": rows})["features"].astype(np.float32)
        logits = self.logits(features)
        if self._is_siglip:
            return Seen(np.reciprocal(1 + np.exp(-logits), dtype=np.float32), features)
        exponent = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
        return Seen(exponent / np.maximum(exponent.sum(axis=1, keepdims=True), _TINY), features)

    def logits(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Similarity of pictures and classes as the model scales it: float32 [n, num_classes]."""
        units = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), _TINY)
        scaled: npt.NDArray[np.float32] = units @ self._class_vectors.T * self._scale + self._bias
        return scaled.astype(np.float32)

    def embed_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Vectors in the space of the pictures': float32 [n, dimension], unit length."""
        # SigLIP was trained on text padded to its full length and reads shorter text worse.
        padding = "max_length" if self._is_siglip else True
        tokens = self._tokenizer(list(texts), padding=padding, truncation=True, return_tensors="pt")
        wanted = {k: v for k, v in tokens.items() if k in {"input_ids", "attention_mask"}}
        if self._is_siglip:
            wanted.pop("attention_mask", None)
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            found = self._model.get_text_features(**{k: v.to(device) for k, v in wanted.items()})
        vectors: npt.NDArray[np.float32] = found.pooler_output.float().cpu().numpy()
        norms = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
        units: npt.NDArray[np.float32] = vectors / np.maximum(norms, _TINY)
        return units

    def _embed_classes(self, params: EmbedParams) -> npt.NDArray[np.float32]:
        if "{}" not in params.prompt:
            msg = f"the prompt {params.prompt!r} has no place {{}} for the class"
            raise UsageError(msg)
        if params.classes:
            return self.embed_texts([params.prompt.replace("{}", c) for c in params.classes])
        return self.embed_texts([""])[:0]


def _load(path: Path) -> nn.Module:
    try:
        kind = AutoConfig.from_pretrained(path, local_files_only=True).model_type
    except (OSError, ValueError) as error:
        msg = f"no model can be read from {path}: {error}"
        raise ModelMissingError(msg) from error
    if kind not in _KINDS:
        msg = f"{path} holds a {kind} model; image labels take {', '.join(_KINDS)}"
        raise UsageError(msg)
    try:
        # float32 whatever is stored: precision is chosen by the session, not by the file.
        model = AutoModel.from_pretrained(path, local_files_only=True, dtype=torch.float32)
    except OSError as error:
        msg = f"the model in {path} is incomplete: {error}"
        raise ModelMissingError(msg) from error
    except RuntimeError as error:
        msg = f"the weights in {path} do not fit its config: {error}"
        raise EngineError(msg) from error
    return model.eval().requires_grad_(False)
