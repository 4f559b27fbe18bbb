"""The extractive engine: claims from rules, and honest words where there is too little."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from reason_facts import Made, with_changes

from engines.contracts.actions import Action, ActionsDocument
from engines.contracts.reasoning import Answer, ReasonDocument, ReasonParams
from engines.contracts.time import TimeSpan
from engines.reasoning.reason import reason
from engines.reasoning.rules import revision


def answers(
    made: Made, *questions: str, causes: object = None, events: object = None, **documents: object
) -> tuple[Answer, ...]:
    return document(made, *questions, causes=causes, events=events, **documents).answers


def document(
    made: Made, *questions: str, causes: object = None, events: object = None, **documents: object
) -> ReasonDocument:
    causes = causes if causes is not None else made.no_causes()
    events = events if events is not None else made.timeline()
    items = made.evidence(events=events, causes=causes, **documents)
    params = ReasonParams.model_validate(
        {"engine": "extractive", **({"questions": questions} if questions else {})}
    )
    return reason(items, causes, events, params, None, 10.0)  # type: ignore[arg-type]


def test_why_names_the_cause_with_its_numbers_and_hops(made: Made) -> None:
    (why,) = answers(made, "why", causes=made.causes(made.edge()))
    assert why.claim == (
        "The lamp changes at 2.50 s follows the button changes at 2.00 s: motion button is a "
        "tested cause of motion lamp (5 co-occurrences, lag 0.50 s, q = 0.004, confidence 0.90)."
    )
    assert why.cites == ("edge:0", "event:0", "event:1", "shot:0")
    assert [hop["hop"] for hop in why.answer["hops"]] == ["extract", "rule", "statement"]
    assert (why.verdict, why.engine, why.prompt) == ("accepted", "extractive", "rules/why@1")
    assert (why.span.start_s, why.span.end_s) == (2.0, 2.6)


def test_an_edge_between_instances_gives_its_own_events(made: Made) -> None:
    edges = (made.edge(), made.edge(cause_event="event:4", effect_event="event:5", confidence=0.5))
    edges = (edges[0].model_copy(update={"span": TimeSpan.from_seconds(0, 20)}), edges[1])
    (why,) = answers(made, "why", causes=made.causes(*edges))
    assert (why.span.start_s, why.span.end_s) == (9.0, 9.6), "of the instance, not of the type"
    assert (why.answer["cause_event"], why.answer["effect_event"]) == ("event:4", "event:5")
    assert why.cites[0] == "edge:0", "the edge between types is the surer one"


@pytest.mark.parametrize("kind", ["why", "next", "what_if"])
def test_too_little_evidence_and_nothing_found_are_different(made: Made, kind: str) -> None:
    (abstained,) = answers(made, kind)
    assert abstained.answer["outcome"] == "not_enough_evidence"
    assert "3 co-occurrences, at least 5 needed" in abstained.claim
    nothing = made.causes(verdict="no_edges", reason="6 pairs tested, none below q 0.05")
    (found,) = answers(made, kind, causes=nothing)
    assert found.answer["outcome"] == "nothing_found"
    assert "6 pairs tested" in found.claim
    assert abstained.verdict == found.verdict == "accepted"


def test_an_edge_that_is_not_causal_is_never_a_cause(made: Made) -> None:
    edges = made.causes(made.edge(verdict="not_causal"), verdict="no_edges", reason="none holds")
    (why,) = answers(made, "why", causes=edges)
    assert why.answer["outcome"] == "nothing_found"


def test_next_tells_what_is_still_open(made: Made) -> None:
    events = made.timeline((2, "motion:button"), (2.5, "motion:lamp"), (19.9, "motion:button"))
    (open_,) = answers(made, "next", causes=made.causes(made.edge()), events=events)
    assert open_.answer["open_event"] == "event:2"
    assert open_.answer["expected_s"] == 20.4
    assert open_.span.end_s <= 20.0, "the answer rests inside the video"
    (closed,) = answers(made, "next", causes=made.causes(made.edge()))
    assert closed.answer["outcome"] == "nothing_found"


def test_a_cause_whose_effect_failed_to_come_is_not_open(made: Made) -> None:
    events = made.timeline((2, "motion:button"), (2.5, "motion:lamp"), (10, "motion:button"))
    (closed,) = answers(made, "next", causes=made.causes(made.edge()), events=events)
    assert closed.answer["outcome"] == "nothing_found"


def test_what_if_needs_a_counterfactual(made: Made) -> None:
    (known,) = answers(made, "what_if", causes=made.causes(made.edge()))
    assert "loses 0.6 of motion lamp per occurrence (interval 0.4 to 0.8)" in known.claim
    unknown = made.edge(counterfactual_delta=None, delta_low=None, delta_high=None)
    unsure = made.edge(delta_low=-0.1)
    for edge in (unknown, unsure):
        (abstained,) = answers(made, "what_if", causes=made.causes(edge))
        assert "0 of 1 causal edges" in abstained.claim
        assert abstained.answer["outcome"] == "not_enough_evidence"
        assert abstained.cites == ("edge:0",)


def test_order_tells_what_overlaps(made: Made) -> None:
    events = made.timeline((1, "motion:a"), (1.05, "motion:b"), (3, "motion:c"), (4, "motion:a"))
    (order,) = answers(made, "order", events=events)
    assert [r["relation"] for r in order.answer["relations"]] == ["overlaps", "before"]
    assert order.cites == ("event:0", "event:1", "event:2")
    (one,) = answers(made, "order", events=made.timeline((1, "motion:a")))
    assert "1 dated kinds of event, at least 2 needed" in one.claim


def test_intent_is_what_is_said_or_what_an_action_is_tested_to_do(made: Made) -> None:
    spoken = made.spoken((1, 3, "We press it in order to see."), (4, 5, "It is red."))
    (said,) = answers(made, "intent", listen=spoken)
    assert said.cites == ("utterance:0",)
    (shown,) = answers(made, "intent", causes=made.causes(made.edge()))
    assert shown.answer["basis"] == "tested_effect"
    (none,) = answers(made, "intent", listen=made.spoken((4, 5, "It is red.")))
    assert none.answer["outcome"] == "nothing_found"
    (mute,) = answers(made, "intent")
    assert mute.answer["outcome"] == "not_enough_evidence"
    assert "0 of 0 utterances" in mute.claim


def test_summary_cites_what_every_sentence_says(made: Made) -> None:
    action = Action(
        span=TimeSpan.from_seconds(2, 3), granularity="meso", label="press button", score=0.8
    )
    stroke = action.model_copy(update={"granularity": "micro", "label": "right wrist up"})
    (summary,) = answers(
        made,
        "summary",
        causes=made.causes(made.edge()),
        listen=made.spoken((3, 4, "The lamp is on."), sounds=(made.label(2, 3, "music"),)),
        texts=made.shown((1, 2, "Lesson 1")),
        embed=made.embed(made.label(0, 8, "table lamp")),
        actions=ActionsDocument(coverage=made.coverage, actions=(action, stroke), model="made"),
    )
    about = {part["about"]: part["cites"] for part in summary.answer["sentences"]}
    assert about == {
        "extent": ["shot:0", "shot:1"],
        "actions": ["action:0"],
        "seen": ["label:0"],
        "heard": ["sound:0"],
        "utterance": ["utterance:0"],
        "text": ["text:0"],
        "causes": ["edge:0"],
    }
    assert set(summary.cites) == {ref for refs in about.values() for ref in refs}
    for words in ("20.0 s of video in 2 shots", "table lamp", '"The lamp is on."', '"Lesson 1"'):
        assert words in summary.claim


def test_a_video_without_facts_is_said_to_have_none(made: Made) -> None:
    events = made.timeline().model_copy(update={"events": ()})
    for answer in answers(made, shots=None, events=events):
        assert answer.answer["outcome"] == "not_enough_evidence", answer.claim
        assert answer.cites == ()


def test_chapters_follow_the_topic_and_cover_the_video(made: Made) -> None:
    spoken = made.spoken(
        (0.5, 3.5, "Bread dough needs flour, water and yeast"),
        (4.5, 7.5, "Knead the bread dough with more flour and water"),
        (8.5, 11.5, "Now the oven: heat and steam in the oven"),
        (12.5, 15.5, "The oven keeps heat and steam inside"),
    )
    chapters = answers(made, "chapters", shots=made.shots(4, 8, 12, 16), listen=spoken)
    assert [(c.span.start_s, c.span.end_s) for c in chapters] == [(0, 8), (8, 16)]
    assert {"bread", "dough"} & set(chapters[0].answer["terms"])
    assert {"oven", "heat", "steam"} & set(chapters[1].answer["terms"])
    assert "shot:0" in chapters[0].cites


def test_short_shots_are_no_chapters_and_many_are_joined(made: Made) -> None:
    quick = answers(made, "chapters", shots=made.shots(*(0.5 * n for n in range(1, 41))))
    assert all(c.span.duration_s >= 2.0 for c in quick)
    long = made.shots(*(60.0 * n for n in range(1, 121)))
    many = answers(made, "chapters", shots=long)
    assert 1 < len(many) <= 20
    assert many[0].span.start_s == 0
    assert many[-1].span.end_s == 7200
    for before, after in pairwise(many):
        assert before.span.end_s == after.span.start_s


def test_sound_alone_is_divided_at_pauses(made: Made) -> None:
    spoken = made.spoken(
        (1, 5, "Apples grow on trees"), (9, 14, "Engines burn fuel"), (14.5, 20, "Fuel is oil")
    )
    events = made.timeline().model_copy(update={"events": ()})
    chapters = answers(made, "chapters", shots=None, listen=spoken, events=events)
    assert [c.span.start_s for c in chapters] == [1.0, 9.0]


def test_every_answer_is_deterministic_cites_facts_and_lies_in_the_video(made: Made) -> None:
    documents = {
        "listen": made.spoken((3, 4, "The lamp is on."), (5, 6, "I want to see it.")),
        "texts": made.shown((1, 2, "Lesson 1")),
        "causes": made.causes(made.edge()),
    }
    first, second = document(made, **documents), document(made, **documents)
    assert first == second
    assert {a.answer_kind for a in first.answers} == {
        "summary", "chapters", "why", "next", "what_if", "order", "intent", "consistent",
    }  # fmt: skip
    for answer in first.answers:
        assert answer.cites or answer.answer["outcome"] != "answered"
        assert answer.span.start_s >= 0
        assert answer.span.end_s <= 20
        assert answer.prompt_hash == revision()
    assert first.degraded == ()
    assert first.reusable
    assert ReasonDocument.model_validate_json(first.model_dump_json()) == first


def wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


@pytest.mark.parametrize(
    "perturb",
    [
        wide,
        lambda text: text.replace(" ", "  ").replace(".", " ... "),
        lambda text: f"* {text} !!",
        lambda text: text.replace("telephone", "cell phone").replace("truck", "lorry"),
        lambda text: text.upper(),
        lambda text: "\u200b".join(text),
    ],
)
def test_perturbed_words_give_the_same_structured_answers(
    made: Made, perturb: Callable[[str], str]
) -> None:
    lines = (
        (1.0, 3.0, "I want to see the telephone in the truck."),
        (9.0, 11.0, "Take 3 apples from the truck."),
    )
    shown = ((9.5, 11.0, "4 apples"), (12.0, 14.0, "The telephone"))

    def structured(change: Callable[[str], str]) -> list[object]:
        made_of = {
            "listen": made.spoken(*with_changes(lines, change)),
            "texts": made.shown(*with_changes(shown, change)),
            "causes": made.causes(made.edge()),
        }
        return [(a.answer_kind, a.answer, a.cites) for a in document(made, **made_of).answers]

    assert structured(perturb) == structured(str)


def test_order_prefers_what_has_a_tested_cause_over_single_words(made: Made) -> None:
    said = [(0.1 * n, f"speech:said:word{n}") for n in range(20)]
    events = made.timeline(*said, (9, "motion:button"), (9.5, "motion:lamp"))
    (order,) = answers(made, "order", causes=made.causes(made.edge()), events=events)
    assert {"event:20", "event:21"} <= set(order.cites)
    assert len(order.cites) == 12
