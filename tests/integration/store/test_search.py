"""Search by words and by likeness; chains of causes."""

import numpy as np
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from store_data import (
    WEIGHTS,
    Pipeline,
    causes_document,
    digest,
    edge,
    listen_document,
    rows,
    value,
    vectors,
)

from tasks.store import timeline
from tasks.store.embeddings import ensure_index, index_name
from tasks.store.ids import video_id_of
from tasks.store.publish import Embeddings, publish
from tasks.store.search import search


@pytest.mark.parametrize(
    ("words", "matched"),
    [
        ("country", "speech"),
        ("asking countries", "speech"),
        ('"your country"', "speech"),
        ("exit", "text"),
        ("lighthouse", "label"),
        ("bang heard", "event"),
        ("sign because bang", "answer"),
    ],
)
def test_words_are_found_as_they_stand_or_by_their_stem(
    published: Engine, words: str, matched: str
) -> None:
    best = search(published, words)[0]
    assert best.matched == matched
    assert best.score >= 0.5
    assert best.key == Pipeline.key
    assert best.end_s > best.start_s


def test_a_misheard_letter_is_forgiven_and_ranked_below(published: Engine) -> None:
    found = search(published, "ligthouse")
    assert [moment.snippet for moment in found] == ["lighthouse"]
    assert 0 < found[0].score < 0.5


@pytest.mark.parametrize("words", ["", "zebra", "'\"; drop table x; --", "& | !", "%", "\\u0000"])
def test_nothing_fits_nothing(published: Engine, words: str) -> None:
    assert search(published, words) == []


def test_a_word_that_must_be_absent_is(published: Engine) -> None:
    assert [moment.matched for moment in search(published, "country -zebra")] == ["speech"]
    assert all(moment.score < 0.5 for moment in search(published, "country -ask"))


def test_at_most_so_many(published: Engine) -> None:
    assert len(search(published, "bang", 1)) == 1
    assert search(published, "bang", 0) == []


def test_a_text_of_a_hundred_thousand_words_is_stored_and_found(
    pipeline: Pipeline, db: Engine
) -> None:
    long = listen_document("beginning").utterances[0]
    spoken = "beginning " + " ".join(f"w{i:06d}" for i in range(100_000))
    document = listen_document().model_copy(
        update={"utterances": (long.model_copy(update={"text": spoken}),)}
    )
    pipeline.publish(listen=document, events=None, causes=None, reason=None)
    assert value(db, "select length(text) from reel.utterances") == len(spoken)
    assert search(db, "beginning")[0].matched == "speech"


def test_the_nearest_pictures_of_the_same_model(pipeline: Pipeline, db: Engine) -> None:
    pipeline.publish()
    Pipeline(db, key="other.mp4").publish()
    first = value(
        db,
        "select fact_id from reel.embeddings where ordinal = 0 and video_id = :v",
        v=video_id_of("videos", Pipeline.key),
    )
    found = rows(db, "select * from reel.similar(cast(:id as uuid), 10)", id=first)
    assert [row["similarity"] for row in found] == pytest.approx([1.0, 0.6, 0.6])
    assert found[0]["key"] == "other.mp4"
    stored = value(db, "select vector::text from reel.embeddings where fact_id = :id", id=first)
    assert str(stored) == "[1,0,0,0]"
    assert found[0]["start_s"] == 2.0


def test_a_space_that_is_not_there_is_refused(published: Engine) -> None:
    for vector, revision in (("[1,0,0,0]", "other"), ("[1,0]", WEIGHTS)):
        with pytest.raises(DBAPIError, match="no pictures embedded"):
            rows(
                published,
                "select * from reel.similar(cast(:v as vector), :r, 3)",
                v=vector,
                r=revision,
            )


def test_two_models_of_one_width_are_never_compared(pipeline: Pipeline, db: Engine) -> None:
    pipeline.publish()
    request = Pipeline(db, key="other.mp4").request()
    publish(
        db,
        type(request)(
            run_id=request.run_id,
            video_id=request.video_id,
            sources=request.sources,
            embeddings=Embeddings(vectors(), digest("other weights")),
        ),
    )
    found = rows(
        db, "select * from reel.similar('[1,0,0,0]'::vector, cast(:r as text), 10)", r=WEIGHTS
    )
    assert {row["key"] for row in found} == {Pipeline.key}


@pytest.mark.parametrize(
    ("dimension", "kind"), [(4, "vector"), (2000, "vector"), (3072, "halfvec"), (5000, None)]
)
def test_each_width_gets_the_index_it_can_have(
    db: Engine, dimension: int, kind: str | None
) -> None:
    assert ensure_index(db, WEIGHTS, dimension) is (kind is not None)
    assert ensure_index(db, WEIGHTS, dimension) is (kind is not None)
    found = rows(
        db,
        "select indexdef from pg_indexes where indexname = :n",
        n=index_name(WEIGHTS, dimension),
    )
    assert [f"{kind}({dimension})" in str(row["indexdef"]) for row in found] == (
        [True] if kind else []
    )


def test_wide_vectors_are_found_through_their_index(pipeline: Pipeline, db: Engine) -> None:
    request = pipeline.request()
    random = np.random.default_rng(0).normal(size=(2, 3072)).astype(np.float32)
    wide = random / np.linalg.norm(random, axis=1, keepdims=True)
    publish(
        db,
        type(request)(
            run_id=request.run_id,
            video_id=request.video_id,
            sources=request.sources,
            embeddings=Embeddings(wide, WEIGHTS),
        ),
    )
    first = value(db, "select fact_id from reel.embeddings where ordinal = 0")
    [other] = rows(db, "select * from reel.similar(cast(:id as uuid), 5)", id=first)
    assert other["similarity"] == pytest.approx(float(wide[0] @ wide[1]), abs=1e-3)
    with db.connect() as connection:
        connection.execute(text("set enable_seqscan = off"))
        plan = connection.execute(
            text(
                "explain select fact_id from core.embeddings"
                f" where model_revision = '{WEIGHTS}' and dimension = 3072"
                " order by vector::halfvec(3072) <=> (select vector from core.embeddings limit 1)"
                "::halfvec(3072) limit 1"
            )
        ).scalars()
        assert any(index_name(WEIGHTS, 3072) in line for line in plan)


def test_a_chain_goes_from_root_to_last_effect(published: Engine) -> None:
    steps = timeline.chains(published, video_id_of("videos", Pipeline.key))
    assert [(step.step, step.depth, step.event) for step in steps] == [
        (0, 2, "speech:says"),
        (1, 2, "sound:bang"),
        (2, 2, "text:appears"),
    ]
    assert [step.confidence for step in steps] == [None, 0.8, 0.5]
    assert steps[0].description == "a man speaks"
    last = rows(published, "select chain_confidence from reel.causal_chains order by step")[-1]
    assert last["chain_confidence"] == pytest.approx(0.4)


def test_a_graph_with_a_ring_ends(pipeline: Pipeline, db: Engine) -> None:
    """The miner makes none, but a query must not run for ever if one is there."""
    ring = (
        edge(0, 1),
        edge(1, 2),
        edge(2, 2),
        edge(0, 1, cause_event="event:1", effect_event="event:0"),
    )
    pipeline.publish(causes=causes_document(ring), reason=None)
    assert rows(db, "select * from reel.causal_chains where step > 8") == []


def test_a_dense_graph_of_types_stays_bounded(pipeline: Pipeline, db: Engine) -> None:
    types = [f"sound:t{i:02d}" for i in range(14)]
    dense = tuple(
        edge(
            0, 1, cause_type=types[i], effect_type=types[j], cause_event=None, effect_event=None,
            confidence=round(0.9 - 0.01 * (j - i), 2),
        )
        for i in range(len(types))
        for j in range(i + 1, len(types))
    )  # fmt: skip
    pipeline.publish(causes=causes_document(dense), reason=None)
    listed = value(db, "select count(distinct chain_id) from reel.causal_chains")
    assert isinstance(listed, int)
    assert 0 < listed < 5000
    assert value(db, "select max(depth) from reel.causal_chains") == 8


def test_what_show_reads(published: Engine) -> None:
    video_id = video_id_of("videos", Pipeline.key)
    assert {row.kind for row in timeline.timeline(published, video_id)} == {
        "shot", "keyframe", "label", "sound", "utterance", "text", "action", "event",
    }  # fmt: skip
    assert [row.verdict for row in timeline.edges(published, video_id)] == [
        "causal",
        "causal",
        "insufficient_evidence",
    ]
    assert timeline.answers(published, video_id)[0].cites
    assert timeline.coverage(published, video_id)[0].skipped_s == 1.0
    assert [row.image_uri for row in timeline.keyframes(published, video_id)] == [
        "s3://a/0.jpg",
        None,
    ]
