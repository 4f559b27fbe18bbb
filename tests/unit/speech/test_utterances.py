from itertools import pairwise

import numpy as np
import pytest

from engines.contracts.media import SubtitleCue
from engines.speech.recogniser import HeardSegment, HeardWord, Recognition
from engines.speech.sound_witness import weigh_sound_classes
from engines.speech.subtitles import two_letter, weigh_subtitles
from engines.speech.utterances import (
    Draft,
    PlacedWord,
    draft_utterances,
    is_outside_voice,
    place_words,
    to_utterance,
)
from engines.speech.voice import CHUNK_S


def _recognition(*words: tuple[str, float, float], language: str | None = "en", sure: float = 0.99):
    heard = tuple(
        HeardWord(text.strip("+"), start, end, 0.9, glued=text.startswith("+"))
        for text, start, end in words
    )
    return Recognition(language, sure, (HeardSegment(heard, -0.2, 0.05),))


def _voice(total_s: float, *regions: tuple[float, float]) -> np.ndarray:
    out = np.zeros(round(total_s / CHUNK_S) + 1, dtype=np.float32)
    for start, end in regions:
        out[int(start / CHUNK_S) : int(np.ceil(end / CHUNK_S))] = 0.95
    return out


def _placed(*words: tuple[str, float, float]) -> list[PlacedWord]:
    return [
        PlacedWord(text.strip("+"), a, b, 0.9, 0.9, -0.2, 0.05, glued=text.startswith("+"))
        for text, a, b in words
    ]


def test_a_word_stretched_over_a_pause_is_trimmed_to_its_voice():
    regions = [(0.9, 2.6), (3.97, 5.0)]
    heard = _recognition(("one", 0.0, 2.0), ("nine", 2.6, 4.1), ("oh", 4.1, 4.8))
    words = place_words(heard, 0.0, regions, _voice(6, *regions))
    assert [(w.start_s, w.end_s) for w in words] == [(0.9, 2.0), (3.97, 4.1), (4.1, 5.0)]
    assert all(w.voice > 0.8 for w in words)


def test_a_word_without_voice_keeps_its_time_and_says_so():
    (word,) = place_words(_recognition(("you", 4.0, 4.5)), 1.0, [(0.0, 1.0)], _voice(8, (0, 1)))
    assert (word.start_s, word.end_s) == (5.0, 5.5)
    assert word.voice == 0.0


def test_words_never_overlap_nor_run_backwards():
    regions = [(0.0, 1.0), (2.0, 3.0)]
    heard = _recognition(("a", 0.0, 0.9), ("b", 0.5, 2.2), ("c", 0.8, 0.9), ("d", 2.1, 2.9))
    words = place_words(heard, 0.0, regions, _voice(4, *regions))
    for before, after in pairwise(words):
        assert before.start_s <= before.end_s
        assert before.end_s <= after.end_s


@pytest.mark.parametrize(
    ("words", "pieces"),
    [
        ([("well", 0, 0.5), ("then", 0.6, 1.0)], ["well then"]),
        ([("well", 0, 0.5), ("then", 1.3, 1.7)], ["well", "then"]),
        ([("Done.", 0, 0.5), ("Next", 0.7, 1.0)], ["Done.", "Next"]),
        ([("Done.", 0, 0.5), ("Next", 0.52, 1.0)], ["Done. Next"]),
        ([("Mr.", 0, 0.5), ("Fox", 0.7, 1.0)], ["Mr. Fox"]),
        ([("ill", 0, 0.5), ("+-disposed", 1.5, 1.9)], ["ill-disposed"]),
        ([("long", 0, 8.5), ("breath", 8.8, 9.0)], ["long", "breath"]),
    ],
)
def test_utterances_end_at_pauses_and_sentences(words, pieces):
    drafts = draft_utterances(_placed(*words), _recognition(), None, loop=False)
    assert [draft.text for draft in drafts] == pieces


def test_utterance_on_the_asset_clock_with_bare_words():
    placed = _placed(("“Well,", 0.25, 0.5), ("don't!”", 0.5, 1.0), ("—", 1.0, 1.1))
    (draft,) = draft_utterances(placed, _recognition(), "left", loop=False)
    utterance = to_utterance(draft, -4000)
    assert utterance is not None
    assert utterance.span.start_s == pytest.approx(0.0)
    assert [w.text for w in utterance.words] == ["Well", "don't"]
    assert utterance.text == "“Well, don't!” —"
    assert {w.speaker for w in utterance.words} == {"left"}
    assert utterance.trust > 0.8
    assert utterance.flags == ()


def test_only_punctuation_is_no_utterance():
    (draft,) = draft_utterances(_placed(("...", 0.2, 0.5)), _recognition(), None, loop=False)
    assert to_utterance(draft, 0) is None


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        ({"voice": 0.1}, "outside_voice"),
        ({"mean_log_probability": -1.4}, "guessed"),
        ({"end_s": 0.2, "text": "incomprehensibilities"}, "too_fast"),
        ({"text": "Hmmmmmmmmmm"}, "humming"),
    ],
)
def test_each_doubt_lowers_trust_and_is_named(change, flag):
    base = {"text": "word", "start_s": 0.0, "end_s": 0.5, "probability": 0.95, "voice": 0.95}
    base |= {"mean_log_probability": -0.2, "no_speech_probability": 0.1}
    (draft,) = draft_utterances([PlacedWord(**(base | change))], _recognition(), None, loop=False)
    assert flag in draft.flags
    assert draft.trust < 0.5


def test_what_an_english_only_model_cannot_place_is_not_trusted():
    lost = _recognition(language=None, sure=0.0)
    (draft,) = draft_utterances(_placed(("zu", 0, 0.4)), lost, None, loop=False)
    assert "unknown_language" in draft.flags
    assert draft.trust < 0.2


def _draft(text: str, start: float = 1.0, end: float = 3.0, trust: float = 0.7, **more) -> Draft:
    word = PlacedWord(text, start, end, 0.9, 0.9, -0.2, 0.1)
    return Draft((word,), more.get("language", "en"), 0.99, None, more.get("flags", ()), trust)


def _cue(text: str, language: str | None, stream: int = 2, start: float = 11.0) -> SubtitleCue:
    return SubtitleCue(
        start_s=start, end_s=start + 2, text=text, language=language, stream_index=stream
    )


def test_agreeing_subtitles_lift_trust():
    cues = (_cue("Ask not what your country can do, he said.", None),)
    (draft,) = weigh_subtitles([_draft("ask not what your country can do")], cues, 10.0)
    assert draft.flags == ("subtitle_agrees",)
    assert draft.trust == pytest.approx(0.85)


def test_other_words_in_the_same_language_lower_trust_and_a_translation_does_not():
    heard = _draft("ask not what your country can do", trust=0.9)
    (same,) = weigh_subtitles([heard], (_cue("a completely unrelated line", "eng"),), 10.0)
    assert same.flags == ("subtitle_differs",)
    assert same.trust == 0.6
    for language in ("ger", None):
        (other,) = weigh_subtitles([heard], (_cue("eine ganz andere Zeile", language),), 10.0)
        assert other == heard


def test_subtitles_elsewhere_in_time_say_nothing():
    heard = _draft("ask not what your country can do")
    assert weigh_subtitles([heard], (_cue("nothing to see", "en", start=40.0),), 10.0) == [heard]
    assert weigh_subtitles([heard], (), 10.0) == [heard]


def test_subtitles_do_not_excuse_a_loop():
    looped = _draft("and so and so on", trust=0.2, flags=("loop",))
    (draft,) = weigh_subtitles([looped], (_cue("and so and so on", "en"),), 10.0)
    assert draft.trust == 0.2


@pytest.mark.parametrize(
    ("tag", "code"),
    [("eng", "en"), ("deu", "de"), ("ger", "de"), ("de-AT", "de"), ("und", None), (None, None)],
)
def test_language_tags(tag, code):
    assert two_letter(tag) == code


def test_words_in_clear_music_without_speech_lose_half_their_trust():
    music = np.tile(np.array([0.05, 0.1, 0.95], dtype=np.float32), (400, 1))
    (draft,) = weigh_sound_classes([_draft("go")], music)
    assert draft.flags == ("in_music",)
    assert draft.trust == pytest.approx(0.35)
    over_music = music.copy()
    over_music[150:200, 0] = 0.9
    assert weigh_sound_classes([_draft("go")], over_music) == [_draft("go")]


def test_outside_voice():
    assert is_outside_voice(_draft("x", 1.0, 3.0), [(3.5, 4.0)])
    assert not is_outside_voice(_draft("x", 1.0, 3.0), [(2.5, 4.0)])
