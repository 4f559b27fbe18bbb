"""CLIP and SigLIP from a directory of the user's own: classes by their names, and text vectors.

Importing this loads torch and transformers. The directory is what ``save_pretrained`` writes:
config, weights, tokenizer, image processor; nothing is fetched. Its revision is the hash of all
those files, so that a changed tokenizer is another model.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from transformers import AutoTokenizer

from engines.contracts.vision import EmbedParams
from engines.errors import UsageError
from engines.runtime.manifest import directory_revision
from engines.vision.alignment import Aligned, locate, token_attention
from engines.vision.label_engine import Picture, Seen
from engines.vision.processors import load_processor
from engines.vision.transformers_models import load_model, open_tower

KINDS = ("clip", "siglip")
_TINY = 1e-12


class _ImageTower(nn.Module):  # type: ignore[misc] # torch is not followed by mypy
    """float32 [n, 3, h, w] to vectors that text is compared with: [n, d], [n, cells, d]."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._model = model

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Of the whole picture and of its regions; not normalised."""
        found = self._model.get_image_features(pixel_values=pixel_values)
        cells = found.last_hidden_state
        if self._model.config.model_type == "clip":
            tower = self._model.vision_model
            cells = self._model.visual_projection(tower.post_layernorm(cells[:, 1:]))
        return found.pooler_output, cells


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
        self._model = load_model(path, KINDS)
        self._tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        self._processor = load_processor(path)
        size = int(self._model.config.vision_config.image_size)
        self._runner, self.name = open_tower(
            params,
            revision,
            lambda: _ImageTower(self._model),
            pixels=(3, size, size),
            outputs=("features", "cells"),
        )
        self._is_siglip = self._model.config.model_type != "clip"
        self._scale = float(self._model.logit_scale.exp())
        self._bias = float(self._model.logit_bias) if self._is_siglip else 0.0
        self.classes = params.classes
        self._class_vectors = self._embed_classes(params)
        self.dimension = self._class_vectors.shape[1]

    def see(self, pictures: Sequence[Picture]) -> Seen:
        """See ``LabelEngine.see``.

        CLIP's probabilities compare the classes with each other and sum to 1; SigLIP's stand
        each for itself.
        """
        pixels = self._processor(list(pictures), return_tensors="np")["pixel_values"]
        rows = np.asarray(pixels, np.float32)
        outputs = self._runner.run({"pixel_values": rows})
        features = outputs["features"].astype(np.float32)
        cells = outputs["cells"].astype(np.float32)
        side = math.isqrt(cells.shape[1])
        cells = cells.reshape(len(cells), side, side, -1)
        logits = self.logits(features)
        if self._is_siglip:
            return Seen(np.reciprocal(1 + np.exp(-logits), dtype=np.float32), features, cells)
        exponent = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
        total = np.maximum(exponent.sum(axis=1, keepdims=True), _TINY)
        return Seen(exponent / total, features, cells)

    def align(self, kind: int, cells: npt.NDArray[np.float32]) -> Aligned:
        """Where a class is in a picture, by the attention of its name's tokens.

        Args:
            kind: index into ``classes``.
            cells: float32 [rows, columns, dimension], one picture of ``Seen.cells``.
        """
        return locate(token_attention(self._tokens(self.classes[kind]), cells, self._scale))

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

    @lru_cache(maxsize=1024)  # noqa: B019 - one engine lives as long as its process
    def _tokens(self, text: str) -> npt.NDArray[np.float32]:
        """Vectors of the tokens of a text, its marks of beginning and end left out."""
        tokens = self._tokenizer([text], truncation=True, return_tensors="pt")
        ids = tokens["input_ids"]
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            hidden = self._model.text_model(ids.to(device)).last_hidden_state[0]
            if self._is_siglip:
                vectors = self._model.text_model.head(hidden)
            else:
                vectors = self._model.text_projection(hidden)
        special = set(self._tokenizer.all_special_ids) - {self._tokenizer.unk_token_id}
        content = [i for i, token in enumerate(ids[0].tolist()) if token not in special]
        chosen = vectors[content or [0]].float().cpu().numpy()
        return np.asarray(chosen, np.float32)

    def _embed_classes(self, params: EmbedParams) -> npt.NDArray[np.float32]:
        if "{}" not in params.prompt:
            msg = f"the prompt {params.prompt!r} has no place {{}} for the class"
            raise UsageError(msg)
        if params.classes:
            return self.embed_texts([params.prompt.replace("{}", c) for c in params.classes])
        return self.embed_texts([""])[:0]
