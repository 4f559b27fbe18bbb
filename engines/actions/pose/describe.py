"""What the stage ``pose`` would run, told without loading it."""

import hashlib
import os
from importlib.metadata import version
from typing import Final, Literal

from engines.contracts.actions import PoseParams
from engines.runtime.manifest import EngineDescription, revision

NetworkName = Literal["blazepose-detector", "blazepose-landmarks-full"]
DETECTOR: Final = "blazepose-detector"
LANDMARKS: Final = "blazepose-landmarks-full"


def describe_pose(params: PoseParams) -> EngineDescription:
    """Engine, model and revision for the cache key of the stage ``pose``."""
    both = f"{revision(DETECTOR)} {revision(LANDMARKS)}"
    return EngineDescription(
        engine=f"reelgraph.pose openvino {version('openvino')} f32",
        model=f"{DETECTOR}+{LANDMARKS}",
        model_revision=hashlib.sha256(both.encode()).hexdigest(),
        device=params.device,
        threads=params.threads or os.cpu_count() or 1,
    )
