"""What is seen: labels with spans, on-screen text, embeddings."""

from typing import ClassVar, Literal

from pydantic import Field

from engines.contracts.base import Contract, Fact, FactRef, StageDocument

DEFAULT_LABEL_MODEL = "efficientnet-lite0"


class EmbedParams(Contract):
    """Parameters of the stage ``embed``; all of them are part of its cache key."""

    model: str = DEFAULT_LABEL_MODEL
    """``efficientnet-lite0``, or the path of a directory with a CLIP, SigLIP, ViT, VideoMAE or
    TimeSformer model."""
    classes: tuple[str, ...] = ()
    """What a zero-shot model looks for; must be empty for a model with classes of its own."""
    prompt: str = "a photo of {}"
    """How a zero-shot model is asked for a class."""
    backend: Literal["auto", "openvino", "onnxruntime", "torch", "tensorrt"] = "auto"
    """``auto``: the fastest by measurement among those that give the reference's numbers."""
    precision: Literal["f32", "bf16", "f16", "int8"] = "f32"
    calibration: str | None = None
    """For ``int8``: a directory with at least 512 pictures of the user's own (JPEG, PNG, or
    archives ``samples.zip`` that the stage ``sample`` made)."""
    clip_hop: int = Field(default=8, ge=1)
    """For a model of clips: samples from the start of one clip to that of the next."""
    temporal_reach: int = Field(default=0, ge=0)
    """Above 0, each vector attends to so many neighbours on either side (see
    ``engines.vision.temporal``); labels do not change."""
    vectors_per_s: float | None = Field(default=None, gt=0)
    """Most vectors stored per second of video; None stores one for each sample. Those stay that
    the others resemble (see ``engines.vision.compress``), keyframes whatever the number. Labels
    come from all samples all the same."""
    device: str = "cpu"
    threads: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=4, ge=1)
    """Pictures per run, of each stream. Small: beyond 8 rows the activations leave a CPU's cache
    (seen: 69 pictures per CPU second at 4 rows, 57 at 16)."""
    enter_score: float = Field(default=0.4, gt=0, le=1)
    """A label is reported where its probability comes to this in at least one sample ..."""
    keep_score: float = Field(default=0.2, gt=0, le=1)
    """... over the consecutive samples in which it stays above this."""
    lone_score: float = Field(default=0.6, gt=0, le=1)
    """What a label must reach that only one sample shows: most of those are noise."""


class ReadTextParams(Contract):
    """Parameters of the stage ``read_text``; all of them are part of its cache key."""

    backend: Literal["openvino", "onnxruntime", "tensorrt"] = "openvino"
    device: str = "cpu"
    threads: int | None = Field(default=None, ge=1)
    step_s: float = Field(default=1.0, gt=0)
    """A picture that changed is read again after this time at the latest."""
    onset_step_s: float = Field(default=0.5, gt=0)
    """... and after this time where something appears suddenly."""
    min_score: float = Field(default=0.6, ge=0, le=1)
    """Lines whose best reading is below this are dropped."""
    min_side: int = Field(default=640, ge=32)
    max_side: int = Field(default=960, ge=32)
    """Longer side of the picture in which lines are looked for; they are read at full size."""
    unchanged: float = Field(default=8.0, ge=0)
    """Largest cell difference, of 255, up to which two pictures are the same."""
    onset: float = Field(default=16.0, ge=0)
    """Largest cell difference, of 255, from the previous sample that counts as sudden."""


class Label(Fact):
    """A class seen (or heard) over a span."""

    kind: ClassVar = "label"

    label: str
    score: float
    """Highest calibrated probability over the span."""
    vocabulary: str
    """``imagenet-1k``, ``sound`` ..."""
    model: str


class EmbeddedSample(Contract):
    """Row i of the ``embeddings`` blob belongs to this sampled picture.

    From a model of clips, to the clip of which this is the middle.
    """

    sample_name: str
    pts: int


class Box(Contract):
    """Fractions of the displayed picture, origin top left."""

    x: float = Field(ge=0, le=1)
    y: float = Field(ge=0, le=1)
    w: float = Field(ge=0, le=1)
    h: float = Field(ge=0, le=1)


class Alignment(Contract):
    """Where in one picture a label's text finds what it names."""

    label: FactRef
    """``label:<index in labels>``"""
    sample_name: str
    """The sample in which the label is surest."""
    box: Box
    """Region of the strongest attention of the text's tokens."""
    entropy: float = Field(ge=0)
    """Of that attention over all regions, in nats; 0 points at one region alone."""


class EmbedDocument(StageDocument):
    """Labels, and beside it the blob ``embeddings``: npy float32 [n, d], unit length."""

    labels: tuple[Label, ...]
    alignments: tuple[Alignment, ...] = ()
    """One for each label, where the model relates text to regions (CLIP, SigLIP); else none."""
    embedded: tuple[EmbeddedSample, ...]
    vectors_left_out: int = Field(default=0, ge=0)
    """By ``EmbedParams.vectors_per_s``."""
    dimension: int = Field(ge=0)
    model: str


class TextLine(Fact):
    """One line of on-screen text over the span in which it stands."""

    kind: ClassVar = "text"

    text: str
    confidence: float = Field(ge=0, le=1)
    box: Box


class TextDocument(StageDocument):
    """On-screen text as lines with spans, not repeated per frame."""

    texts: tuple[TextLine, ...]
    model: str
