"""A Vision Transformer with a classification head, from a directory of the user's own.

Source: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020. The revision is the hash of all
files. Importing this loads torch and transformers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from engines.contracts.vision import EmbedParams
from engines.errors import UsageError
from engines.runtime.manifest import directory_revision
from engines.vision.efficientnet_engine import softmax
from engines.vision.label_engine import Picture, Seen
from engines.vision.processors import load_processor
from engines.vision.transformers_models import load_model, open_tower

KINDS = ("vit",)


class _Tower(nn.Module):  # type: ignore[misc] # torch is not followed by mypy
    """float32 [n, 3, h, w] to (logits [n, classes], features [n, d])."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._model = model

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self._model.vit(pixel_values).last_hidden_state[:, 0]
        return self._model.classifier(features), features


class VitEngine:
    """See ``LabelEngine``."""

    def __init__(self, params: EmbedParams) -> None:
        """Load from ``params.model``.

        Raises:
            ModelMissingError: the directory lacks a part.
            UsageError: another kind of model, a backend other than torch, or classes asked for.
        """
        if params.backend not in {"auto", "torch"} or params.classes:
            msg = (
                "a ViT directory runs on torch and has classes of its own, not "
                f"{params.backend!r} and {list(params.classes)}"
            )
            raise UsageError(msg)
        path = Path(params.model)
        revision = directory_revision(path)
        model = load_model(path, KINDS, classifier=True)
        size = int(model.config.image_size)
        self._processor = load_processor(path)
        self._runner, self.name = open_tower(
            params,
            revision,
            lambda: _Tower(model),
            pixels=(3, size, size),
            outputs=("logits", "features"),
        )
        self.classes = tuple(str(model.config.id2label[i]) for i in range(model.config.num_labels))
        self.dimension = int(model.config.hidden_size)
        self.vocabulary = path.name

    def see(self, pictures: Sequence[Picture]) -> Seen:
        """See ``LabelEngine.see``."""
        pixels = self._processor(list(pictures), return_tensors="np")["pixel_values"]
        outputs = self._runner.run({"pixel_values": np.asarray(pixels, np.float32)})
        probabilities = softmax(outputs["logits"].astype(np.float32))
        return Seen(probabilities, outputs["features"].astype(np.float32))
