"""What a recogniser gives: text with word times, and how sure it was."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from engines.speech.audio import Signal


class WrittenWord(Protocol):
    """Text, and whether it is glued to what stands before."""

    @property
    def text(self) -> str:
        """The word with its punctuation."""

    @property
    def glued(self) -> bool:
        """Whether no blank stands before it."""


@dataclass(frozen=True)
class HeardWord:
    """One word; seconds from the first sample of what the recogniser was given."""

    text: str
    """As the model wrote it, punctuation attached, without surrounding blanks."""
    start_s: float
    end_s: float
    probability: float
    glued: bool = False
    """True where no blank stands before it: the second half of ``ill-disposed``, or a script
    that writes no blanks."""


@dataclass(frozen=True)
class HeardSegment:
    """A stretch that the model wrote as one piece, with its statistics."""

    words: tuple[HeardWord, ...]
    mean_log_probability: float
    """Per token; under -1 the model was guessing."""
    no_speech_probability: float

    @property
    def text(self) -> str:
        """The words with blanks where the model wrote them."""
        return join_words(self.words)


@dataclass(frozen=True)
class Recognition:
    """What was heard in at most 30 s of sound."""

    language: str | None
    """ISO 639-1; None where the model cannot tell languages apart."""
    language_probability: float
    segments: tuple[HeardSegment, ...]

    @property
    def text(self) -> str:
        """All segments with blanks between them."""
        return " ".join(segment.text for segment in self.segments)


def join_words(words: Iterable[WrittenWord]) -> str:
    """Text of words, with a blank before each that is not glued to the one before."""
    return "".join(word.text if word.glued else f" {word.text}" for word in words).strip()


class Recogniser(Protocol):
    """Writes down speech. Each call stands alone: no text is carried from one to the next."""

    name: str
    multilingual: bool

    def recognise(
        self, audio: Signal, *, language: str | None = None, careful: bool = False
    ) -> Recognition:
        """Write down float32 [n <= 480000] mono at 16 kHz in -1..1.

        Args:
            audio: the sound.
            language: ISO 639-1 code to force; None lets the model decide.
            careful: after a loop: forbid repeated phrases while decoding.
        """

    def language_probabilities(self, audio: Signal) -> dict[str, float]:
        """Probability per ISO 639-1 code; empty where the model knows one language only."""
