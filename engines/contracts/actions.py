"""What people do: pose tracks, and actions at three granularities."""

from typing import ClassVar, Literal

from pydantic import Field

from engines.contracts.base import Contract, Fact, FactRef, StageDocument

Granularity = Literal["macro", "meso", "micro"]


class PersonTrack(Contract):
    """One person followed over time; rows [first, last] of the ``joints`` blob."""

    track: str
    first_row: int = Field(ge=0)
    last_row: int = Field(ge=0)


class PoseDocument(StageDocument):
    """Tracks; blob ``joints``: npy float32 [n, J, 4] (x, y, z, visibility), fractions."""

    tracks: tuple[PersonTrack, ...]
    model: str


class Action(Fact):
    """A labelled span of one person's movement."""

    kind: ClassVar = "action"

    granularity: Granularity
    label: str
    score: float
    keyframe_pts: tuple[int, ...] = ()
    parent: FactRef | None = None
    person_track: str | None = None


class ActionsDocument(StageDocument):
    """Nested segments: macro contains meso contains micro."""

    actions: tuple[Action, ...]
    model: str
