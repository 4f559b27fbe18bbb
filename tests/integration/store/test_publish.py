"""Publishing: all or nothing, only what changed, and never over something newer."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from store_data import (
    DOCUMENTS,
    Pipeline,
    causes_document,
    digest,
    events_document,
    listen_document,
    rows,
    span,
    value,
)

from engines.contracts.causal import EventsDocument
from engines.contracts.media import Shot, ShotsDocument
from engines.contracts.time import TimeSpan
from engines.errors import EngineError, UsageError
from tasks.store import runs, timeline
from tasks.store.publish import publish
from tasks.store.rows import FACT_TABLES


def snapshot(engine: Engine) -> dict[str, set[tuple[object, ...]]]:
    """Every fact row with its physical address, which any rewrite would change."""
    with engine.connect() as connection:
        return {
            table.name: {
                tuple(row)
                for row in connection.execute(
                    text(f"select ctid::text, xmin::text, fact_id from core.{table.name}")
                )
            }
            for table in FACT_TABLES
        }


def test_every_fact_arrives_with_its_producer(pipeline: Pipeline, db: Engine) -> None:
    result = pipeline.publish()
    assert result.status == "published"
    assert set(result.replaced) == set(DOCUMENTS)
    [video] = rows(db, "select * from reel.videos")
    assert video["size_bytes"] == 3_221_225_472
    assert (video["sha256"], video["verdict"]) == (digest("bytes"), "partial")
    assert video["decoded_fraction"] == pytest.approx(0.9)
    assert (video["width"], video["frame_count"], video["audio_codec"]) == (640, 225, "aac")
    counts = timeline.counts(db, video["video_id"])
    assert counts.model_dump() == {
        "shots": 2, "keyframes": 2, "utterances": 1, "texts": 1, "labels": 2, "actions": 2,
        "events": 3, "causal_edges": 3, "answers": 1,
    }  # fmt: skip
    made_by = {row["stage"] for row in rows(
        db, "select s.stage from reel.words w join reel.stage_runs s using (stage_run_id)"
    )}  # fmt: skip
    assert made_by == {"listen"}
    assert value(db, "select count(*) from reel.coverage") == len(DOCUMENTS)
    assert value(db, "select array_agg(flags) from reel.texts") == [["cleaned:text"]]
    placed = rows(db, "select box, attention_entropy from reel.labels order by box is null")
    assert [row["attention_entropy"] for row in placed] == [0.75, None]
    assert placed[0]["box"] == {"x": 0.25, "y": 0.5, "w": 0.25, "h": 0.125}
    assert placed[1]["box"] is None


def test_references_become_the_ids_of_the_facts(pipeline: Pipeline, db: Engine) -> None:
    pipeline.publish()
    fact = {
        (row["kind"], row["summary"]): row["fact_id"]
        for row in rows(db, "select * from reel.facts")
    }
    speech = fact["utterance", "ask not what your country can do for you"]
    [said] = rows(db, "select evidence from reel.events where source = 'speech'")
    assert said["evidence"] == [speech, fact["word", "not"]]
    [heard] = rows(db, "select evidence from reel.events where source = 'sound'")
    assert heard["evidence"] == [fact["sound", "bang"]]
    [answer] = rows(db, "select cites, answer from reel.answers")
    assert answer["cites"] == [speech, fact["edge", "sound:bang -> text:appears: causal"]]
    assert answer["answer"] == {"cause": "a bang", "steps": [1, 2]}
    [inner] = rows(db, "select * from reel.actions where granularity = 'micro'")
    assert inner["parent_fact_id"] == fact["action", "cook"]
    assert inner["keyframe_pts"] == [90_000, 2_268_000_000]


def test_the_same_again_writes_no_fact(pipeline: Pipeline, db: Engine) -> None:
    pipeline.publish()
    before = snapshot(db)
    published_at = value(db, "select published_at from reel.videos")
    result = pipeline.publish()
    assert (result.status, result.num_rows, result.replaced) == ("unchanged", 0, ())
    assert snapshot(db) == before
    assert value(db, "select published_at from reel.videos") == published_at
    assert value(db, "select count(*) from reel.runs where current") == 1


def test_the_same_bytes_under_another_key_share_results_not_facts(
    pipeline: Pipeline, db: Engine
) -> None:
    pipeline.publish()
    Pipeline(db, key="other.mp4").publish()
    assert value(db, "select count(distinct stage_run_id) from reel.utterances") == 1
    assert value(db, "select count(distinct fact_id) from reel.utterances") == 2
    computed = rows(db, "select video_id, cached, computed_stages, cached_stages from reel.runs")
    assert sorted((row["computed_stages"], row["cached_stages"]) for row in computed) == [
        (0, len(DOCUMENTS)),
        (len(DOCUMENTS), 0),
    ]


def test_only_the_changed_stage_is_replaced(pipeline: Pipeline, db: Engine) -> None:
    pipeline.publish()
    before = snapshot(db)
    shots = DOCUMENTS["shots"]
    assert isinstance(shots, ShotsDocument)
    # Same facts for those who cite shots (nobody does here), one shot more.
    longer = shots.model_copy(
        update={
            "shots": (
                *shots.shots,
                Shot(span=span(10, 11), start_frame=250, end_frame=275, method="cut", score=0.5),
            )
        }
    )
    result = pipeline.publish(shots=longer, reason=DOCUMENTS["reason"])
    after = snapshot(db)
    assert "shots" in result.replaced
    assert "listen" in result.unchanged
    assert after["utterances"] == before["utterances"]
    assert not after["shots"] & before["shots"]
    assert len(after["shots"]) == 3


def test_facts_that_cite_a_changed_stage_are_written_anew(pipeline: Pipeline, db: Engine) -> None:
    """Even with the same cache key of their own: a cited fact's id is another one."""
    first = pipeline.request()
    publish(db, first)
    moved = pipeline.request()
    changed = pipeline.stage(moved.run_id, "listen", listen_document("something else"), {
        "content": digest("bytes")
    })  # fmt: skip
    sources = tuple(
        replace(
            source,
            cache_key=changed.cache_key,
            stage_run_id=changed.stage_run_id,
            document=listen_document("something else"),
        )
        if source.stage == "listen"
        else source
        for source in moved.sources
    )
    result = publish(db, replace(moved, sources=sources))
    assert set(result.replaced) == {"listen", "events", "reason"}
    cited = rows(db, "select unnest(evidence) as fact_id from reel.events")
    known = {row["fact_id"] for row in rows(db, "select fact_id from reel.facts")}
    assert {row["fact_id"] for row in cited} <= known


def test_a_stage_that_failed_this_time_leaves_no_old_facts(pipeline: Pipeline, db: Engine) -> None:
    pipeline.publish()
    result = pipeline.publish(reason=None, causes=None)
    assert result.removed == ("causes", "reason")
    assert value(db, "select count(*) from reel.answers") == 0
    assert value(db, "select count(*) from reel.coverage where stage = 'reason'") == 0


def test_an_abstention_without_a_pair_has_its_row_and_number(
    pipeline: Pipeline, db: Engine
) -> None:
    pipeline.publish(causes=causes_document(()), reason=None)
    [edge] = rows(db, "select * from reel.causal_edges")
    assert edge["verdict"] == "insufficient_evidence"
    assert edge["effective_n"] == 3.0
    assert "at least 12" in str(edge["reason"])
    [step] = rows(db, "select * from reel.causal_chains")
    assert (step["depth"], step["verdict"], step["confidence"]) == (
        0, "insufficient_evidence", None,
    )  # fmt: skip
    assert step["reason"] == edge["reason"]


def test_a_citation_of_nothing_publishes_nothing(pipeline: Pipeline, db: Engine) -> None:
    events = events_document()
    bad = events.events[0].model_copy(update={"evidence": ("utterance:7",)})
    with pytest.raises(EngineError, match="utterance:7"):
        pipeline.publish(
            events=EventsDocument(coverage=events.coverage, events=(bad,)), causes=None, reason=None
        )
    assert value(db, "select count(*) from reel.facts") == 0


def test_a_row_that_postgres_refuses_rolls_everything_back(pipeline: Pipeline, db: Engine) -> None:
    pipeline.publish()
    before = snapshot(db)
    huge = TimeSpan(start_pts=0, end_pts=2**63, time_base_num=1, time_base_den=90_000)
    shots = DOCUMENTS["shots"]
    assert isinstance(shots, ShotsDocument)
    bad = shots.model_copy(update={"shots": (shots.shots[0].model_copy(update={"span": huge}),)})
    with pytest.raises(EngineError):
        pipeline.publish(shots=bad)
    assert snapshot(db) == before


def test_ticks_beyond_32_bits_and_seven_hours_keep_exact(pipeline: Pipeline, db: Engine) -> None:
    shots = DOCUMENTS["shots"]
    assert isinstance(shots, ShotsDocument)
    late = TimeSpan(
        start_pts=2_268_000_000, end_pts=2**53, time_base_num=1001, time_base_den=90_000_000
    )
    changed = shots.model_copy(
        update={
            "shots": (shots.shots[0].model_copy(update={"span": late, "end_frame": 5_000_000_000}),)
        }
    )
    pipeline.publish(shots=changed)
    [shot] = rows(db, "select * from reel.shots")
    assert (shot["start_pts"], shot["end_frame"]) == (2_268_000_000, 5_000_000_000)
    assert shot["start_s"] == late.start_s


def test_a_newer_run_that_published_is_not_undone(pipeline: Pipeline, db: Engine) -> None:
    old = pipeline.request()
    pipeline.publish(listen=listen_document("the newer words"))
    result = publish(db, old)
    assert result.status == "superseded"
    assert "begun later" in result.reason
    assert value(db, "select text from reel.utterances") == "the newer words"


def test_other_bytes_seen_meanwhile_supersede_a_run(pipeline: Pipeline, db: Engine) -> None:
    old = pipeline.request()
    newer = datetime(2026, 2, 1, tzinfo=UTC)
    Pipeline(db, content="other bytes", etag="e2", modified_at=newer).start()
    result = publish(db, old)
    assert (result.status, "other bytes" in result.reason) == ("superseded", True)
    assert value(db, "select count(*) from reel.facts") == 0


def test_a_slow_reader_of_old_bytes_does_not_supersede(pipeline: Pipeline, db: Engine) -> None:
    current = pipeline.request()
    older = datetime(2025, 1, 1, tzinfo=UTC)
    Pipeline(db, content="old bytes", etag="e0", modified_at=older).start()
    assert publish(db, current).status == "published"


def test_a_run_that_was_given_up_cannot_publish(pipeline: Pipeline, db: Engine) -> None:
    late = pipeline.request()
    other, video_id = pipeline.start()
    assert runs.close_abandoned(db, video_id, keep=other, silent_s=0.0) == 1
    assert publish(db, late).status == "superseded"
    assert value(db, "select count(*) from reel.facts") == 0


def test_a_run_of_another_video_is_refused(pipeline: Pipeline, db: Engine) -> None:
    request = pipeline.request()
    with pytest.raises(UsageError, match="no run"):
        publish(db, replace(request, video_id=UUID(int=1)))


def test_two_at_once_leave_one_whole_state(pipeline: Pipeline, db: Engine) -> None:
    """Two runs publish different words twenty times; a reader never sees a mixture."""
    seen: list[tuple[object, ...]] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            [row] = rows(
                db,
                "select (select string_agg(text, ' ' order by ordinal) from reel.words) as words,"
                " (select string_agg(text, '|') from reel.utterances) as spoken,"
                " (select count(*) from reel.coverage) as coverage",
            )
            seen.append((row["words"], row["spoken"], row["coverage"]))
            time.sleep(0.005)

    pipeline.publish()
    with ThreadPoolExecutor(3) as pool:
        reading = pool.submit(read)
        for i in range(5):
            requests = [
                pipeline.request(listen=listen_document(f"words of {name} {i}"))
                for name in ("one", "two")
            ]
            for done in [pool.submit(publish, db, request) for request in requests]:
                assert done.result().status in {"published", "superseded"}
        stop.set()
        reading.result()
    assert len({spoken for _, spoken, _ in seen}) > 1
    assert all(words == spoken and n == len(DOCUMENTS) for words, spoken, n in seen)
