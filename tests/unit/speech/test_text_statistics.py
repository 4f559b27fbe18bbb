import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.speech.text_statistics import (
    compression_ratio,
    containment,
    equal_runs,
    is_humming,
    is_loop,
    repeats_phrase,
    similarity,
    tokens,
)

SENTENCE = "the quick brown fox jumps over a lazy dog near the old mill."


@pytest.mark.parametrize(
    "text",
    [
        " ".join([SENTENCE] * 28),
        "thank you " * 12,
        "so " * 9,
        "we go on, " * 5,
        "and then he said that it was all over now " * 4,
    ],
)
def test_loops_are_found(text):
    assert is_loop(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        SENTENCE,
        "no no no no",
        "one zero zero zero one nine oh two one oh",
        "ask not what your country can do for you, ask what you can do for your country.",
        "Row, row, row your boat, gently down the stream, merrily, merrily, merrily, merrily.",
        "zero zero zero zero, zero zero zero",
    ],
)
def test_what_people_say_is_no_loop(text):
    assert not is_loop(text)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=16, unique=True))
def test_any_phrase_said_eight_times_is_a_loop_and_once_is_not(phrase):
    assert repeats_phrase(phrase * 8)
    assert not repeats_phrase(phrase)


def test_compression_ratio_says_nothing_of_short_text():
    assert compression_ratio("ha ha ha ha ha ha") == 1.0
    assert compression_ratio(SENTENCE * 10) > 5


def test_equal_runs_need_four_and_ignore_case_and_punctuation():
    texts = ["A b.", "a b", "A, B!", "a b?", "c", "c", "", "", "", ""]
    assert equal_runs(texts) == [True] * 4 + [False] * 6


@pytest.mark.parametrize("text", ["Hmmmmmmmmm", "aaaaaaaah ooooooooo"])
def test_humming(text):
    assert is_humming(text)


@pytest.mark.parametrize("text", ["", "Hmm.", "Hmmmmmmmmm, I see", "zzz", "1000000000"])
def test_no_humming(text):
    assert not is_humming(text)


def test_similarity_and_containment_keep_order():
    assert similarity("Hello, World", "hello world") == 1.0
    assert similarity("a b", "c d") == 0.0
    assert similarity("", "a") == 0.0
    assert containment("b c d", "a b c x d e") == 1.0
    assert containment("d c b", "a b c d") == pytest.approx(1 / 3)


def test_tokens_keep_apostrophes_and_other_scripts():
    assert tokens("Don't - geht’s, Übung!") == ["don't", "geht’s", "übung"]  # noqa: RUF001
