"""From recognised words to utterances on the asset clock, each with its trust."""

import string
from collections.abc import Iterable
from dataclasses import dataclass, replace

from engines.contracts.speech import Utterance, Word
from engines.contracts.time import TimeSpan
from engines.speech.audio import SAMPLE_RATE_HZ, Interval, covered_s, overlap_s
from engines.speech.recogniser import Recognition, join_words
from engines.speech.text_statistics import is_humming, is_loop
from engines.speech.voice import VoiceProbabilities, mean_probability

LOW_TRUST = 0.5
PAUSE_S = 0.7
SENTENCE_PAUSE_S = 0.12
LONG_S = 8.0
_MIN_VOICED_SHARE = 0.1
_WORD_VOICE = 0.3
_GUESSING = -1.0
_MAX_CHARACTERS_PER_S = 60.0
_PUNCTUATION = string.punctuation + "…“”„‘’«»¿¡–—。，、！？"  # noqa: RUF001
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")  # noqa: RUF001
_SNAP_S = 0.3
_EXTEND_S = 0.4
_DOUBTFUL_LANGUAGE = 0.5
_FOREIGN_LANGUAGE = 0.1


@dataclass(frozen=True)
class PlacedWord:
    """A word in seconds of the track, with what its segment and the voice detector say."""

    text: str
    start_s: float
    end_s: float
    probability: float
    voice: float
    mean_log_probability: float
    no_speech_probability: float
    glued: bool = False


@dataclass(frozen=True)
class Draft:
    """An utterance before it is placed on the asset clock."""

    words: tuple[PlacedWord, ...]
    language: str | None
    language_probability: float
    speaker: str | None
    flags: tuple[str, ...]
    trust: float

    @property
    def text(self) -> str:
        """As the model wrote it."""
        return join_words(self.words)

    @property
    def span(self) -> Interval:
        """Seconds of the track."""
        return (self.words[0].start_s, self.words[-1].end_s)

    def marked(self, flag: str, *, at_most: float = 1.0) -> "Draft":
        """With one more flag and its trust bounded."""
        flags = self.flags if flag in self.flags else (*self.flags, flag)
        return replace(self, flags=flags, trust=min(self.trust, at_most))


def place_words(
    recognition: Recognition,
    offset_s: float,
    regions: Iterable[Interval],
    probabilities: VoiceProbabilities,
) -> list[PlacedWord]:
    """Move words to the track's time and trim each to the voice it lies in.

    Times from cross-attention stretch over the pause before a word; the voice detector knows
    better where the sound is. A word that touches no voice keeps its time and a low voice value.
    """
    ordered = list(regions)
    placed: list[PlacedWord] = []
    for segment in recognition.segments:
        for word in segment.words:
            start, end = _trim((word.start_s + offset_s, word.end_s + offset_s), ordered)
            if placed and start < placed[-1].end_s:
                start = min(placed[-1].end_s, end)
            placed.append(
                PlacedWord(
                    word.text,
                    start,
                    end,
                    word.probability,
                    mean_probability(probabilities, (start, end)),
                    segment.mean_log_probability,
                    segment.no_speech_probability,
                    word.glued,
                )
            )
    return _reach_edges(placed, ordered)


def draft_utterances(
    words: list[PlacedWord], recognition: Recognition, speaker: str | None, *, loop: bool
) -> list[Draft]:
    """Split words at pauses and sentence ends, judge each piece.

    Args:
        words: of one window, in order.
        recognition: where they come from, for the language.
        speaker: of the track.
        loop: whether the window's text as a whole repeated itself.
    """
    drafts = []
    for piece in _split(words):
        trust, flags = _judge(piece, recognition, loop=loop)
        drafts.append(
            Draft(
                tuple(piece),
                recognition.language,
                recognition.language_probability,
                speaker,
                flags,
                trust,
            )
        )
    return drafts


def is_outside_voice(draft: Draft, regions: list[Interval]) -> bool:
    """Whether (nearly) nothing of the utterance lies where there is voice."""
    length = draft.span[1] - draft.span[0]
    return covered_s(draft.span, regions) < max(0.02, _MIN_VOICED_SHARE * length)


def to_utterance(draft: Draft, start_pts: int) -> Utterance | None:
    """Place on the asset clock; None when only punctuation was heard."""
    words = tuple(
        Word(
            span=_pts_span((word.start_s, word.end_s), start_pts),
            text=bare,
            confidence=round(word.probability, 4),
            speaker=draft.speaker,
            flags=_word_flags(word),
        )
        for word in draft.words
        if (bare := word.text.strip(_PUNCTUATION))
    )
    if not words:
        return None
    flags = draft.flags
    if draft.trust < LOW_TRUST:
        flags = ("low_trust", *flags)
    return Utterance(
        span=_pts_span(draft.span, start_pts),
        flags=flags,
        text=draft.text,
        language=draft.language,
        speaker=draft.speaker,
        confidence=round(mean_confidence(draft), 4),
        trust=round(draft.trust, 4),
        no_speech_probability=round(max(w.no_speech_probability for w in draft.words), 4),
        words=words,
    )


def mean_confidence(draft: Draft) -> float:
    """Mean of the words' probabilities."""
    return sum(word.probability for word in draft.words) / len(draft.words)


def _word_flags(word: PlacedWord) -> tuple[str, ...]:
    return ("outside_voice", "low_trust") if word.voice < _WORD_VOICE else ()


def _pts_span(span: Interval, start_pts: int) -> TimeSpan:
    first = start_pts + round(span[0] * SAMPLE_RATE_HZ)
    last = start_pts + round(span[1] * SAMPLE_RATE_HZ)
    return TimeSpan(
        start_pts=first, end_pts=max(first, last), time_base_num=1, time_base_den=SAMPLE_RATE_HZ
    )


def _trim(span: Interval, regions: list[Interval]) -> Interval:
    best = max(regions, key=lambda region: overlap_s(span, region), default=None)
    if best is None or overlap_s(span, best) <= 0:
        return span
    return (max(span[0], best[0]), min(span[1], best[1]))


def _reach_edges(words: list[PlacedWord], regions: list[Interval]) -> list[PlacedWord]:
    """Let the first and last word of each voiced region reach its edges, if they are near."""
    reached = list(words)
    for region in regions:
        inside = [i for i, w in enumerate(reached) if region[0] <= w.start_s < region[1]]
        if not inside:
            continue
        first, last = inside[0], inside[-1]
        if reached[first].start_s - region[0] <= _SNAP_S:
            reached[first] = replace(reached[first], start_s=region[0])
        if 0 < region[1] - reached[last].end_s <= _EXTEND_S:
            reached[last] = replace(reached[last], end_s=region[1])
    return reached


def _split(words: list[PlacedWord]) -> list[list[PlacedWord]]:
    pieces: list[list[PlacedWord]] = []
    for word in words:
        if pieces and not _breaks(pieces[-1], word):
            pieces[-1].append(word)
        else:
            pieces.append([word])
    return pieces


def _breaks(piece: list[PlacedWord], word: PlacedWord) -> bool:
    """A pause, a sentence's end with a breath, or any breath once it has grown long."""
    last = piece[-1]
    if word.glued:
        return False
    pause = word.start_s - last.end_s
    if pause >= PAUSE_S:
        return True
    long = last.end_s - piece[0].start_s >= LONG_S
    if last.text.endswith(_SENTENCE_ENDS) and len(last.text) > len("Mr."):
        return pause >= SENTENCE_PAUSE_S or long
    return long and pause >= SENTENCE_PAUSE_S * 2


def _judge(
    words: list[PlacedWord], recognition: Recognition, *, loop: bool
) -> tuple[float, tuple[str, ...]]:
    """Trust 0..1: the mean of voice and recogniser, bounded by what speaks against the text."""
    voice = sum(word.voice for word in words) / len(words)
    sure = sum(word.probability for word in words) / len(words)
    text = join_words(words)
    length = max(words[-1].end_s - words[0].start_s, 0.05)
    doubts = {
        "loop": (loop or is_loop(text), 0.2),
        "humming": (is_humming(text), 0.1),
        "outside_voice": (voice < _WORD_VOICE, 0.3),
        "too_fast": (len(text) / length > _MAX_CHARACTERS_PER_S, 0.4),
        "guessed": (min(word.mean_log_probability for word in words) < _GUESSING, 0.45),
        "language_uncertain": (_language_is_open(recognition), 0.45),
        "unknown_language": (_language_is_foreign(recognition), 0.1),
    }
    flags = tuple(name for name, (holds, _) in doubts.items() if holds)
    # A geometric mean: either witness alone can pull trust down.
    trust = (max(voice, 0.0) * max(sure, 0.0)) ** 0.5
    return min([trust, *(doubts[name][1] for name in flags)]), flags


def _language_is_open(recognition: Recognition) -> bool:
    return recognition.language_probability < _DOUBTFUL_LANGUAGE


def _language_is_foreign(recognition: Recognition) -> bool:
    """An English-only model that was at a loss: its words are not what was said."""
    return recognition.language is None and recognition.language_probability < _FOREIGN_LANGUAGE
