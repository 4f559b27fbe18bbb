"""The same again computes nothing; a change computes what it reaches; a kill loses nothing."""

import os
import signal
import subprocess

import psutil
import pytest
from live_stack import REELGRAPH, wait_for
from psycopg import connect

FACTS = [
    "shots",
    "keyframes",
    "labels",
    "utterances",
    "words",
    "texts",
    "actions",
    "events",
    "causal_edges",
    "answers",
    "contradictions",
    "coverage",
    "embeddings",
]


@pytest.fixture(scope="module")
def clip(clips_dir):
    return clips_dir / "talk.mp4"


@pytest.fixture(scope="module")
def first(stack, clip):
    outcome = stack.run(str(clip))
    assert outcome["status"] == "done", outcome
    return outcome


def fact_ids(stack, video_id):
    query = " union all ".join(
        f"select '{view}' as kind, fact_id from reel.{view} where video_id = '{video_id}'"
        for view in FACTS
    )
    return {(row["kind"], row["fact_id"]) for row in stack.sql(query)}


def test_the_same_source_again_computes_nothing(stack, clip, first):
    before = fact_ids(stack, first["video_id"])
    again = stack.run(str(clip))
    assert again["status"] == "done"
    assert again["computed_stages"] == []
    assert again["video_id"] == first["video_id"]
    assert fact_ids(stack, first["video_id"]) == before
    assert before


def test_the_same_bytes_under_another_key_are_another_asset(stack, clip, first):
    minio = stack.minio()
    minio.make_bucket("elsewhere-not-watched")
    minio.fput_object("elsewhere-not-watched", "copy.mp4", str(clip))
    other = stack.run("s3://elsewhere-not-watched/copy.mp4")
    assert other["status"] == "done"
    assert other["sha256"] == first["sha256"]
    assert other["video_id"] != first["video_id"]
    # The bytes must be read to be known, and rows of its own written; nothing is computed.
    assert set(other["computed_stages"]) == {"fetch", "publish"}
    assert other["counts"] == first["counts"]
    assert not fact_ids(stack, other["video_id"]) & fact_ids(stack, first["video_id"])


def test_a_changed_parameter_of_reason_reaches_reason_and_publish(stack, clip, first):
    changed = stack.run(str(clip), "--set", 'reason.questions=["why", "summary"]')
    assert set(changed["computed_stages"]) == {"reason", "publish"}
    assert {c["kind"] for c in stack.sql(
        f"select distinct kind from reel.answers where video_id = '{first['video_id']}'"
    )} == {"why", "summary"}  # fmt: skip
    back = stack.run(str(clip))
    assert back["computed_stages"] == ["publish"]
    assert back["counts"] == first["counts"]


def test_a_lost_blob_is_computed_again(stack, clip, first):
    (artifact,) = stack.sql(
        "select a.uri from reel.artifacts a join reel.lineage l on l.output = a.content_hash"
        " join reel.stage_runs s on s.stage_run_id = l.stage_run"
        f" where s.stage = 'reason' and s.run_id = '{first['run_id']}' limit 1"
    )
    bucket, _, key = artifact["uri"].removeprefix("s3://").partition("/")
    stack.minio().remove_object(bucket, key)
    again = stack.run(str(clip))
    assert again["status"] == "done"
    assert "reason" in again["computed_stages"]
    assert again["counts"] == first["counts"]


def test_a_killed_flow_process_resumes_and_doubles_nothing(stack, clips_dir, tmp_path):
    clip = tmp_path / "late_audio.mp4"
    clip.write_bytes((clips_dir / "late_audio.mp4").read_bytes())
    with subprocess.Popen(
        [REELGRAPH, "run", "--json", str(clip)],
        env=stack.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        running = wait_for(
            "a stage after the decoding",
            lambda: stack.sql(
                "select run_id, prefect_flow_run_id from reel.stage_runs"
                " where stage in ('listen', 'embed') and status = 'running'"
            ),
            every_s=0.1,
        )
        kill_flow(stack, running[0]["prefect_flow_run_id"])
        out, err = command.communicate(timeout=120)
    assert command.returncode == 1, err
    assert "crashed" in out
    resumed = stack.run(str(clip))
    assert resumed["status"] == "done", resumed
    assert {"fetch", "probe", "sample"} <= set(resumed["cached_stages"])
    computed = stack.sql(
        "select s.stage, count(*) as n from reel.stage_runs s"
        " join reel.videos v on v.video_id = s.video_id"
        " where v.key like '%/late_audio.mp4' and s.status = 'done' group by s.stage"
    )
    assert {row["stage"]: row["n"] for row in computed if row["n"] != 1} == {}
    statuses = stack.sql(
        "select r.status from reel.runs r join reel.videos v using (video_id)"
        " where v.key like '%/late_audio.mp4' order by r.started_at"
    )
    assert [s["status"] for s in statuses] == ["crashed", "done"]
    assert stack.run(str(clip))["computed_stages"] == []


def kill_flow(stack, flow_run_id):
    """SIGKILL the process of a flow run and its children, as a lost node would."""
    for process in psutil.process_iter(["environ", "cmdline"]):
        environ = process.info["environ"] or {}
        if environ.get("PREFECT__FLOW_RUN_ID") == flow_run_id:
            os.kill(process.pid, signal.SIGKILL)


def test_nothing_stays_open_in_a_transaction(stack):
    url = stack.settings.database_url
    assert url
    with connect(url.get_secret_value()) as connection:
        idle = connection.execute(
            "select count(*) from pg_stat_activity where state = 'idle in transaction'"
            " and now() - state_change > interval '5 s'"
        ).fetchone()
    assert idle == (0,)
