"""The embedded stack as a user has it: started, started again, killed, and stopped.

One stack serves all of these tests; each leaves it healthy.
"""

import io
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import minio
import psutil
import psycopg
import pytest

from deploy.local import StackStatus, down, status, up
from deploy.local.health import object_client
from deploy.local.plan import read_plan
from deploy.local.records import load_secrets, load_stack
from engines.errors import ServiceUnavailableError
from tasks.settings import Settings

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.timeout(900)]

SERVERS = ("postgres", "objects", "prefect", "receiver", "worker-cpu")


def quiet(_line: str) -> None:
    """Report nothing."""


def pids(home: Path) -> dict[str, int]:
    return {name: record.pid for name, record in load_stack(home).services.items()}


def runs(process: psutil.Process) -> bool:
    """Whether it is there and more than an entry that nobody has collected yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def eventually(ask: Callable[[], Any], *, within_s: float = 240.0) -> Any:
    """The first true answer."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if found := ask():
            return found
        time.sleep(0.5)
    pytest.fail(f"nothing within {within_s:g} s")


@pytest.fixture
def settings(stack: StackStatus, stack_home: Path) -> Settings:
    """As any other process reads them."""
    return Settings(home=stack_home)


@pytest.fixture
def objects(settings: Settings) -> minio.Minio:
    """A plain client."""
    return object_client(read_plan(settings, settings.home))


def owner(settings: Settings) -> "psycopg.Connection[tuple[Any, ...]]":
    assert settings.database_url is not None
    return psycopg.connect(settings.database_url.get_secret_value(), autocommit=True)


def inbox(settings: Settings, key: str) -> list[tuple[Any, ...]]:
    with owner(settings) as connection:
        return connection.execute(
            "select inbox_id, state, reason, deliveries from core.event_inbox where key = %s",
            [key],
        ).fetchall()


def flow_runs(settings: Settings, key: str) -> list[dict[str, Any]]:
    assert settings.prefect_api_url is not None
    answer = httpx.post(f"{settings.prefect_api_url}/flow_runs/filter", json={}, timeout=20)
    found = [run for run in answer.json() if run["parameters"].get("key") == key]
    # The flow that an upload starts runs another one within, which has no row of its own.
    return [run for run in found if "inbox_id" in run["parameters"]]


def test_everything_is_healthy_and_settings_find_it(stack: StackStatus, settings: Settings) -> None:
    assert stack.healthy
    assert {s.name for s in stack.services if s.state == "running"} >= set(SERVERS)
    assert all(s.detail for s in stack.services if s.state == "not served")
    assert settings.prefect_api_url == stack.api_url
    assert settings.s3_endpoint == stack.s3_endpoint
    assert settings.receiver_url == stack.receiver_url
    assert httpx.get(f"{stack.ui_url}/", timeout=20).status_code == 200


def test_files_with_secrets_are_private(stack: StackStatus) -> None:
    home = stack.data_dir
    secrets = load_secrets(home)
    assert secrets is not None
    values = [v.encode() for v in secrets.model_dump(exclude={"ports"}).values()]
    for path in home.rglob("*"):
        inside = {"pg", "data"} & set(path.relative_to(home).parts)
        if inside or not path.is_file():
            continue
        if any(value in path.read_bytes() for value in values):
            assert path.stat().st_mode & 0o077 == 0, path


def test_nothing_listens_beyond_loopback(stack: StackStatus) -> None:
    found = set()
    for pid in pids(stack.data_dir).values():
        main = psutil.Process(pid)
        for process in (main, *main.children(recursive=True)):
            found |= {
                connection.laddr.ip
                for connection in process.net_connections("inet")
                if connection.status == psutil.CONN_LISTEN
            }
    assert found == {"127.0.0.1"}


def test_the_reader_reads_and_does_nothing_else(stack: StackStatus, settings: Settings) -> None:
    assert stack.dsn is not None
    with psycopg.connect(stack.dsn, autocommit=True) as reader:
        reader.execute("select count(*) from reel.event_inbox")
        reader.execute("set default_transaction_read_only = off")
        for forbidden in (
            "create table t (a int)",
            "create temporary table t (a int)",
            "create schema s",
            "select * from core.event_inbox",
            "delete from reel.event_inbox",
            "select lo_create(0)",
            "select lo_from_bytea(0, 'a')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(forbidden)
    for database in ("prefect", "postgres"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(stack.dsn.rpartition("/")[0] + f"/{database}")


def test_wrong_keys_open_no_bucket(stack: StackStatus) -> None:
    assert stack.s3_endpoint is not None
    host = stack.s3_endpoint.removeprefix("http://")
    for keys in ({}, {"access_key": "wrong", "secret_key": "wrongwrong"}):
        client = minio.Minio(host, secure=False, **keys)
        with pytest.raises(minio.error.S3Error):
            client.list_objects("videos").__next__()


def test_up_again_starts_nothing(stack: StackStatus, settings: Settings) -> None:
    before = pids(stack.data_dir)
    with ThreadPoolExecutor() as threads:
        both = [threads.submit(up, settings, quiet) for _ in range(2)]
        assert all(found.result().healthy for found in both)
    assert pids(stack.data_dir) == before


def test_killed_services_come_back_and_the_others_stay(
    stack: StackStatus, settings: Settings, objects: minio.Minio
) -> None:
    objects.put_object("reelgraph-artifacts", "kept", io.BytesIO(b"kept"), 4)
    with owner(settings) as connection:
        connection.execute("create table if not exists kept as select 7 as a")
    before = pids(stack.data_dir)
    killed = ("postgres", "objects", "receiver")
    for name in killed:
        os.kill(before[name], signal.SIGKILL)
    eventually(lambda: not status(settings).healthy)
    broken = {s.name for s in status(settings).services if s.state == "stopped"}
    assert broken == set(killed)
    assert up(settings, quiet).healthy
    after = pids(stack.data_dir)
    assert {name for name in after if after[name] != before[name]} == set(killed)
    assert Settings(home=stack.data_dir) == settings, "the addresses stay"
    assert objects.get_object("reelgraph-artifacts", "kept").data == b"kept"
    with owner(settings) as connection:
        assert connection.execute("select a from kept").fetchone() == (7,)
        connection.execute("drop table kept")


def test_a_process_without_record_is_not_doubled(stack: StackStatus, settings: Settings) -> None:
    """As after an ``up`` that was killed between starting a service and recording it."""
    path = stack.data_dir / "stack.json"
    content = json.loads(path.read_bytes())
    lost = {name: content["services"].pop(name) for name in ("postgres", "receiver")}
    path.write_text(json.dumps(content))
    assert up(settings, quiet).healthy
    for name, record in lost.items():
        assert not psutil.pid_exists(record["pid"]), name


def test_registering_again_doubles_nothing(stack: StackStatus, settings: Settings) -> None:
    def names(kind: str) -> list[str]:
        answer = httpx.post(f"{settings.prefect_api_url}/{kind}/filter", json={}, timeout=20)
        return sorted(item["name"] for item in answer.json())

    kinds = ("automations", "deployments", "work_pools")
    before = {kind: names(kind) for kind in kinds}
    assert len(before["automations"]) == 2
    assert set(before["deployments"]) >= {"process-video", "on-upload"}
    assert before["work_pools"] == ["cpu", "gpu", "llm"]
    path = stack.data_dir / "stack.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"registered": None}))
    lines: list[str] = []
    assert up(settings, lines.append).healthy
    assert "deployments: registered" in lines
    assert {kind: names(kind) for kind in kinds} == before


def test_a_taken_port_is_left_to_its_owner(stack: StackStatus, settings: Settings) -> None:
    record = load_stack(stack.data_dir).services["receiver"]
    os.kill(record.pid, signal.SIGKILL)
    port = int((settings.receiver_url or "").rpartition(":")[2])
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def bound() -> bool:
            try:
                stranger.bind(("127.0.0.1", port))
            except OSError:
                return False
            return True

        eventually(bound)
        stranger.listen()
        found = up(settings, quiet)
    assert found.healthy
    assert found.receiver_url != settings.receiver_url


def test_an_upload_announced_three_times_gives_one_run(
    settings: Settings, objects: minio.Minio
) -> None:
    """By the plain client; the run refuses the bytes, since they are no media."""
    key = "in/a b+c%20d 100% é🎬.mp4"
    made = objects.put_object("videos", key, io.BytesIO(b"not a video"), 11)
    row = eventually(lambda: inbox(settings, key))[0]
    current = Settings(home=settings.home)
    assert current.receiver_token is not None
    announcement = {
        "event_type": "create",
        "key": f"/buckets/videos/{key}",
        "message": {
            "new_entry": {
                "name": key.rpartition("/")[2],
                "attributes": {"file_size": 11, "md5": _base64_of_hex(made.etag)},
            }
        },
    }
    for _ in range(2):
        answer = httpx.post(
            f"{current.receiver_url}/notify/seaweedfs",
            json=announcement,
            headers={"Authorization": f"Bearer {current.receiver_token.get_secret_value()}"},
            timeout=20,
        )
        assert answer.json()["outcomes"] == ["duplicate"]
    ended = eventually(
        lambda: [r for r in inbox(settings, key) if r[1] not in {"queued", "running"}]
    )
    assert ended == [(row[0], "ignored", ended[0][2], 3)]
    assert ended[0][2].startswith("not_media")
    runs = flow_runs(settings, key)
    assert [run["parameters"]["inbox_id"] for run in runs] == [row[0]]
    assert runs[0]["parameters"]["bucket"] == "videos"


def test_an_upload_while_prefect_is_down_is_made_up_for(
    stack: StackStatus, settings: Settings, objects: minio.Minio
) -> None:
    os.kill(pids(stack.data_dir)["prefect"], signal.SIGKILL)
    objects.put_object("videos", "in/late.mp4", io.BytesIO(b"neither"), 7)
    eventually(lambda: inbox(settings, "in/late.mp4"))
    with owner(settings) as connection:
        # As if it had waited for two minutes: reconciling leaves fresh rows alone.
        connection.execute(
            "update core.event_inbox set changed_at = changed_at - interval '2 minutes' "
            "where key = 'in/late.mp4'"
        )
    assert up(settings, quiet).healthy
    eventually(lambda: inbox(settings, "in/late.mp4")[0][1] == "ignored")
    assert len(flow_runs(Settings(home=stack.data_dir), "in/late.mp4")) == 1


def test_named_servers_are_used_instead_of_our_own(stack: StackStatus, settings: Settings) -> None:
    """A second home, on the first one's database, object store and Prefect."""
    home = Path(tempfile.mkdtemp(prefix="reelgraph-test-"))
    second = Settings(
        home=home,
        database_url=settings.database_url,
        s3_endpoint=settings.s3_endpoint,
        s3_access_key=settings.s3_access_key,
        s3_secret_key=settings.s3_secret_key,
        prefect_api_url=settings.prefect_api_url,
    )
    before = pids(stack.data_dir)
    try:
        found = up(second, quiet)
        assert found.healthy
        external = {s.name for s in found.services if s.state == "external"}
        assert external == {"postgres", "objects", "prefect"}
        assert set(pids(home)) == {"receiver", "worker-cpu"}
    finally:
        down(second, quiet)
        shutil.rmtree(home)
    assert pids(stack.data_dir) == before
    assert status(settings).healthy


def test_a_named_server_that_is_away_is_one_clear_line(no_named_servers: None) -> None:
    home = Path(tempfile.mkdtemp(prefix="reelgraph-test-"))
    settings = Settings(home=home, prefect_api_url="http://127.0.0.1:9/api")
    try:
        with pytest.raises(ServiceUnavailableError, match=r"^prefect: the server named") as caught:
            up(settings, quiet)
        assert "\n" not in str(caught.value)
    finally:
        down(settings, quiet)
        shutil.rmtree(home)


def test_down_ends_everything_and_up_finds_the_data_again(
    stack: StackStatus, settings: Settings
) -> None:
    rows = inbox(settings, "in/late.mp4")
    processes = [psutil.Process(pid) for pid in pids(stack.data_dir).values()]
    processes += [child for p in list(processes) for child in p.children(recursive=True)]
    stopped = down(settings, quiet)
    assert not any(map(runs, processes))
    assert not stopped.healthy
    assert (stopped.dsn, stopped.api_url, stopped.s3_endpoint) == (None, None, None)
    assert down(settings, quiet) == stopped
    assert Settings(home=stack.data_dir).database_url is None
    assert up(Settings(home=stack.data_dir), quiet).healthy
    assert inbox(Settings(home=stack.data_dir), "in/late.mp4") == rows


def _base64_of_hex(digest: str | None) -> str:
    import base64

    return base64.b64encode(bytes.fromhex(digest or "")).decode()
