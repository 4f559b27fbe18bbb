"""The public SQL contract: every view and column is there, for a reader who can write nothing."""

from collections.abc import Iterator

import psycopg
import pytest
from pg_cluster import Cluster
from psycopg import sql
from sqlalchemy import Engine
from store_data import rows, value

from tasks.store import migrate
from tasks.store.session import create_engine

IDENTITY = "fact_id, video_id, stage_run_id"
SPAN = "start_s, end_s, start_pts, end_pts, time_base_num, time_base_den"
SPEECH = "text, language, speaker, confidence, trust, no_speech_probability"
RUN = (
    "status, recipe_hash, code_version, engine, model_revision, device, started_at, finished_at,"
    " cached, degraded, prefect_flow_run_id, error_code, seconds, cpu_seconds, peak_rss_bytes"
)
CONTRACT = f"""
videos: video_id, sha256, bucket, key, version_id, size_bytes, container, duration_s, width,\
 height, frame_count, video_codec, audio_codec, verdict, decoded_fraction, first_seen_at,\
 published_at
shots: {IDENTITY}, {SPAN}, ordinal, start_frame, end_frame, method, score
keyframes: {IDENTITY}, {SPAN}, shot_ordinal, frame, pts, reason, energy, image_uri
labels: {IDENTITY}, {SPAN}, label, score, vocabulary, model
utterances: {IDENTITY}, {SPAN}, {SPEECH}
words: {IDENTITY}, {SPAN}, {SPEECH}
texts: {IDENTITY}, {SPAN}, text, confidence, box
actions: {IDENTITY}, {SPAN}, granularity, label, score, keyframe_pts, parent_fact_id, person_track
events: {IDENTITY}, {SPAN}, type, subject, description, source, evidence
causal_edges: {IDENTITY}, {SPAN}, scope, cause_type, effect_type, cause_event, effect_event,\
 lag_s, cooccurrences, strength, p_value, q_value, test, effective_n, counterfactual_delta,\
 delta_low, delta_high, confidence, placebo_rate, verdict
causal_chains: chain_id, step, depth, event, confidence
answers: {IDENTITY}, {SPAN}, task, kind, question, answer, claim, cites, verdict, engine, model,\
 prompt, prompt_hash, input_tokens, output_tokens, anchor_id
contradictions: {IDENTITY}, {SPAN}, fact_a, fact_b, kind, resolution
coverage: {IDENTITY}, stage, covered_s, skipped_s, trust, reason
runs: run_id, video_id, {RUN}
stage_runs: stage_run_id, run_id, video_id, {RUN}
artifacts: content_hash, uri, bytes, kind
lineage: input, output, stage_run
event_inbox: bucket, key, etag, version_id, sequencer, received_at, state, reason
"""
VIEWS = {
    line.split(": ")[0]: [name.strip() for name in line.split(": ")[1].split(",")]
    for line in CONTRACT.strip().splitlines()
}
TYPES = {
    ("events", "evidence"): "uuid[]",
    ("answers", "cites"): "uuid[]",
    ("answers", "answer"): "jsonb",
    ("shots", "start_s"): "double precision",
    ("shots", "start_pts"): "bigint",
    ("videos", "size_bytes"): "bigint",
    ("stage_runs", "peak_rss_bytes"): "bigint",
    ("actions", "keyframe_pts"): "bigint[]",
    ("runs", "started_at"): "timestamp with time zone",
}


@pytest.fixture(scope="module")
def own_database(cluster: Cluster, template: str) -> Iterator[str]:
    """Name of a database migrated for itself: rights on a database do not come by cloning."""
    del template
    with cluster.database() as name:
        migrate.upgrade(cluster.url(name))
        yield name


@pytest.mark.parametrize("view", VIEWS)
def test_reader_sees_every_column(reader: Engine, view: str) -> None:
    rows(reader, f"select {', '.join(VIEWS[view])} from reel.{view}")


@pytest.mark.parametrize(("place", "expected"), TYPES.items())
def test_types_that_queries_rely_on(
    published: Engine, place: tuple[str, str], expected: str
) -> None:
    found = value(
        published,
        "select format_type(atttypid, atttypmod) from pg_attribute"
        " where attrelid = to_regclass('reel.' || :view) and attname = :column",
        view=place[0],
        column=place[1],
    )
    assert found == expected


def test_every_view_has_rows_after_a_publication(reader: Engine) -> None:
    empty = [
        view
        for view in VIEWS
        if view != "event_inbox" and not value(reader, f"select count(*) from reel.{view}")
    ]
    assert empty == []


def test_reader_may_call_every_function(reader: Engine) -> None:
    fact_id = value(reader, "select fact_id from reel.utterances")
    assert rows(reader, "select * from reel.why(:id)", id=fact_id)
    assert rows(reader, "select * from reel.search('country', 5)")
    embedded = value(reader, "select fact_id from reel.embeddings where ordinal = 0")
    assert rows(reader, "select * from reel.similar(cast(:id as uuid), 5)", id=embedded)


def test_only_the_reader_and_the_owner_may(published: Engine) -> None:
    """A role that somebody else made sees nothing of ours."""
    found = rows(
        published,
        "select grantee, privilege_type from information_schema.table_privileges"
        " where table_schema in ('core', 'reel') and grantee <> current_user",
    )
    assert {(row["grantee"], row["privilege_type"]) for row in found} == {("reel_reader", "SELECT")}


WRITES = (
    "insert into reel.shots (fact_id) values (gen_random_uuid())",
    "update reel.shots set ordinal = 1",
    "delete from reel.event_inbox",
    "truncate core.shots",
    "select * from core.videos",
    "insert into core.contents values (repeat('a', 64), 1)",
    "create table reel.mine (a int)",
    "create table public.mine (a int)",
    "create temporary table mine (a int)",
    "create schema mine",
    "create view reel.mine as select 1",
    "select lo_create(0)",
    "select lo_from_bytea(0, 'x')",
    "drop view reel.shots",
    "alter role reel_reader superuser",
    "copy reel.shots to program 'true'",
)


@pytest.mark.parametrize("statement", WRITES)
def test_reader_cannot_write_even_when_it_says_it_may(
    cluster: Cluster, own_database: str, statement: str
) -> None:
    url = cluster.url(own_database, user="reel_reader", password="reader")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set default_transaction_read_only = off")
        connection.execute("set transaction_isolation = 'read committed'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(sql.SQL(statement))


def test_reader_begins_read_only_with_one_snapshot_and_a_limit(
    cluster: Cluster, own_database: str
) -> None:
    engine = create_engine(cluster.url(own_database, user="reel_reader", password="reader"))
    try:
        settings = {
            name: value(engine, f"show {name}")
            for name in ("transaction_read_only", "transaction_isolation", "statement_timeout")
        }
    finally:
        engine.dispose()
    assert settings == {
        "transaction_read_only": "on",
        "transaction_isolation": "repeatable read",
        "statement_timeout": "1min",
    }
