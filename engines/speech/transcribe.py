"""One track of sound to draft utterances: windows, languages, loops."""

from dataclasses import dataclass, replace

from engines.contracts.speech import ListenParams
from engines.speech.audio import (
    SAMPLE_RATE_HZ,
    Interval,
    Pcm,
    Signal,
    cut,
    merge,
    overlap_s,
    subtract,
)
from engines.speech.channels import Track
from engines.speech.languages import CONFIDENT, LanguageMemory
from engines.speech.recogniser import Recogniser, Recognition
from engines.speech.text_statistics import equal_runs, is_loop
from engines.speech.utterances import (
    Draft,
    draft_utterances,
    is_outside_voice,
    mean_confidence,
    place_words,
)
from engines.speech.voice import VoiceDetector, VoiceProbabilities, refine_edges, voiced_regions
from engines.speech.windows import PAD_S, Window, plan_windows, split_window

_SPLIT_VOICED_S = 5.0
_UNSURE = 0.55
_RECHECK_S = 1.5
_REGION_GAP_S = 0.2
_SKIPPED_S = 1.5


@dataclass(frozen=True)
class VoiceMap:
    """Where one track has voice."""

    probabilities: VoiceProbabilities
    regions: list[Interval]


def map_voice(pcm: Pcm, holes: list[Interval], detector: VoiceDetector) -> VoiceMap:
    """Voiced regions of mono int16 [n], seconds of the track; none reaches into a hole."""
    probabilities = detector.probabilities(pcm)
    regions = refine_edges(pcm, voiced_regions(probabilities))
    return VoiceMap(probabilities, subtract(merge(regions, _REGION_GAP_S), holes))


class TrackTranscriber:
    """Writes down one track; remembers which languages it heard there."""

    def __init__(
        self,
        track: Track,
        voice: VoiceMap,
        holes: list[Interval],
        recogniser: Recogniser,
        params: ListenParams,
    ) -> None:
        """Prepare; nothing is computed yet."""
        self._track = track
        self._voice = voice
        self._holes = holes
        self._recogniser = recogniser
        self._params = params
        self._memory = LanguageMemory()
        self._total_s = len(track.pcm) / SAMPLE_RATE_HZ

    def run(self) -> list[Draft]:
        """All utterances in order; those wholly outside voice are left out."""
        windows = plan_windows(
            self._voice.regions, self._voice.probabilities, self._holes, self._total_s
        )
        drafts = [draft for window in windows for draft in self._write_down(window)]
        return [draft for draft in drafts if not is_outside_voice(draft, self._voice.regions)]

    def _write_down(self, window: Window, *, again: bool = False) -> list[Draft]:
        audio = cut(self._track.pcm, window.span)
        recognition = self._recogniser.recognise(audio, language=self._params.language)
        self._memory.note(recognition.language, recognition.language_probability, window.voiced_s)
        if self._is_open(recognition):
            halves = self._language_halves(window)
            if halves is not None:
                return [draft for half in halves for draft in self._write_down(half)]
            usual = self._memory.better(recognition.language, recognition.language_probability)
            if usual is not None:
                recognition = self._recogniser.recognise(audio, language=usual)
        loop = _loops(recognition)
        if loop:
            second = self._decode_with_care(audio, recognition)
            if not _loops(second):
                recognition, loop = second, False
        drafts = self._drafts(recognition, window, loop=loop)
        checked = [piece for draft in drafts for piece in self._recheck_language(draft)]
        return checked if again else self._fill_skipped(window, checked)

    def _fill_skipped(self, window: Window, drafts: list[Draft]) -> list[Draft]:
        """Give voice that the recogniser passed over a window of its own, once.

        A decoder sometimes jumps to the end of its window and leaves seconds of clear speech.
        """
        spoken = [(w.start_s, w.end_s) for draft in drafts for w in draft.words]
        silent = subtract(list(window.regions), merge(spoken, _REGION_GAP_S))
        skipped = [span for span in silent if span[1] - span[0] >= _SKIPPED_S]
        if not skipped:
            return drafts
        windows = plan_windows(skipped, self._voice.probabilities, self._holes, self._total_s)
        filled = [draft for part in windows for draft in self._write_down(part, again=True)]
        fresh = [f for f in filled if not any(overlap_s(f.span, d.span) > 0 for d in drafts)]
        return sorted([*drafts, *fresh], key=lambda draft: draft.span)

    def _decode_with_care(self, audio: Signal, first: Recognition) -> Recognition:
        """Again with repeated phrases forbidden; what is known of the language stays as it was.

        An English-only model tells English from other speech by its own doubt, which a loop
        hides: it is asked afresh.
        """
        if not self._recogniser.multilingual:
            return self._recogniser.recognise(audio, language=self._params.language, careful=True)
        second = self._recogniser.recognise(audio, language=first.language, careful=True)
        return replace(second, language_probability=first.language_probability)

    def _is_open(self, recognition: Recognition) -> bool:
        return (
            self._params.language is None
            and recognition.language is not None
            and recognition.language_probability < CONFIDENT
        )

    def _language_halves(self, window: Window) -> list[Window] | None:
        """Two halves when a doubtful window turns out to hold two languages."""
        if window.voiced_s < _SPLIT_VOICED_S:
            return None
        halves = split_window(window, self._holes, self._total_s)
        languages = [self._language_of(half.span) for half in halves]
        clear = all(probability >= CONFIDENT for _, probability in languages)
        return halves if clear and len({name for name, _ in languages}) > 1 else None

    def _language_of(self, span: Interval) -> tuple[str | None, float]:
        ranked = self._recogniser.language_probabilities(cut(self._track.pcm, span))
        if not ranked:
            return None, 0.0
        best = max(ranked, key=lambda name: ranked[name])
        return best, ranked[best]

    def _drafts(self, recognition: Recognition, window: Window, *, loop: bool) -> list[Draft]:
        words = place_words(recognition, window.span[0], window.regions, self._voice.probabilities)
        return draft_utterances(words, recognition, self._track.speaker, loop=loop)

    def _recheck_language(self, draft: Draft) -> list[Draft]:
        """An unsure utterance may be a sentence in another language inside the window."""
        length = draft.span[1] - draft.span[0]
        if (
            self._params.language is not None
            or not self._recogniser.multilingual
            or length < _RECHECK_S
            or mean_confidence(draft) >= _UNSURE
        ):
            return [draft]
        span = (max(0.0, draft.span[0] - PAD_S), min(self._total_s, draft.span[1] + PAD_S))
        language, probability = self._language_of(span)
        if language in (None, draft.language) or probability < CONFIDENT:
            return [draft]
        recognition = self._recogniser.recognise(cut(self._track.pcm, span), language=language)
        regions = subtract(self._voice.regions, [(0.0, span[0]), (span[1], self._total_s)])
        drafts = self._drafts(recognition, Window(span, tuple(regions)), loop=_loops(recognition))
        return drafts or [draft]


def _loops(recognition: Recognition) -> bool:
    texts = [segment.text for segment in recognition.segments]
    return is_loop(recognition.text) or any(equal_runs(texts))
