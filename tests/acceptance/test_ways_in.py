"""Other ways to start a run, and what readers may do."""

import json
import time
from uuid import UUID

import httpx
import psycopg
import pytest
from live_stack import wait_for

VIEWS = [
    "videos",
    "shots",
    "keyframes",
    "labels",
    "utterances",
    "words",
    "texts",
    "actions",
    "events",
    "causal_edges",
    "causal_chains",
    "answers",
    "contradictions",
    "coverage",
    "runs",
    "stage_runs",
    "artifacts",
    "lineage",
    "event_inbox",
]


@pytest.fixture(scope="module")
def bucket(stack):
    return stack.settings.videos_bucket


def test_a_run_from_the_ui_does_the_same(stack, bucket, clips_dir):
    """The UI posts to this address with the values of its form."""
    minio = stack.minio()
    minio.make_bucket("ui-not-watched")
    minio.fput_object("ui-not-watched", "in/cuts.mp4", str(clips_dir / "cuts.mp4"))
    api = stack.settings.prefect_api_url
    found = httpx.get(f"{api}/deployments/name/process-video/process-video").json()
    form = found["parameter_openapi_schema"]["properties"]
    assert {"bucket", "key", "version_id", "params"} <= set(form)
    started = httpx.post(
        f"{api}/deployments/{found['id']}/create_flow_run",
        json={"parameters": {"bucket": "ui-not-watched", "key": "in/cuts.mp4"}},
    ).json()
    run = finished(stack, started["id"])
    assert run["status"] == "done"
    by_command = stack.run(str(clips_dir / "cuts.mp4"))
    assert set(by_command["computed_stages"]) <= {"fetch", "publish"}

    def artifacts():
        found = httpx.post(
            f"{api}/artifacts/filter",
            json={"artifacts": {"flow_run_id": {"any_": [started["id"]]}}, "limit": 50},
        ).json()
        return {a["type"] for a in found} >= {"progress", "table", "markdown", "image"}

    wait_for("artifacts in the UI", artifacts)


def test_a_wrong_parameter_is_refused_at_submission(stack):
    api = stack.settings.prefect_api_url
    found = httpx.get(f"{api}/deployments/name/process-video/process-video").json()
    refused = httpx.post(
        f"{api}/deployments/{found['id']}/create_flow_run",
        json={"parameters": {"bucket": "b", "key": "k", "params": {"causes": {"alpha": "ten"}}}},
    )
    assert refused.status_code in {409, 422}
    assert "alpha" in refused.text


def test_an_uploaded_object_is_processed_by_itself_and_once(stack, bucket, clips_dir):
    key = "in/a b+c%20d 100% é🎬.mp4"
    stack.minio().fput_object(bucket, key, str(clips_dir / "cuts.mp4"))
    row = wait_for(
        "the run of the upload", lambda: inbox(stack, key, "state in ('done', 'dead', 'ignored')")
    )[0]
    assert row["state"] == "done", row
    # The same object announced again, as a store that delivers at least once does.
    url, token = stack.settings.receiver_url, stack.settings.receiver_token
    assert token
    body = {
        "Records": [
            {
                "eventName": "s3:ObjectCreated:Put",
                "s3": {
                    "bucket": {"name": bucket},
                    "object": {
                        "key": "in%2Fa+b%2Bc%2520d+100%25+%C3%A9%F0%9F%8E%AC.mp4",
                        "size": (clips_dir / "cuts.mp4").stat().st_size,
                        "eTag": row["etag"],
                    },
                },
            }
        ]
    }
    for _ in range(3):
        answer = httpx.post(
            f"{url}/notify/minio",
            json=body,
            headers={"Authorization": f"Bearer {token.get_secret_value()}"},
        )
        assert answer.status_code == 200, answer.text
    time.sleep(5)
    assert len(inbox(stack, key, "true")) == 1
    runs = stack.sql(
        "select r.status from reel.runs r join reel.videos v using (video_id)"
        f" where v.key = '{key}'"
    )
    assert runs == [{"status": "done"}]


def test_an_object_put_by_the_command_line_starts_no_second_run(stack, clips_dir):
    outcome = stack.run(str(clips_dir / "talk.mp4"))
    time.sleep(3)
    runs = stack.sql(
        "select prefect_flow_run_id from reel.runs r join reel.videos v using (video_id)"
        f" where v.video_id = '{outcome['video_id']}' and r.status = 'running'"
    )
    assert runs == []
    (state,) = stack.sql("select distinct state from reel.event_inbox where key like '%/talk.mp4'")
    assert state == {"state": "ignored"}


def test_the_reader_reads_every_view_and_writes_nothing(stack):
    dsn = stack.call("dsn").stdout.strip()
    with psycopg.connect(dsn, autocommit=True) as connection:
        for view in VIEWS:
            connection.execute(f"select * from reel.{view} limit 1".encode())
        for statement in (
            "delete from reel.videos",
            "insert into reel.artifacts default values",
            "create table reel.mine (a int)",
            "create table public.mine (a int)",
            "select * from core.videos",
            "truncate core.videos",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(statement.encode())
    done = stack.call("sql", "drop schema reel cascade")
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1


def test_secrets_are_in_no_parameter_and_no_log(stack):
    settings = stack.settings
    secrets = [
        settings.s3_secret_key,
        settings.receiver_token,
        settings.database_url,
    ]
    api = settings.prefect_api_url
    runs = httpx.post(f"{api}/flow_runs/filter", json={"limit": 100}).text
    logs = "".join(path.read_text(errors="replace") for path in (stack.home / "logs").iterdir())
    for secret in secrets:
        assert secret
        assert secret.get_secret_value() not in runs
        assert secret.get_secret_value() not in logs


def inbox(stack, key, condition):
    return stack.sql(
        f"select state, reason, etag from reel.event_inbox where key = '{key}' and {condition}"
    )


def finished(stack, flow_run_id):
    assert UUID(flow_run_id)
    return wait_for(
        "the end of the run",
        lambda: stack.sql(
            "select status, error_code from reel.runs"
            f" where prefect_flow_run_id = '{flow_run_id}' and finished_at is not null"
        ),
    )[0]


def test_status_is_json_for_a_program(stack):
    found = json.loads(stack.call("status", "--json").stdout)
    assert found["healthy"]
    assert found["dsn"].startswith("postgresql://")
    assert found["ui_url"]
