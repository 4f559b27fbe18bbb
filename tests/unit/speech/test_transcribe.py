"""The track transcriber against a scripted recogniser: loops, languages, skipped voice, gaps."""

from collections.abc import Callable

import numpy as np
import pytest

from engines.contracts.speech import ListenParams
from engines.speech.audio import overlap_s
from engines.speech.channels import Track
from engines.speech.listen import mark_loops, merge_speakers
from engines.speech.recogniser import HeardSegment, HeardWord, Recognition
from engines.speech.transcribe import TrackTranscriber, VoiceMap
from engines.speech.utterances import Draft, PlacedWord, to_utterance
from engines.speech.voice import CHUNK_S

RATE = 16_000
Script = Callable[[float, str | None, bool], Recognition]


def _segment(text: str, start: float, end: float, probability: float = 0.9) -> HeardSegment:
    words = text.split()
    step = (end - start) / len(words)
    heard = [
        HeardWord(word, start + i * step, start + (i + 0.95) * step, probability)
        for i, word in enumerate(words)
    ]
    return HeardSegment(tuple(heard), -0.3, 0.05)


class Scripted:
    """Answers from a function of (seconds given, language, careful) and keeps the calls."""

    name = "scripted"

    def __init__(self, script: Script, languages: dict[str, float] | None = None) -> None:
        self.multilingual = languages is not None
        self.calls: list[tuple[float, str | None, bool]] = []
        self._script = script
        self._languages = languages or {}

    def recognise(self, audio, *, language=None, careful=False):
        call = (round(len(audio) / RATE, 2), language, careful)
        self.calls.append(call)
        return self._script(*call)

    def language_probabilities(self, audio):
        del audio
        return self._languages


def _run(
    recogniser: Scripted,
    regions: list[tuple[float, float]],
    total_s: float,
    holes: list[tuple[float, float]] | None = None,
    params: ListenParams | None = None,
) -> list[Draft]:
    probabilities = np.zeros(round(total_s / CHUNK_S) + 1, dtype=np.float32)
    for start, end in regions:
        probabilities[round(start / CHUNK_S) : round(end / CHUNK_S)] = 0.95
    pcm = np.zeros(round(total_s * RATE), dtype=np.int16)
    transcriber = TrackTranscriber(
        Track(None, pcm),
        VoiceMap(probabilities, regions),
        holes or [],
        recogniser,
        params or ListenParams(),
    )
    return transcriber.run()


LOOPED = Recognition(
    "en", 0.99, tuple(_segment("see you in the next one", i, i + 0.9) for i in range(28))
)


_LETTERS = np.random.default_rng(4).choice(list("abcdefghijklmnopqrstuvwxyz"), (60, 7))
FRESH = " ".join("".join(word) for word in _LETTERS)


def test_a_loop_is_decoded_again_with_care():
    def script(seconds, language, careful):
        del seconds
        if not careful:
            return LOOPED
        assert language == "en"
        return Recognition("en", 1.0, (_segment(FRESH, 0.3, 27.9),))

    recogniser = Scripted(script, languages={"en": 0.99})
    drafts = _run(recogniser, [(0.3, 28.0)], 30.0)
    assert " ".join(draft.text for draft in drafts) == FRESH
    assert all(draft.flags == () for draft in drafts)
    assert [careful for _, _, careful in recogniser.calls] == [False, True]


def test_an_english_only_model_that_looped_is_asked_afresh_for_its_doubt():
    def script(seconds, language, careful):
        del seconds
        assert language is None
        if not careful:
            return LOOPED
        return Recognition(None, 0.0, (_segment(FRESH, 0.3, 27.9, 0.4),))

    drafts = _run(Scripted(script), [(0.3, 28.0)], 30.0)
    assert drafts
    assert all(draft.language is None and draft.trust < 0.2 for draft in drafts)


def test_a_loop_that_stays_is_kept_marked_and_not_trusted():
    drafts = _run(Scripted(lambda *_: LOOPED), [(0.3, 28.0)], 30.0)
    assert drafts
    for draft in drafts:
        assert "loop" in draft.flags
        utterance = to_utterance(draft, 0)
        assert utterance is not None
        assert utterance.trust <= 0.2
        assert "low_trust" in utterance.flags


def test_twenty_eight_equal_utterances_over_many_windows_are_a_loop():
    def script(seconds, language, careful):
        del language, careful
        return Recognition("en", 0.99, (_segment("thank you so much", 0.3, seconds - 0.3),))

    regions = [(10.0 * i + 1, 10.0 * i + 3) for i in range(28)]
    drafts = mark_loops(_run(Scripted(script), regions, 290.0))
    assert len(drafts) == 28
    assert all("loop" in draft.flags and draft.trust <= 0.2 for draft in drafts)


def test_speech_noise_speech_keeps_both_parts_at_their_times():
    def script(seconds, language, careful):
        del language, careful
        assert seconds < 21
        return Recognition("en", 0.99, (_segment(FRESH, 0.24, seconds - 0.24),))

    drafts = _run(Scripted(script), [(1.0, 20.0), (60.0, 79.0)], 80.0)
    words = [word for draft in drafts for word in draft.words]
    assert [word.text for word in words] == FRESH.split() * 2
    starts = [word.start_s for word in words if word.text == FRESH.split()[0]]
    ends = [word.end_s for word in words if word.text == FRESH.split()[-1]]
    assert starts == pytest.approx([1.0, 60.0], abs=0.05)
    assert ends == pytest.approx([20.0, 79.0], abs=0.05)


def test_words_outside_voice_are_dropped():
    def script(seconds, language, careful):
        del seconds, language, careful
        return Recognition(
            "en",
            0.99,
            (_segment("hello there", 0.24, 1.2), _segment("thanks for watching", 2.5, 4.0)),
        )

    (draft,) = _run(Scripted(script), [(1.0, 2.0), (5.5, 5.7)], 8.0)
    assert draft.text == "hello there"


def test_no_word_reaches_into_a_gap():
    def script(seconds, language, careful):
        del language, careful
        return Recognition("en", 0.99, (_segment("one two three four five", 0, seconds),))

    hole = (3.0, 6.0)
    drafts = _run(Scripted(script), [(1.0, 3.0), (6.0, 8.0)], 9.0, holes=[hole])
    assert len(drafts) >= 2
    for draft in drafts:
        for word in draft.words:
            assert overlap_s((word.start_s, word.end_s), hole) < 1e-9


def test_voice_that_was_passed_over_gets_a_window_of_its_own_once():
    def script(seconds, language, careful):
        del language, careful
        if seconds > 15:
            return Recognition("en", 0.99, (_segment("only the beginning", 0.24, 2.0),))
        return Recognition("en", 0.99, (_segment("and the rest", 0.24, 3.0),))

    recogniser = Scripted(script)
    drafts = _run(recogniser, [(1.0, 3.0), (4.0, 17.0)], 20.0)
    texts = [draft.text for draft in drafts]
    assert texts[0] == "only the beginning"
    assert "and the rest" in texts
    assert len(recogniser.calls) == 2


def test_a_doubtful_stretch_takes_the_language_of_the_rest():
    def script(seconds, language, careful):
        del careful
        if language is None and seconds < 3:
            return Recognition("cy", 0.3, (_segment("ie ie", 0.24, 1.2),))
        return Recognition(language or "en", 0.99, (_segment("oh yes indeed", 0.24, 1.5),))

    recogniser = Scripted(script, languages={"en": 0.9})
    drafts = _run(recogniser, [(1.0, 9.0), (20.0, 21.5)], 25.0)
    assert {draft.language for draft in drafts} == {"en"}
    assert recogniser.calls[-1] == (1.98, "en", False)


def test_a_doubtful_language_with_nothing_to_go_by_is_marked():
    recogniser = Scripted(
        lambda *_: Recognition("nn", 0.3, (_segment("ja ja", 0.24, 1.2),)), languages={"nn": 0.3}
    )
    (draft,) = _run(recogniser, [(1.0, 2.5)], 4.0)
    assert "language_uncertain" in draft.flags
    assert draft.trust < 0.5


def test_two_languages_in_one_window_are_written_down_apart():
    class TwoLanguages(Scripted):
        def language_probabilities(self, audio):
            return {"en": 0.97} if len(audio) < 5.5 * RATE else {"de": 0.97}

    def script(seconds, language, careful):
        del language, careful
        if seconds > 9:
            return Recognition("en", 0.6, (_segment("it all sounds english", 0.2, seconds),))
        name, text = ("en", "good morning") if seconds < 5.5 else ("de", "guten Morgen")
        return Recognition(name, 0.97, (_segment(text, 0.24, seconds - 0.24),))

    recogniser = TwoLanguages(script, languages={})
    recogniser.multilingual = True
    drafts = _run(recogniser, [(1.0, 5.0), (6.0, 12.0)], 14.0)
    assert [(draft.language, draft.text) for draft in drafts] == [
        ("en", "good morning"),
        ("de", "guten Morgen"),
    ]


def test_a_forced_language_is_passed_on_and_never_questioned():
    recogniser = Scripted(
        lambda _, language, __: Recognition(language, 1.0, (_segment("bonjour", 0.2, 0.9, 0.1),)),
        languages={"en": 1.0},
    )
    _run(recogniser, [(1.0, 3.0)], 4.0, params=ListenParams(language="fr"))
    assert {language for _, language, _ in recogniser.calls} == {"fr"}


def _draft(text: str, start: float, end: float, speaker: str | None, trust: float = 0.9) -> Draft:
    word = PlacedWord(text, start, end, 0.9, 0.9, -0.2, 0.1)
    return Draft((word,), "en", 0.99, speaker, (), trust)


def test_what_leaks_into_the_other_channel_is_kept_once():
    drafts = [
        _draft("the very same words here", 1.0, 3.0, "left", 0.9),
        _draft("something else", 2.0, 4.0, "left"),
        _draft("the very same words here", 1.05, 3.0, "right", 0.6),
        _draft("the very same words here", 8.0, 9.0, "right"),
    ]
    merged = merge_speakers(drafts)
    assert [(d.speaker, d.span[0]) for d in merged] == [
        ("left", 1.0),
        ("left", 2.0),
        ("right", 8.0),
    ]
