"""What a person may change about a run; the Prefect UI makes its form from these types."""

from pydantic import Field

from engines.contracts.base import Contract
from engines.contracts.causal import MinerParams, TimelineParams
from engines.contracts.media import SampleParams, ShotParams
from engines.contracts.reasoning import ReasonParams
from engines.contracts.speech import ListenParams
from engines.contracts.vision import EmbedParams, ReadTextParams
from engines.media.limits import MediaLimits


class PipelineParams(Contract):
    """Parameters of every stage; each has a default, and each changes only what it reaches."""

    limits: MediaLimits = Field(default_factory=MediaLimits)
    sample: SampleParams = Field(default_factory=SampleParams)
    shots: ShotParams = Field(default_factory=ShotParams)
    embed: EmbedParams = Field(default_factory=EmbedParams)
    listen: ListenParams = Field(default_factory=ListenParams)
    read_text: ReadTextParams = Field(default_factory=ReadTextParams)
    timeline: TimelineParams = Field(default_factory=TimelineParams)
    causes: MinerParams = Field(default_factory=MinerParams)
    reason: ReasonParams = Field(default_factory=ReasonParams)
