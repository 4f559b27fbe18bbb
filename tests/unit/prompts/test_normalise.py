"""One form for one meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.prompts.normalise import canonical_words, normalise, synonyms, terms, words


def wide(text: str) -> str:
    """Full-width forms, as input methods of East Asia write them."""
    return "".join("\u3000" if c == " " else chr(ord(c) + 0xFEE0) for c in text)


@pytest.mark.parametrize(
    ("given_text", "clean"),
    [
        (wide("Take 3") + " eggs", "Take 3 eggs"),
        ("take , 3 eggs !!", "take, 3 eggs!"),
        ("take ... 3 -- eggs", "take. 3 - eggs"),
        ("take\u200b 3\u00a0eggs\u2028now", "take 3 eggs now"),
        ("\u201cyes\u201d \u2013 it\u2019s", '"yes" - it\'s'),
        ("* take * 3 eggs ~", "take 3 eggs"),
        ("ﬁre \x00 alarm \ud800", "fire alarm"),
        ("5 % of 1 + 2", "5 % of 1 + 2"),
        ("C++ at https://a.b", "C++ at https://a.b"),
        ("", ""),
        ("!!!", ""),
    ],
)
def test_noise_goes_and_words_stay(given_text: str, clean: str) -> None:
    assert normalise(given_text) == clean


@given(st.text(max_size=60))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert "\n" not in once


def test_numbers_and_times_stay_whole() -> None:
    assert words("At 00:12:03 take 1.5 or 1,000 of it's") == (
        "at", "00:12:03", "take", "1.5", "or", "1,000", "of", "it's",
    )  # fmt: skip


def test_the_longest_phrase_is_replaced_first() -> None:
    assert canonical_words("my mobile phone, a cell phone and a phone") == (
        "my", "telephone", "a", "telephone", "and", "a", "telephone",
    )  # fmt: skip


def test_no_standard_term_is_itself_replaced() -> None:
    assert not set(synonyms().values()) & set(synonyms()), "a term must be an end, not a step"


def test_terms_carry_the_topic_alone() -> None:
    assert terms("This is about the TV and a lorry") == ("television", "truck")
