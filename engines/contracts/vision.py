"""What is seen: labels with spans, on-screen text, embeddings."""

from typing import ClassVar

from pydantic import Field

from engines.contracts.base import Contract, Fact, StageDocument


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
    """Row i of the ``embeddings`` blob belongs to this sampled picture."""

    sample_name: str
    pts: int


class EmbedDocument(StageDocument):
    """Labels, and beside it the blob ``embeddings``: npy float32 [n, d], unit length."""

    labels: tuple[Label, ...]
    embedded: tuple[EmbeddedSample, ...]
    dimension: int = Field(ge=0)
    model: str


class Box(Contract):
    """Fractions of the displayed picture, origin top left."""

    x: float = Field(ge=0, le=1)
    y: float = Field(ge=0, le=1)
    w: float = Field(ge=0, le=1)
    h: float = Field(ge=0, le=1)


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
