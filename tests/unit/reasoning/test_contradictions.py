"""The ledger: only what cannot both hold, only where both speak of it."""

import pytest
from reason_facts import Made

from engines.contracts.reasoning import Contradiction, ReasonParams
from engines.prompts.normalise import canonical_words
from engines.reasoning.contradictions import Ledger, find, numbers_of
from engines.reasoning.reason import reason


def ledger(made: Made, **documents: object) -> Ledger:
    causes = documents.pop("causes", made.no_causes())
    events = documents.pop("events", made.timeline())
    items = made.evidence(events=events, causes=causes, **documents)
    return find(items, events, causes)  # type: ignore[arg-type]


def rows(made: Made, **documents: object) -> tuple[Contradiction, ...]:
    return ledger(made, **documents).contradictions


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("take 3 eggs", {"egg": {3}}),
        ("twenty one eggs and 2 glasses", {"egg": {21}, "glasse": {2}}),
        ("at 12:30 take 1.5 cups", {}),
        ("three four men", {"person": {4}} | {}),
        ("no numbers here", {}),
    ],
)
def test_numbers_by_noun(text: str, numbers: dict[str, set[int]]) -> None:
    found = numbers_of(canonical_words(text))
    found.pop("men", None)
    numbers.pop("person", None)
    assert found == numbers


def test_a_number_shown_against_one_said(made: Made) -> None:
    spoken, shown = made.spoken((3, 4, "Take four eggs.")), made.shown((3.5, 5, "3 eggs"))
    (row,) = rows(made, listen=spoken, texts=shown)
    assert (row.fact_a, row.fact_b) == ("text:0", "utterance:0")
    assert row.contradiction_kind == "number_shown_vs_said"
    assert (row.span.start_s, row.span.end_s) == (3.0, 5.0)


@pytest.mark.parametrize(
    ("said", "shown", "shown_at_s"),
    [
        ("Take three eggs.", "3 eggs", 3.5),
        ("Take four eggs.", "3 apples", 3.5),
        ("Take four eggs.", "3 eggs", 15.0),
        ("Take four eggs, or only three eggs.", "3 eggs", 3.5),
        ("Wait ten minutes.", "5 minutes", 3.5),
        ("Take eggs.", "3 eggs", 3.5),
    ],
)
def test_what_can_both_hold_is_no_contradiction(
    made: Made, said: str, shown: str, shown_at_s: float
) -> None:
    documents = {
        "listen": made.spoken((3, 4, said)),
        "texts": made.shown((shown_at_s, shown_at_s + 1, shown)),
    }
    assert rows(made, **documents) == ()


def test_a_subtitle_that_lost_its_negation(made: Made) -> None:
    spoken = made.spoken((3, 6, "Ask not what your country can do for you"))
    (row,) = rows(made, listen=spoken, texts=made.shown((3, 6, "Ask what your country can do")))
    assert row.contradiction_kind == "subtitle_vs_speech"
    same = made.shown((3, 6, "Ask not what your country can do"))
    assert rows(made, listen=spoken, texts=same) == ()


def test_a_text_track_that_says_other_words(made: Made) -> None:
    spoken = made.spoken((3, 6, "Good morning to you all"), flags=("subtitle_differs",))
    (row,) = rows(made, listen=spoken)
    assert row.contradiction_kind == "subtitle_track_vs_speech"
    agreed = ledger(made, listen=made.spoken((3, 6, "Good day"), flags=("subtitle_agrees",)))
    assert (agreed.contradictions, agreed.pairs_checked) == ((), 1)


def test_an_effect_that_begins_before_its_cause_is_frozen(made: Made) -> None:
    edge = made.edge(cause_event="event:3", effect_event="event:0")
    found = ledger(made, causes=made.causes(edge))
    assert found.contradictions[0].contradiction_kind == "effect_before_cause"
    assert found.frozen_edges == ("edge:0",)


def test_of_two_opposite_edges_the_weaker_is_frozen(made: Made) -> None:
    back = made.edge(cause_type="motion:lamp", effect_type="motion:button", q_value=0.03)
    found = ledger(made, causes=made.causes(made.edge(), back))
    assert found.frozen_edges == ("edge:1",)
    (row,) = found.contradictions
    assert (row.fact_a, row.fact_b) == ("edge:0", "edge:1")


def test_no_claim_rests_on_a_frozen_edge_and_the_question_is_answered(made: Made) -> None:
    events = made.timeline()
    causes = made.causes(made.edge(cause_event="event:3", effect_event="event:0"))
    items = made.evidence(events=events, causes=causes)
    params = ReasonParams(engine="extractive", questions=("why", "consistent"))
    document = reason(items, causes, events, params, None, 10.0)
    why, consistent = document.answers
    assert why.answer["outcome"] != "answered"
    assert consistent.answer["consistent"] is False
    assert consistent.cites == ("event:3", "event:0")
    assert len(document.contradictions) == 1


def test_agreement_and_having_nothing_to_compare_are_different(made: Made) -> None:
    params = ReasonParams(engine="extractive", questions=("consistent",))
    events, causes = made.timeline(), made.no_causes()

    def outcome(**documents: object) -> object:
        items = made.evidence(events=events, causes=causes, **documents)
        (answer,) = reason(items, causes, events, params, None, 10.0).answers
        return answer.answer["outcome"]

    agreeing = {"listen": made.spoken((3, 4, "Three eggs.")), "texts": made.shown((3, 4, "3 eggs"))}
    assert outcome(**agreeing) == "nothing_found"
    assert outcome() == "not_enough_evidence"
