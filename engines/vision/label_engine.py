"""What a label engine is, and how one is chosen by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from engines.contracts.vision import DEFAULT_LABEL_MODEL, EmbedParams
from engines.errors import UsageError

if TYPE_CHECKING:
    from engines.vision.clips import ClipEngine

Picture = npt.NDArray[np.uint8]
"""uint8 [h, w, 3] RGB at display aspect."""


@dataclass(frozen=True)
class Seen:
    """What a model says of a batch of pictures."""

    probabilities: npt.NDArray[np.float32]
    """float32 [n, num_classes]"""
    features: npt.NDArray[np.float32]
    """float32 [n, dimension], not normalised"""
    cells: npt.NDArray[np.float32] | None = None
    """float32 [n, rows, columns, dimension]: the same for each region of the picture, where the
    model relates text to regions"""


class LabelEngine(Protocol):
    """Names what a picture shows and gives a vector for it."""

    @property
    def name(self) -> str:
        """Model, revision, library and precision: goes into every fact."""
        ...

    @property
    def vocabulary(self) -> str:
        """Name of the set of classes."""
        ...

    @property
    def classes(self) -> tuple[str, ...]:
        """Names, in the order of the probabilities' columns."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a feature vector."""
        ...

    def see(self, pictures: Sequence[Picture]) -> Seen:
        """Classes and features of a batch.

        Args:
            pictures: uint8 [h, w, 3] RGB each, of any sizes, at least one.

        Raises:
            EngineError: a picture is not of that form, or the network failed.
            OutOfMemoryError: one picture alone does not fit.
            NotFiniteError: NaN or infinity came out.
        """
        ...


def open_label_engine(params: EmbedParams, cache_dir: Path) -> "LabelEngine | ClipEngine":
    """Load the model that ``params`` names: one for pictures, or one for clips.

    Raises:
        UsageError: no such model; the message names what exists.
        ModelMissingError, ModelHashError: its weights are not there or not the right ones.
    """
    if params.model == DEFAULT_LABEL_MODEL:
        if params.classes:
            msg = f"{DEFAULT_LABEL_MODEL} has its own classes; a zero-shot model takes others"
            raise UsageError(msg)
        from engines.vision.efficientnet_engine import EfficientNetEngine

        return EfficientNetEngine(params, cache_dir)
    if Path(params.model).is_dir():
        return _open_directory(params)
    msg = f"no image model {params.model!r}; there are: {DEFAULT_LABEL_MODEL}, or a model directory"
    raise UsageError(msg)


def _open_directory(params: EmbedParams) -> "LabelEngine | ClipEngine":
    from engines.vision import clips, vit_engine, zero_shot
    from engines.vision.transformers_models import model_kind

    kind = model_kind(Path(params.model))
    if kind in zero_shot.KINDS:
        return zero_shot.ZeroShotEngine(params)
    if kind in vit_engine.KINDS:
        return vit_engine.VitEngine(params)
    if kind in clips.KINDS:
        return clips.ClipEngine(params)
    known = ", ".join((*zero_shot.KINDS, *vit_engine.KINDS, *clips.KINDS))
    msg = f"{params.model} holds a {kind} model; known are: {known}"
    raise UsageError(msg)
