"""Lineage: from any fact down to bytes, weights, prompt, parameters, code and run."""

import pytest
from sqlalchemy import Engine
from store_data import DOCUMENTS, PROMPT_HASH, WEIGHTS, Pipeline, digest, rows

from engines.errors import UsageError
from tasks.store import lineage
from tasks.store.ids import video_id_of

KINDS = (
    "shots", "keyframes", "labels", "utterances", "words", "texts", "actions", "events",
    "causal_edges", "answers", "contradictions", "coverage", "embeddings",
)  # fmt: skip


@pytest.mark.parametrize("view", KINDS)
def test_every_kind_of_fact_reaches_the_bytes(published: Engine, view: str) -> None:
    [fact, *_] = rows(published, f"select fact_id, stage_run_id from reel.{view} order by fact_id")
    steps = lineage.why(published, fact["fact_id"])
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert (steps[0].kind, steps[0].id) == ("fact", str(fact["fact_id"]))
    assert (steps[-1].kind, steps[-1].hash) == ("content", digest("bytes"))
    assert [step.depth for step in steps] == sorted(step.depth for step in steps)
    by_kind = {step.kind: step for step in reversed(steps)}
    assert by_kind["stage_run"].id == str(fact["stage_run_id"])
    assert by_kind["model"].hash == WEIGHTS
    assert by_kind["code"].hash == "c1"
    assert by_kind["params"].detail == {"seed": 0}
    assert by_kind["object"].id == f"s3://videos/{Pipeline.key}"
    assert by_kind["run"].name == "done"
    assert by_kind["artifact"].hash is not None


def test_an_answer_reaches_its_prompt_and_what_it_cites(published: Engine) -> None:
    [answer] = rows(published, "select fact_id, cites from reel.answers")
    steps = lineage.why(published, answer["fact_id"])
    assert {step.hash for step in steps if step.kind == "prompt"} == {PROMPT_HASH}
    cited = {step.id for step in steps if step.kind == "evidence"}
    assert cited == {str(cite) for cite in answer["cites"]}
    # Everything that reason rests on, and nothing twice.
    stages = [step.name for step in steps if step.kind == "stage_run"]
    assert sorted(stages) == sorted(DOCUMENTS)


def test_identical_documents_of_other_bytes_are_not_mixed_up(
    pipeline: Pipeline, db: Engine
) -> None:
    """Two assets whose stages made byte-equal documents from different bytes."""
    pipeline.publish()
    other = Pipeline(db, key="other.mp4", content="other bytes", etag="e9")
    other.publish()
    for asset in (pipeline, other):
        [fact] = rows(
            db,
            "select fact_id from reel.answers where video_id = :v",
            v=video_id_of("videos", asset.key),
        )
        steps = lineage.why(db, fact["fact_id"])
        found = [step.hash for step in steps if step.kind == "content"]
        assert found == [digest(asset.content)]


def test_shared_results_name_the_run_that_made_and_the_one_that_published(
    pipeline: Pipeline, db: Engine
) -> None:
    pipeline.publish()
    Pipeline(db, key="other.mp4").publish()
    [fact] = rows(
        db,
        "select fact_id from reel.utterances where video_id = :v",
        v=video_id_of("videos", "other.mp4"),
    )
    found = [step.detail for step in lineage.why(db, fact["fact_id"]) if step.kind == "run"]
    assert sorted(run["published_these_facts"] for run in found) == [False, True]


def test_an_unknown_fact_is_named(published: Engine) -> None:
    with pytest.raises(UsageError, match="no published fact"):
        lineage.why(published, video_id_of("no", "such"))
