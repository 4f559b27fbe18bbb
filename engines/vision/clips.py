"""Clips of consecutive samples for models that look at time, and their engine.

Sources: Tong et al., "VideoMAE", 2022; Bertasius et al., "Is Space-Time Attention All You Need for
Video Understanding?" (TimeSformer), 2021; both as transformers has them, from a local directory
whose revision is the hash of all its files. Importing this loads torch and transformers.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from engines.contracts.vision import EmbedParams
from engines.errors import EngineError, UsageError
from engines.runtime.manifest import directory_revision
from engines.vision.efficientnet_engine import softmax
from engines.vision.label_engine import Picture, Seen
from engines.vision.processors import load_processor
from engines.vision.transformers_models import load_model, model_kind, open_tower

KINDS = ("videomae", "timesformer")
T = TypeVar("T")


@dataclass(frozen=True)
class Clip:
    """Which samples one clip is made of."""

    indices: tuple[int, ...]
    """As many as the model takes, never falling. A video with fewer samples than that repeats
    its last one: ``padding`` says how many places are such repeats."""
    padding: int = 0

    @property
    def middle(self) -> int:
        """The sample that stands for the clip."""
        real = len(self.indices) - self.padding
        return self.indices[(real - 1) // 2]


def windows(items: Iterable[T], length: int, hop: int) -> Iterator[tuple[Clip, list[T]]]:
    """Runs of ``length`` consecutive items, one each ``hop``; the last one ends with the stream.

    No more than ``length`` items are held.

    Args:
        items: samples in order, each used as it is: none is taken twice to fill a clip, unless
            there are fewer than ``length`` in all.
        length: of a clip, at least 1.
        hop: from the start of one clip to that of the next, 1 to ``length``.

    Raises:
        UsageError: a hop outside that range.
    """
    if not 1 <= hop <= length:
        msg = f"hop {hop}: it must be 1 to the clip's length, {length}"
        raise UsageError(msg)
    held: list[T] = []
    count = told = 0
    for item in items:
        held.append(item)
        count += 1
        if len(held) > length:
            held.pop(0)
        if count >= length and (count - length) % hop == 0:
            yield Clip(tuple(range(count - length, count))), list(held)
            told = count
    if not held or told == count:
        return
    padding = length - len(held)
    first = count - len(held)
    indices = (*range(first, count), *[count - 1] * padding)
    yield Clip(indices, padding), held + held[-1:] * padding


class _Tower(nn.Module):  # type: ignore[misc] # torch is not followed by mypy
    """float32 [n, t, 3, h, w] to (logits [n, classes], features [n, d])."""

    def __init__(self, model: nn.Module, kind: str) -> None:
        super().__init__()
        self._model = model
        self._kind = kind

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Features are what the model's own classification head is given."""
        hidden = getattr(self._model, self._kind)(pixel_values).last_hidden_state
        if self._kind == "timesformer":
            features = hidden[:, 0]
        elif self._model.fc_norm is not None:
            features = self._model.fc_norm(hidden.mean(1))
        else:
            features = hidden[:, 0]
        return self._model.classifier(features), features


class ClipEngine:
    """Names what happens in a clip and gives a vector for it.

    The classes are those of the model's head; nothing is looked for by prompt.
    """

    def __init__(self, params: EmbedParams) -> None:
        """Load from ``params.model``.

        Raises:
            ModelMissingError: the directory lacks a part.
            UsageError: another kind of model, a backend other than torch, or classes asked for.
        """
        if params.backend not in {"auto", "torch"}:
            msg = f"a model directory runs on torch, not on {params.backend!r}"
            raise UsageError(msg)
        path = Path(params.model)
        kind = model_kind(path)
        if params.classes:
            msg = f"a {kind} model has classes of its own; CLIP or SigLIP take others"
            raise UsageError(msg)
        revision = directory_revision(path)
        model = load_model(path, KINDS, classifier=True)
        config = model.config
        self.clip_length = int(config.num_frames)
        size = int(config.image_size)
        self._processor = load_processor(path)
        self._runner, self.name = open_tower(
            params,
            revision,
            lambda: _Tower(model, kind),
            pixels=(self.clip_length, 3, size, size),
            outputs=("logits", "features"),
        )
        self.classes = tuple(str(config.id2label[i]) for i in range(config.num_labels))
        self.dimension = int(config.hidden_size)
        self.vocabulary = path.name

    def see(self, clips: Sequence[Sequence[Picture]]) -> Seen:
        """Classes and features of a batch of clips.

        Args:
            clips: each of ``clip_length`` pictures uint8 [h, w, 3] RGB in order of time.

        Raises:
            EngineError: a clip of another length: refused before launch.
            OutOfMemoryError, NotFiniteError: as ``LabelEngine.see``.
        """
        for clip in clips:
            if len(clip) != self.clip_length:
                msg = f"a clip of {len(clip)} pictures; the model takes {self.clip_length}"
                raise EngineError(msg)
        pixels = self._processor([list(clip) for clip in clips], return_tensors="np")
        rows = np.asarray(pixels["pixel_values"], np.float32)
        outputs = self._runner.run({"pixel_values": rows})
        probabilities = softmax(outputs["logits"].astype(np.float32))
        return Seen(probabilities, outputs["features"].astype(np.float32))
