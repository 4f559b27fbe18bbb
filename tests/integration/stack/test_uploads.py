"""From notification to run: a real inbox, and a Prefect that can be away."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from flows import uploads as uploads_module
from flows.receiver import MAX_BODY_BYTES, make_app
from flows.uploads import Uploads
from tasks.objects.client import ObjectVersion
from tasks.objects.keys import ObjectRef
from tasks.settings import Settings
from tasks.store import inbox

pytestmark = pytest.mark.services

BEARER = {"Authorization": "Bearer token"}


@dataclass
class Prefect:
    """The four calls of the Prefect API that are used, with its idempotency keys."""

    away: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            message = "connection refused"
            raise httpx.ConnectError(message)
        body = json.loads(request.content) if request.content else None
        if request.url.path == "/api/events":
            self.events += body
            return httpx.Response(204)
        if request.url.path == "/api/deployments/name/on-upload/on-upload":
            return httpx.Response(200, json={"id": "d"})
        if request.url.path == "/api/deployments/d/create_flow_run":
            run = self.runs.setdefault(
                body["idempotency_key"],
                {
                    "id": f"run-{len(self.runs)}",
                    "parameters": body["parameters"],
                    "state": {"type": "SCHEDULED"},
                },
            )
            return httpx.Response(201, json=run)
        assert request.url.path == "/api/flow_runs/filter"
        wanted = body["flow_runs"]["state"]["type"]["any_"]
        found = [run for run in self.runs.values() if run["state"]["type"] in wanted]
        start = body["offset"]
        return httpx.Response(200, json=found[start : start + body["limit"]])

    def end_all(self, state: str) -> None:
        for run in self.runs.values():
            run["state"]["type"] = state


@dataclass
class Bucket:
    """A listing."""

    versions: list[ObjectVersion] = field(default_factory=list)

    def list(self, bucket: str, prefix: str = "") -> list[ObjectVersion]:
        return [v for v in self.versions if v.ref.bucket == bucket and v.ref.key.startswith(prefix)]


@pytest.fixture
def prefect() -> Prefect:
    return Prefect()


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def uploads(inbox_db: Engine, prefect: Prefect, bucket: Bucket, tmp_path: Path) -> Uploads:
    client = httpx.Client(
        base_url="http://prefect/api", transport=httpx.MockTransport(prefect.answer)
    )
    return Uploads(inbox_db, bucket, Settings(home=tmp_path), client)  # type: ignore[arg-type]


@pytest.fixture
def client(uploads: Uploads) -> TestClient:
    return TestClient(make_app(uploads, "token"))


def put(key: str = "in/a.mp4", *, size: int = 10, etag: str = "e1", **more: Any) -> dict[str, Any]:
    stored = {"key": key, "size": size, "eTag": etag, "sequencer": "17A1", **more}
    record = {
        "eventName": "s3:ObjectCreated:Put",
        "s3": {"bucket": {"name": "videos"}, "object": stored},
    }
    return {"EventName": "s3:ObjectCreated:Put", "Records": [record]}


def announce(client: TestClient, body: dict[str, Any]) -> list[str]:
    answer = client.post("/notify/minio", json=body, headers=BEARER)
    assert answer.status_code == 200
    outcomes: list[str] = answer.json()["outcomes"]
    return outcomes


def rows(db: Engine) -> list[tuple[str, str, str | None]]:
    with db.connect() as connection:
        found = connection.execute(
            text("select key, state, reason from core.event_inbox order by inbox_id")
        )
        return [(row.key, row.state, row.reason) for row in found]


def age(db: Engine, seconds: float) -> None:
    with db.begin() as connection:
        connection.execute(
            text("update core.event_inbox set changed_at = changed_at - make_interval(secs => :s)"),
            {"s": seconds},
        )


def test_an_object_announced_three_times_is_one_row_and_one_event(
    client: TestClient, prefect: Prefect, inbox_db: Engine
) -> None:
    outcomes = [announce(client, put("in%2Fa+b.mp4")) for _ in range(3)]
    assert outcomes == [["queued"], ["duplicate"], ["duplicate"]]
    assert rows(inbox_db) == [("in/a b.mp4", "queued", None)]
    event = prefect.events[0]
    assert len(prefect.events) == 1
    assert event["event"] == "s3.object.created"
    assert event["resource"] == {"prefect.resource.id": "s3.bucket.videos.object"}
    row = inbox.pending(inbox_db, 0)[0]
    assert event["payload"] == {
        "bucket": "videos",
        "key": "in/a b.mp4",
        "etag": "e1",
        "version_id": None,
        "inbox_id": row.inbox_id,
    }


def test_another_version_of_the_key_is_another_run(client: TestClient, prefect: Prefect) -> None:
    announce(client, put())
    assert announce(client, put(etag="e2")) == ["queued"]
    assert announce(client, put(etag="e2", versionId="v2")) == ["queued"]
    assert len({event["id"] for event in prefect.events}) == 3


@pytest.mark.parametrize(
    ("body", "outcome", "stored"),
    [
        (put(size=0), ["ignored: empty"], [("in/a.mp4", "ignored", "empty")]),
        (put("in%2Fnew%2F", size=0), ["ignored: a folder"], []),
        ({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "videos"}, [], []),
        (
            {
                "Records": [
                    {
                        "eventName": "s3:ObjectRemoved:DeleteMarkerCreated",
                        "s3": {"bucket": {"name": "videos"}, "object": {"key": "in/a.mp4"}},
                    }
                ]
            },
            ["ignored: removed"],
            [("in/a.mp4", "ignored", "removed")],
        ),
        (
            {
                "Records": [
                    {
                        "eventName": "s3:ObjectCreated:Put",
                        "s3": {"bucket": {"name": "other"}, "object": {"key": "a.mp4", "size": 1}},
                    }
                ]
            },
            ["ignored: not the watched bucket"],
            [],
        ),
    ],
)
def test_what_is_no_new_video_is_acknowledged_and_starts_nothing(
    client: TestClient,
    prefect: Prefect,
    inbox_db: Engine,
    body: dict[str, Any],
    outcome: list[str],
    stored: list[tuple[str, str, str]],
) -> None:
    assert announce(client, body) == outcome
    assert rows(inbox_db) == stored
    assert not prefect.events


def test_an_event_lost_while_prefect_is_away_is_made_up_for_once(
    client: TestClient, prefect: Prefect, uploads: Uploads, inbox_db: Engine
) -> None:
    prefect.away = True
    assert announce(client, put()) == ["queued"]
    prefect.away = False
    assert uploads.reconcile() == 0, "too fresh to be lost"
    age(inbox_db, 90)
    assert uploads.reconcile() == 1
    assert uploads.reconcile() == 0, "its run waits for a slot"
    assert len(prefect.runs) == 1
    run = next(iter(prefect.runs.values()))
    assert run["parameters"]["key"] == "in/a.mp4"


def test_runs_that_wait_fill_more_than_one_page(
    client: TestClient,
    prefect: Prefect,
    uploads: Uploads,
    inbox_db: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uploads_module, "PAGE", 2)
    for number in range(5):
        announce(client, put(etag=f"e{number}"))
    age(inbox_db, 90)
    assert uploads.reconcile() == 5
    assert uploads.reconcile() == 0
    assert len(prefect.runs) == 5


def test_what_kills_its_process_each_time_is_given_up(
    client: TestClient, prefect: Prefect, uploads: Uploads, inbox_db: Engine
) -> None:
    announce(client, put())
    age(inbox_db, 90)
    for _ in range(3):
        assert uploads.reconcile() == 1
        prefect.end_all("CRASHED")
        row = inbox.pending(inbox_db, 0)[0]
        assert inbox.claim(inbox_db, row.inbox_id)
        age(inbox_db, 200)
    assert uploads.reconcile() == 0
    reason = "3 runs ended without finishing it, the last one crashed"
    assert rows(inbox_db) == [("in/a.mp4", "dead", reason)]


def test_a_running_row_whose_run_lives_is_left_alone(
    client: TestClient, prefect: Prefect, uploads: Uploads, inbox_db: Engine
) -> None:
    announce(client, put())
    age(inbox_db, 90)
    uploads.reconcile()
    prefect.end_all("RUNNING")
    assert inbox.claim(inbox_db, inbox.pending(inbox_db, 0)[0].inbox_id)
    age(inbox_db, 9000)
    assert uploads.reconcile() == 0
    assert rows(inbox_db) == [("in/a.mp4", "running", None)]


def test_a_cancelled_run_is_not_started_again(
    client: TestClient, prefect: Prefect, uploads: Uploads, inbox_db: Engine
) -> None:
    announce(client, put())
    age(inbox_db, 90)
    uploads.reconcile()
    assert inbox.claim(inbox_db, inbox.pending(inbox_db, 0)[0].inbox_id)
    prefect.end_all("CANCELLED")
    age(inbox_db, 200)
    assert uploads.reconcile() == 0
    assert rows(inbox_db) == [("in/a.mp4", "ignored", "cancelled")]


def test_a_sweep_finds_what_no_event_announced(
    client: TestClient, prefect: Prefect, uploads: Uploads, bucket: Bucket, inbox_db: Engine
) -> None:
    announce(client, put("known.mp4"))
    long_ago = datetime.now(UTC) - timedelta(hours=1)

    def version(key: str, at: datetime) -> ObjectVersion:
        return ObjectVersion(ObjectRef("videos", key), "e1", None, 10, at)

    bucket.versions = [
        version("known.mp4", long_ago),
        version("lost.mp4", long_ago),
        version("on its way.mp4", datetime.now(UTC)),
    ]
    assert uploads.sweep() == 1
    assert uploads.sweep() == 0
    assert [key for key, _, _ in rows(inbox_db)] == ["known.mp4", "lost.mp4"]
    assert [event["payload"]["key"] for event in prefect.events] == ["known.mp4", "lost.mp4"]


def test_what_the_command_line_runs_itself_starts_no_second_run(
    client: TestClient, prefect: Prefect, inbox_db: Engine
) -> None:
    inbox.ignore_started_by_command(inbox_db, "videos", "in/a.mp4", "e1")
    assert announce(client, put()) == ["duplicate"]
    assert not prefect.events


def test_only_the_bearer_of_the_token_is_heard(client: TestClient, inbox_db: Engine) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "token"}):
        assert client.post("/notify/minio", json=put(), headers=headers).status_code == 401
    assert not rows(inbox_db)


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/notify/unknown", b"{}", 404),
        ("/notify/minio", b"no json", 400),
        ("/notify/minio", b"[]", 400),
        ("/notify/minio", b"{}", 400),
        ("/notify/seaweedfs", b"{}", 400),
        ("/notify/minio", json.dumps(put("k" * 1025)).encode(), 400),
        ("/notify/minio", b"x" * (MAX_BODY_BYTES + 1), 400),
    ],
)
def test_other_requests_are_refused(
    client: TestClient, path: str, content: bytes, status: int
) -> None:
    answer = client.post(path, content=content, headers=BEARER)
    assert answer.status_code == status
    assert answer.json()["error"]


def test_without_a_database_nothing_is_acknowledged(client: TestClient, inbox_db: Engine) -> None:
    with inbox_db.begin() as connection:
        connection.execute(text("alter table core.event_inbox rename to moved"))
    assert client.post("/notify/minio", json=put(), headers=BEARER).status_code == 503


def test_health_needs_no_token(client: TestClient) -> None:
    assert client.get("/health").json() == {"ok": True}
