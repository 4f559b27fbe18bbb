"""The base of every contract and of every stage's output document."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from engines.contracts.time import TimeSpan

FactKind = Literal[
    "shot",
    "keyframe",
    "label",
    "sound",
    "utterance",
    "word",
    "text",
    "action",
    "event",
    "edge",
    "answer",
    "contradiction",
]

FactRef = Annotated[str, Field(pattern=r"^[a-z_]+:\d+$")]
"""A fact of the same video by kind and ordinal, e.g. ``utterance:3``.

Documents cite each other's facts this way, so that a cached document does not depend on
which video (bucket and key) it was first made for; publishing turns a reference into a uuid.
"""


class Contract(BaseModel):
    """Frozen, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Fact(Contract):
    """One row that SQL will show. Subclasses add what is particular to the kind."""

    kind: ClassVar[FactKind]

    span: TimeSpan
    flags: tuple[str, ...] = ()
    """Marks such as ``cleaned:text`` or ``hallucination``; empty for a plain fact."""


class Coverage(Contract):
    """How much of the asset a stage really looked at: not seen differs from not there."""

    covered_s: float = Field(ge=0)
    skipped_s: float = Field(ge=0)
    trust: float | None = Field(default=None, ge=0, le=1)
    reason: str | None = None
    """Why something was skipped or is not to be trusted; None when all was covered."""


class StageDocument(Contract):
    """What a stage computed: facts, coverage, and where it had to make do with less."""

    coverage: Coverage
    degraded: tuple[str, ...] = ()
    """Each entry says what was weaker than asked for, and why."""
    reusable: bool = True
    """False when a passing fault shaped it (a server that did not answer): it is published, but
    the next run computes again instead of taking it for the answer."""
