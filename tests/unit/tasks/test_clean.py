"""Text and numbers from outside are made fit to store at one boundary, with the fact marked."""

import pytest

from engines.contracts.base import Coverage
from engines.contracts.speech import ListenDocument, Utterance
from engines.contracts.time import TimeSpan
from engines.contracts.vision import Box, TextDocument, TextLine
from engines.errors import NotFiniteError
from tasks.clean import clean_document

SPAN = TimeSpan.from_seconds(0, 1)
COVERAGE = Coverage(covered_s=1, skipped_s=0)


def lines(*texts, confidence=0.9):
    box = Box(x=0, y=0, w=1, h=1)
    return TextDocument(
        texts=tuple(
            TextLine(span=SPAN, text=text, confidence=confidence, box=box) for text in texts
        ),
        model="m",
        coverage=COVERAGE,
    )


def test_one_bad_line_does_not_lose_the_others():
    texts = [f"line {n}" for n in range(500)]
    texts[250] = "hi\x00there"
    cleaned = clean_document(lines(*texts))
    assert [t.text for t in cleaned.texts[:250]] == texts[:250]
    assert cleaned.texts[250].text == "hi\N{REPLACEMENT CHARACTER}there"
    assert cleaned.texts[250].flags == ("cleaned:text",)
    assert all(not t.flags for n, t in enumerate(cleaned.texts) if n != 250)


def test_half_an_emoji_is_replaced_and_a_whole_one_stays():
    cleaned = clean_document(lines("ok \ud83d", "ok \U0001f600"))
    assert cleaned.texts[0].text == "ok \N{REPLACEMENT CHARACTER}"
    assert cleaned.texts[1].text == "ok \U0001f600"
    assert cleaned.model_dump_json()


def test_a_typed_escape_stays_as_typed():
    document = lines("a\\u0000b")
    assert clean_document(document) is document


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_may_be_missing_becomes_null(number):
    utterance = Utterance(
        span=SPAN,
        text="hello",
        language="en",
        confidence=number,
        trust=1.0,
        no_speech_probability=None,
        words=(),
    )
    document = ListenDocument(utterances=(utterance,), sounds=(), model="m", coverage=COVERAGE)
    cleaned = clean_document(document)
    assert cleaned.utterances[0].confidence is None
    assert cleaned.utterances[0].flags == ("cleaned:confidence",)


def test_a_number_that_must_be_there_is_an_error():
    document = lines("x")
    bad = document.texts[0].model_copy(update={"confidence": float("nan")})
    with pytest.raises(NotFiniteError, match="confidence"):
        clean_document(document.model_copy(update={"texts": (bad,)}))
