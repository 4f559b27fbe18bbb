"""What would see, told without loading it: the recipe's part of a cache key."""

import hashlib
import os
from importlib.metadata import version
from pathlib import Path

from engines.contracts.vision import DEFAULT_LABEL_MODEL, EmbedParams, ReadTextParams
from engines.runtime.manifest import EngineDescription, directory_revision, revision

DETECTOR = "ppocrv6-det-small"
RECOGNISER = "ppocrv6-rec-small"


def describe_embed(params: EmbedParams) -> EngineDescription:
    """The label model, by the hash of its weights.

    Raises:
        ModelMissingError: ``params.model`` or ``params.calibration`` is a directory that is not
            there.
    """
    if params.model == DEFAULT_LABEL_MODEL:
        engine = f"reelgraph.embed {params.backend} {params.precision}"
        model, found = DEFAULT_LABEL_MODEL, revision(DEFAULT_LABEL_MODEL)
        if params.calibration is not None:
            pictures = directory_revision(Path(params.calibration))
            found = hashlib.sha256(f"{found} {pictures}".encode()).hexdigest()
    else:
        engine = f"transformers {version('transformers')} {params.precision}"
        model, found = Path(params.model).name, directory_revision(Path(params.model))
    return EngineDescription(
        engine=engine,
        model=model,
        model_revision=found,
        device=params.device,
        threads=params.threads or os.cpu_count() or 1,
    )


def describe_read_text(params: ReadTextParams) -> EngineDescription:
    """Detector and recogniser together, by the hash of both models' weights."""
    joined = f"{revision(DETECTOR)} {revision(RECOGNISER)}"
    return EngineDescription(
        engine=f"reelgraph.read_text {params.backend} f32, rapidocr {version('rapidocr')}",
        model=f"{DETECTOR}+{RECOGNISER}",
        model_revision=hashlib.sha256(joined.encode()).hexdigest(),
        device=params.device,
        threads=params.threads or os.cpu_count() or 1,
    )
