"""What the media engine says of a file: probe, inspection, samples, shots, keyframes."""

from typing import ClassVar, Literal

from pydantic import Field

from engines.contracts.base import Contract, Fact, StageDocument

MediaKind = Literal["video", "audio", "image", "subtitles"]
Verdict = Literal["complete", "partial", "refused"]


class MediaInfo(Contract):
    """The container: what it declares against what was found."""

    kind: MediaKind
    container: str
    declared_duration_s: float | None
    duration_s: float | None
    """Decoded length over picture and sound; None before decoding (probe alone)."""
    start_s: float
    """First presentation time over the chosen streams, on the asset clock."""


class VideoStream(Contract):
    """The chosen picture stream; width and height are as displayed (turned upright).

    They count stored pixels: where these are not square (``sample_aspect`` other than 1), the
    picture is ``width * sample_aspect`` square pixels wide, and so are the sampled pictures.
    """

    stream_index: int = Field(ge=0)
    codec: str
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    rotation_deg: int
    """Clockwise turn that makes the coded picture upright: 0, 90, 180 or 270."""
    mirrored: bool = False
    coded_width: int = Field(gt=0)
    coded_height: int = Field(gt=0)
    sample_aspect_num: int = Field(default=1, gt=0)
    """Width of a stored pixel over its height, along the coded rows (before turning)."""
    sample_aspect_den: int = Field(default=1, gt=0)
    frames_declared: int | None
    frames_decoded: int | None
    first_pts: int | None
    last_pts: int | None
    time_base_num: int = Field(gt=0)
    time_base_den: int = Field(gt=0)
    time_estimated: bool = False
    """True where the container gave no times and they were derived from the frame rate."""
    variable_rate: bool | None
    pixel_format: str | None
    full_range: bool = False
    hdr: str | None
    """``hdr10``, ``hlg``, ``dolby_vision`` or None for standard range."""


class AudioStream(Contract):
    """The chosen sound stream."""

    stream_index: int = Field(ge=0)
    codec: str
    sample_rate_hz: int = Field(gt=0)
    channels: int = Field(gt=0)
    language: str | None = None
    start_s: float
    """First sound on the asset clock."""
    duration_s: float | None
    """Length of the sound that decoded, gaps not counted; None before decoding."""


class SubtitleCue(Contract):
    """One cue of a text track inside the file: a second witness beside recognised speech."""

    start_s: float
    end_s: float
    text: str
    language: str | None
    stream_index: int = Field(ge=0)


class Problem(Contract):
    """Something wrong with the file, and where."""

    code: str
    message: str
    start_s: float | None = None
    end_s: float | None = None


class MediaProbe(StageDocument):
    """What the file truly is, from its headers and first packets; nothing decoded in full."""

    media: MediaInfo
    video: VideoStream | None
    audio: AudioStream | None
    subtitles: tuple[SubtitleCue, ...] = ()
    num_streams: int = Field(ge=0)
    problems: tuple[Problem, ...] = ()


class Sample(Contract):
    """One sampled picture; its JPEG is entry ``name`` of the samples archive."""

    name: str
    frame: int = Field(ge=0)
    """Index in display order among the decoded frames."""
    pts: int
    end_pts: int
    """Where the next frame begins, in the stream's time base."""
    motion: float = Field(ge=0)
    """Mean absolute luma change against the previous decoded frame, 0-1, camera included."""
    sharpness: float = Field(ge=0)
    """Variance of the Laplacian of the luma, for choosing key pictures."""


class MotionPoint(Contract):
    """Motion and brightness of one decoded frame at low resolution."""

    pts: int
    motion: float = Field(ge=0)
    luma: float = Field(ge=0, le=1)


class SampleParams(Contract):
    """Everything that changes what one decode pass gives."""

    step_s: float = Field(default=0.25, gt=0)
    """Finest distance between samples; the first frame at or after each multiple is taken."""
    budget: int = Field(default=1200, ge=2)
    """Most samples of one file; when it is full the step doubles and dull samples go."""
    novelty_threshold: float = Field(default=0.08, gt=0, le=1)
    """Change of any low-resolution cell that keeps a sample between the regular ones."""
    fixed: bool = False
    """True: the step is kept whatever the number of samples."""
    long_edge: int = Field(default=1280, ge=16)
    """Bound on the longer side of a sample in pixels; smaller pictures are not enlarged."""
    people_step_s: float = Field(default=1 / 12, gt=0)
    """Time between two pictures for whoever follows people and their gestures."""
    people_budget: int = Field(default=0, ge=0)
    """Most of these pictures; when they are more, the dullest seconds go. 0: none are made."""
    people_long_edge: int = Field(default=384, ge=16)
    """Bound on the longer side of such a picture in pixels."""
    chunk_s: float = Field(default=120.0, gt=0)
    """Material between two checkpoints."""
    threads: int = Field(default=0, ge=0)
    """Decoder threads for the picture; 0: as many as the library thinks fit."""


class ShotParams(Contract):
    """Everything that changes which shots and keyframes are found."""

    second_look: bool = True
    """Let TransNetV2 judge what the signals cannot settle."""
    threshold: float = Field(default=0.5, gt=0, lt=1)
    """Probability from which TransNetV2 is believed."""
    max_windows: int = Field(default=400, ge=0)
    """Most windows of 50 frames for the second look, about a CPU second each; the rest of the
    doubtful spans stays as the signals say, and the document says so."""
    keyframe_sensitivity: float = Field(default=0.5, gt=0, lt=1)
    """Higher finds more keyframes: a peak needs a prominence of ``1 - sensitivity`` of the
    largest change energy of its shot."""


class PeoplePictures(Contract):
    """What the ``people`` blob holds."""

    num_pictures: int = Field(ge=0)
    step_s: float = Field(gt=0)
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    skipped_s: float = Field(ge=0)
    """Seconds of little motion whose pictures were let go to keep within the budget."""


class SampleDocument(StageDocument):
    """The result of the one decode pass.

    Blobs beside it: ``samples`` (zip, stored: JPEG q90 at display orientation and aspect),
    ``audio`` (npy int16 [channels <= 2, n] at 16 kHz, sample 0 at ``audio_start_pts`` / 16000 s,
    gaps filled with zeros), ``signals`` (npz-free npy float32 [num_frames, k], see
    ``signal_names``), ``pts`` (npy int64 [num_frames + 1], the last entry is the end),
    ``thumbs`` (npy uint8 [m, 27, 48, 3] RGB, coded orientation, of the spans that need a second
    look) with their frame numbers in ``thumb_frames`` (npy int64 [m], rising). Where asked for,
    ``people`` (zip, stored: JPEG q85, small, many a second, named as samples are) with their
    times in ``people_pts`` (npy int64, one for each entry).
    """

    media: MediaInfo
    video: VideoStream | None
    audio: AudioStream | None
    time_base_num: int = 1
    time_base_den: int = 1
    samples: tuple[Sample, ...]
    people: PeoplePictures | None = None
    """None where none were asked for or there is no picture."""
    sample_step_s: float
    signal_names: tuple[str, ...]
    slow_lag: int = 20
    """Frames between the two pictures that the signals ending in ``_slow`` compare."""
    audio_start_pts: int = 0
    """First sample of the ``audio`` blob on the asset clock, in 1/16000 s."""
    audio_gaps: tuple[tuple[float, float], ...] = ()
    """Spans [start_s, end_s) where no sound was decoded and zeros stand in."""
    problems: tuple[Problem, ...] = ()
    verdict: Verdict


class Shot(Fact):
    """One continuous take."""

    kind: ClassVar = "shot"

    start_frame: int = Field(ge=0)
    end_frame: int = Field(ge=0)
    """Exclusive."""
    method: str
    """How its beginning was found: ``start``, ``cut``, ``dissolve``, ``fade``, ``wipe``."""
    score: float


class Keyframe(Fact):
    """A picture that stands for what happens around it; the span is that one frame."""

    kind: ClassVar = "keyframe"

    shot_ordinal: int = Field(ge=0)
    frame: int = Field(ge=0)
    sample_name: str
    """The entry of the samples archive that shows it."""
    reason: str
    """``sharpest`` or ``change_peak``."""
    energy: float


class ShotsDocument(StageDocument):
    """Shots in order, without gaps over the decoded picture, and their keyframes."""

    shots: tuple[Shot, ...]
    keyframes: tuple[Keyframe, ...]


class Inspection(Contract):
    """What ``reelgraph inspect`` prints; ``media`` is None for a file that was refused."""

    media: MediaInfo | None
    video: "InspectedVideo | None"
    audio: AudioStream | None
    shots: tuple["InspectedShot", ...]
    problems: tuple[Problem, ...]
    verdict: Verdict


class InspectedVideo(VideoStream):
    """A picture stream as the command line prints it."""

    time_base: str
    """``numerator/denominator``, seconds per tick."""


class InspectedShot(Contract):
    """A shot as the command line prints it."""

    start_frame: int
    end_frame: int
    start_s: float
    end_s: float
