"""What would recognise actions, told without loading it: the recipe's part of a cache key."""

import hashlib
import os
from importlib.resources import files

from engines.contracts.actions import ActionsParams
from engines.runtime.manifest import EngineDescription, revision


def describe_actions(params: ActionsParams) -> EngineDescription:
    """The network by the hash of its weights, with the taxonomy it speaks.

    Raises:
        UsageError: no such model.
    """
    taxonomy = files("engines.actions").joinpath("taxonomy.json").read_bytes()
    joined = f"{revision(params.model)} {hashlib.sha256(taxonomy).hexdigest()}"
    return EngineDescription(
        engine="reelgraph.actions torch f32",
        model=params.model,
        model_revision=hashlib.sha256(joined.encode()).hexdigest(),
        device="cpu",
        threads=params.threads or os.cpu_count() or 1,
    )
