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
    score: float = Field(default=0.0, ge=0, le=1)
    """Mean presence that the landmark model gave over the track."""


class PoseParams(Contract):
    """Parameters of the stage ``pose``; all of them are part of its cache key."""

    threads: int | None = Field(default=None, ge=1)
    device: str = "cpu"
    batch_size: int = Field(default=4, ge=1)
    """Squares per run of a network; 8 are 3 % faster on a CPU and take 70 MB more."""
    max_people: int = Field(default=8, ge=1)
    """Most people followed at a time; of more, the largest are, and it is said."""
    min_detection: float = Field(default=0.5, gt=0, lt=1)
    """Score from which the detector's boxes are believed."""
    min_presence: float = Field(default=0.5, gt=0, lt=1)
    """A box whose landmarks have less presence than this shows nobody."""
    detect_every_s: float = Field(default=0.5, gt=0)
    """While people are followed, new ones are looked for after this time."""
    max_gap_s: float = Field(default=0.7, ge=0)
    """A person who is not seen for longer is somebody new."""
    min_track_s: float = Field(default=0.3, ge=0)
    """Shorter tracks are dropped: they are mostly mistakes."""
    min_track_presence: float = Field(default=0.85, ge=0, le=1)
    """Mean presence that a track must have ..."""
    min_confirmed: float = Field(default=0.2, ge=0, le=1)
    """... and the share of the detector's looks, of two and more, in which it must see somebody
    where the track says."""
    smoothing: bool = True
    """One-Euro filter over each track; off for the raw landmarks."""


class PoseDocument(StageDocument):
    """People followed over time.

    Blobs beside it, one row for each person in each picture, grouped by track and rising in time
    within it: ``joints`` (npy float32 [n, 33, 4]: x right and y down as fractions of the displayed
    picture, which they may leave, z as a fraction of its width and smaller when nearer, visibility
    0-1), ``world`` (npy float32 [n, 33, 3]: metres from the middle of the hips, x right, y down,
    z away from the camera) and ``pose_pts`` (npy int64 [n], the row's time). Landmarks are in the
    order of BlazePose; left is the person's own left.
    """

    tracks: tuple[PersonTrack, ...]
    model: str
    time_base_num: int = Field(default=1, gt=0)
    time_base_den: int = Field(default=1, gt=0)
    rate_hz: float = Field(default=0.0, ge=0)
    """Pictures a second that were looked at; a gap in a track is a jump in ``pose_pts``."""
    width: int = Field(default=0, ge=0)
    height: int = Field(default=0, ge=0)
    """Of the pictures, square pixels: their ratio makes x and y comparable."""


class ActionsParams(Contract):
    """Parameters of the stage ``actions``; all of them are part of its cache key."""

    threads: int | None = Field(default=None, ge=1)
    model: str = "actions-17"
    """Name of the manifest of the network over joints."""
    rate_hz: float = Field(default=25.0, gt=0)
    """Rate to which every track is brought before anything is measured."""
    max_gap_s: float = Field(default=1.0, ge=0)
    """A longer gap in a track cuts it: what happened meanwhile is not known."""
    min_probability: float | None = Field(default=None, ge=0, le=1)
    """Below it a span is no known action; None takes what was measured for the model."""
    keyframe_prominence: float = Field(default=2.0, gt=0)
    """Robust standard deviations by which a keyframe's change of movement must stand out."""
    correct_confusions: bool = True
    """Apply the timing rules that were learned for pairs of classes that are mixed up."""


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
