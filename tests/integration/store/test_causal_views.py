"""Chains read back: evidence beside every step, examples of an edge, abstention as such."""

import pytest
from sqlalchemy import Engine
from store_data import Pipeline, causes_document, edge, rows, value

from tasks.store import graphs
from tasks.store.ids import video_id_of

TYPES = ("speech:says", "sound:bang", "text:appears")


def between_types(cause: int, effect: int, **more: object):
    return edge(cause, effect, cause_event=None, effect_event=None, **more)


def test_one_query_goes_from_an_effect_to_its_root_with_evidence(reader: Engine) -> None:
    steps = rows(
        reader, "select * from reel.causal_chains where effect = 'text:appears' order by step"
    )
    assert [step["event"] for step in steps] == list(TYPES)
    assert {step["root"] for step in steps} == {"speech:says"}
    assert all(step["path"] == list(TYPES) for step in steps)
    assert {step["verdict"] for step in steps} == {"causal"}
    root, *links = steps
    assert root["test"] is root["p_value"] is root["effective_n"] is None
    for step in links:
        assert (step["test"], step["p_value"], step["q_value"]) == ("rcit", 0.01, 0.02)
        assert (step["effective_n"], step["cooccurrences"]) == (20.0, 7)
        assert (step["delta_low"], step["counterfactual_delta"], step["delta_high"]) == (
            0.1, 0.3, 0.5,
        )  # fmt: skip
    for step in steps:
        assert step["evidence"] == [step["event_id"]]
        assert step["at_s"] == [step["start_s"]]
        assert step["evidence_videos"] == [step["video_id"]]
        assert step["pictures"] == ["s3://a/0.jpg"]
    said = [step["words"] for step in steps]
    assert said == [["ask not what your country can do for you"], None, None]


def test_edges_between_types_show_the_occurrences_behind_them(
    pipeline: Pipeline, db: Engine
) -> None:
    found = (
        between_types(0, 1),
        edge(0, 1, confidence=0.7),
        between_types(1, 2, verdict="not_causal", confidence=0.1),
    )
    pipeline.publish(causes=causes_document(found), reason=None)
    [example] = rows(db, "select * from reel.causal_examples")
    assert (example["cause_description"], example["effect_description"]) == (
        "a man speaks",
        "a bang is heard",
    )
    assert (example["cause_start_s"], example["effect_start_s"]) == (1.0, 6.0)
    steps = rows(
        db,
        "select * from reel.causal_chains where event_id is null and depth > 0 order by step",
    )
    assert [(s["event"], s["at_s"]) for s in steps] == [
        ("speech:says", [1.0]),
        ("sound:bang", [6.0]),
    ]
    graph = graphs.causal_graph(db, video_id_of("videos", pipeline.key))
    assert [(n.type, n.events, n.at_s) for n in graph.nodes] == [
        ("sound:bang", 1, 6.0),
        ("speech:says", 1, 1.0),
    ]
    assert [n.image_uri for n in graph.nodes] == ["s3://a/0.jpg"] * 2
    assert [(e.cause, e.effect, e.confidence) for e in graph.edges] == [
        ("speech:says", "sound:bang", 0.8)
    ]


def test_an_abstention_is_a_row_of_its_own_only_where_nothing_was_found(
    pipeline: Pipeline, db: Engine
) -> None:
    too_little = {"verdict": "insufficient_evidence", "confidence": None}
    found = (
        between_types(0, 1),
        between_types(1, 1, **too_little, reason="unused: it has a cause", effective_n=1),
        between_types(0, 2, **too_little, reason="3 of 5 needed", effective_n=3.0),
        between_types(1, 2, **too_little, reason="4 of 5 needed", effective_n=4.0),
    )
    pipeline.publish(causes=causes_document(found), reason=None)
    abstained = rows(db, "select * from reel.causal_chains where verdict <> 'causal'")
    assert [(a["event"], a["depth"], a["step"], a["reason"]) for a in abstained] == [
        ("text:appears", 0, 0, "4 of 5 needed")
    ]
    assert (abstained[0]["effect"], abstained[0]["path"]) == ("text:appears", ["text:appears"])
    assert {abstained[0][name] for name in ("confidence", "event_id", "evidence")} == {None}
    graph = graphs.causal_graph(db, video_id_of("videos", pipeline.key))
    assert graph.num_abstentions == 3
    assert graph.abstentions[0].reason == "4 of 5 needed"


def test_an_edge_names_its_abstention_with_the_number_that_was_missing(
    pipeline: Pipeline, db: Engine
) -> None:
    pipeline.publish(causes=causes_document(()), reason=None)
    [step] = rows(db, "select event, reason, effective_n from reel.causal_chains")
    assert step == {"event": "*", "reason": "3 events, at least 12 needed", "effective_n": 3.0}


def test_a_corpus_is_no_video(published: Engine) -> None:
    assert value(published, "select count(*) from reel.corpora") == 0
    assert value(published, "select count(*) from reel.videos") == 1


@pytest.mark.parametrize("view", ["corpora", "causal_examples"])
def test_the_reader_sees_the_new_views(reader: Engine, view: str) -> None:
    rows(reader, f"select * from reel.{view}")
