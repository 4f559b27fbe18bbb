"""What a person may change about a run; the Prefect UI makes its form from these types."""

from pydantic import Field

from engines.contracts.actions import ActionsParams, PoseParams
from engines.contracts.base import Contract
from engines.contracts.causal import MinerParams, TimelineParams
from engines.contracts.media import SampleParams, ShotParams
from engines.contracts.reasoning import ReasonParams
from engines.contracts.speech import ListenParams
from engines.contracts.vision import EmbedParams, ReadTextParams
from engines.media.limits import MediaLimits


class SamplingParams(SampleParams):
    """The decode pass of the whole pipeline: it also keeps pictures for following people."""

    people_budget: int = Field(default=7200, ge=0)
    """Ten minutes at twelve a second; of longer videos the dullest seconds go."""


class PipelineParams(Contract):
    """Parameters of every stage; each has a default, and each changes only what it reaches."""

    limits: MediaLimits = Field(default_factory=MediaLimits)
    sample: SamplingParams = Field(default_factory=SamplingParams)
    shots: ShotParams = Field(default_factory=ShotParams)
    embed: EmbedParams = Field(default_factory=EmbedParams)
    listen: ListenParams = Field(default_factory=ListenParams)
    read_text: ReadTextParams = Field(default_factory=ReadTextParams)
    pose: PoseParams = Field(default_factory=PoseParams)
    actions: ActionsParams = Field(default_factory=ActionsParams)
    timeline: TimelineParams = Field(default_factory=TimelineParams)
    causes: MinerParams = Field(default_factory=MinerParams)
    reason: ReasonParams = Field(default_factory=ReasonParams)
