"""The typed timeline and what was found to cause what on it."""

from typing import ClassVar, Literal, Self

from pydantic import Field

from engines.contracts.base import Contract, Fact, FactRef, StageDocument
from engines.contracts.time import TimeSpan

EventSource = Literal["shot", "label", "action", "speech", "sound", "text", "motion"]
EdgeVerdict = Literal["causal", "not_causal", "insufficient_evidence"]
Scope = Literal["video", "corpus"]


class Event(Fact):
    """Something that happens at a time; many events share a type."""

    kind: ClassVar = "event"

    type: str
    """Lower-case, ``source:what``, e.g. ``sound:onset``, ``text:appears``."""
    subject: str | None
    description: str
    source: EventSource
    evidence: tuple[FactRef, ...]
    time_error_s: float = Field(default=0.0, ge=0)
    """The true start may lie this much before the stated one: what was sampled every second
    is first seen up to a second late. Order within this error is not known."""


class TimelineParams(Contract):
    """Everything that changes which events the fused timeline has."""

    min_label_score: float = Field(default=0.2, ge=0, le=1)
    min_text_confidence: float = Field(default=0.6, ge=0, le=1)
    min_trust: float = Field(default=0.5, ge=0, le=1)
    """Utterances trusted less are flagged ``low_trust``; the miner leaves flagged events out."""
    max_said_types: int = Field(default=8, ge=0)
    min_said_repeats: int = Field(default=3, ge=2)
    """A word becomes an event type only when it is said so often."""
    motion_prominence: float = Field(default=6.0, gt=0)
    """Robust standard deviations by which a burst of motion stands above its surroundings."""
    light_step: float = Field(default=0.008, gt=0, le=1)
    """Smallest lasting change of mean brightness (0-1) that counts as light on or off."""
    sustained_s: float = Field(default=1.0, gt=0)
    """A state shorter than this is one event; a longer one also has an event at its end."""


class EventsDocument(StageDocument):
    """All facts fused into one timeline, ordered by start."""

    events: tuple[Event, ...]
    observed: tuple[TimeSpan, ...] = ()
    """Where picture and sound (those that exist) were really decoded; empty when unknown. What
    lies outside was not seen, which is no evidence that nothing happened."""


class EdgeExample(Contract):
    """A pair of occurrences in one video of a corpus that shows an edge."""

    video: str
    """The SHA-256 of the video's events document; the references are into that document."""
    cause_event: FactRef
    effect_event: FactRef
    lag_s: float


class CausalEdge(Fact):
    """A tested pair of event types (or instances); the span reaches from cause to effect."""

    kind: ClassVar = "edge"

    scope: Scope = "video"
    cause_type: str
    effect_type: str
    cause_event: FactRef | None = None
    effect_event: FactRef | None = None
    """Both None for an edge between types; both set for an edge between two instances."""
    lag_s: float | None
    cooccurrences: int = Field(ge=0)
    strength: float | None
    p_value: float | None
    q_value: float | None
    test: str
    effective_n: float
    counterfactual_delta: float | None
    """Effects lost per occurrence of the cause when the cause is removed in the fitted model."""
    delta_low: float | None
    delta_high: float | None
    confidence: float | None
    placebo_rate: float | None
    verdict: EdgeVerdict
    reason: str
    """One sentence with the number that decided, e.g. ``3 co-occurrences, at least 5 needed``."""
    num_videos: int | None = None
    """Videos of the corpus in which the cause occurred; None for an edge of one video."""
    heterogeneity: float | None = None
    """Share of the spread between those videos that chance does not explain (I-squared)."""
    examples: tuple[EdgeExample, ...] = ()
    """Where to look, for an edge of a corpus."""


class CausesDocument(StageDocument):
    """Edges with evidence; ``verdict`` says when there was too little to say anything."""

    edges: tuple[CausalEdge, ...]
    verdict: Literal["edges", "no_edges", "insufficient_evidence"]
    reason: str
    num_events: int = Field(ge=0)
    effective_n: float
    placebo_rate: float | None
    """False edges per tested pair over all placebo runs."""
    placebo_edges: int | None = None
    """False edges over all placebo runs."""
    placebo_runs: int = 0
    scope: Scope = "video"
    num_videos: int = 1


class PartDocument(StageDocument):
    """What one video contributes to a corpus; the arrays are a blob beside it."""

    num_events: int = Field(ge=0)
    num_types: int = Field(ge=0)
    copies: int = Field(ge=0)
    """Shifted copies of the video that were counted."""


class MinerParams(Contract):
    """Everything that changes what the miner finds."""

    max_lag_s: float = Field(default=4.0, gt=0)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    min_cooccurrences: int = Field(default=5, ge=2)
    min_effective_n: float = Field(default=5.0, ge=2)
    """Separate occurrences of cause and of effect (repeats within the lag's width count once)."""
    permutations: int = Field(default=500, ge=50)
    bootstraps: int = Field(default=200, ge=50)
    placebo_runs: int = Field(default=6, ge=0)
    """Runs on shuffled, substituted and reversed events, in turn."""
    lag_bins: int = Field(default=40, ge=8, le=400)
    max_parents: int = Field(default=6, ge=1)
    max_types: int = Field(default=300, ge=2)
    """Rarer types than the most frequent ones are left out, and it is said."""
    max_test_n: int = Field(default=1500, ge=100)
    """Most cases and controls in one conditional independence test."""
    nuisance_sources: tuple[EventSource, ...] = ("shot",)
    """Editing, not the world: conditioned on, never reported as a cause or an effect."""
    max_rejected_edges: int = Field(default=60, ge=0)
    """Pairs that are not causal or lack evidence are reported up to this number, best first."""
    seed: int = 0


class PartParams(Contract):
    """Those parameters of the miner that a video's part of a corpus depends on."""

    max_lag_s: float = Field(gt=0)
    lag_bins: int = Field(ge=8, le=400)
    permutations: int = Field(ge=50)
    seed: int

    @classmethod
    def of(cls, params: MinerParams) -> Self:
        """Of a miner."""
        return cls(
            max_lag_s=params.max_lag_s,
            lag_bins=params.lag_bins,
            permutations=params.permutations,
            seed=params.seed,
        )
