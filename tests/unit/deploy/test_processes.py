"""Processes are started apart from us, recognised again, and ended for certain."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.local import processes
from deploy.local.processes import (
    FIRST_PORT,
    LAST_PORT,
    Service,
    alive,
    born,
    choose_port,
    end_all,
    last_words,
    marked,
    plain_environment,
    python_environment,
    spawn,
    stop,
    wait_ready,
)
from deploy.local.records import ServiceRecord
from engines.errors import ServiceUnavailableError

Make = Callable[..., Service]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A service that runs a line of Python."""

    def make_service(code: str, *, ready: Callable[[], str | None] = lambda: None) -> Service:
        return Service(
            name="example",
            command=(sys.executable, "-c", code),
            environment=plain_environment(tmp_path, "example"),
            cwd=tmp_path,
            ready=ready,
            ready_within_s=20.0,
        )

    return make_service


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "example.log"


@pytest.fixture
def started(make: Make, log: Path) -> Iterator[ServiceRecord]:
    record = spawn(make("import time; time.sleep(60)"), log)
    yield record
    stop({"example": record})


def test_a_started_process_leads_a_session_of_its_own(started: ServiceRecord, log: Path) -> None:
    assert alive(started)
    assert os.getsid(started.pid) == started.pid
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_same_pid_of_another_birth_is_a_stranger(started: ServiceRecord) -> None:
    stranger = started.model_copy(update={"born": "another-boot:1"})
    assert not alive(stranger)
    stop({"example": stranger})
    assert alive(started)


def test_a_dead_process_is_not_alive_even_before_it_is_reaped(make: Make, log: Path) -> None:
    record = spawn(make("pass"), log)
    deadline = time.monotonic() + 20
    while born(record.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Path(f"/proc/{record.pid}").exists()
    assert not alive(record)
    assert not Path(f"/proc/{record.pid}").exists()


def test_no_process_has_no_birth() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    assert born(child.pid) is None
    assert born(os.getpid()) is not None


def test_what_ignores_a_polite_signal_is_killed(
    make: Make, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_WITHIN_S", 0.2)
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('ignoring', flush=True); time.sleep(60)"
    )
    service = make(code, ready=lambda: None if b"ignoring" in log.read_bytes() else "not yet")
    record = spawn(service, log)
    wait_ready(service, record, log, 0)
    stop({"example": record})
    assert not alive(record)


def test_a_service_that_dies_says_why(make: Make, log: Path) -> None:
    service = make(
        "raise SystemExit('cannot open data: No space left on device')", ready=lambda: "no"
    )
    record = spawn(service, log)
    with pytest.raises(ServiceUnavailableError, match=r"ended while starting: cannot open data"):
        wait_ready(service, record, log, 0)


def test_a_service_that_is_never_ready_says_what_is_missing(make: Make, log: Path) -> None:
    service = make("import time; time.sleep(60)", ready=lambda: "the door is shut")
    hasty = Service(**{**vars(service), "ready_within_s": 0.1})
    record = spawn(hasty, log)
    try:
        with pytest.raises(ServiceUnavailableError, match=r"not ready after 0\.1 s: the door is"):
            wait_ready(hasty, record, log, 0)
    finally:
        stop({"example": record})


def test_a_missing_program_is_named(make: Make, log: Path) -> None:
    service = Service(**{**vars(make("")), "command": ("/nonexistent/program",)})
    with pytest.raises(ServiceUnavailableError, match="/nonexistent/program"):
        spawn(service, log)


def test_marks_find_what_no_record_names(
    started: ServiceRecord, tmp_path: Path, make: Make, log: Path
) -> None:
    assert [p.pid for p in marked(tmp_path)] == [started.pid]
    assert [p.pid for p in marked(tmp_path, "example")] == [started.pid]
    assert not marked(tmp_path, "another")
    assert not marked(tmp_path / "another")
    assert end_all(marked(tmp_path), within_s=10) == 1
    assert not alive(started)


def test_last_words_prefer_the_line_with_the_error(log: Path) -> None:
    log.write_text("old error\n")
    start = log.stat().st_size
    log.write_text("old error\nstarting\nFATAL: no space left\n\n  bye\n----\n")
    assert last_words(log, start).startswith("FATAL: no space left")
    log.write_text("old error\nstarting\n")
    assert last_words(log, start).startswith("starting")
    assert last_words(log.with_name("missing")).startswith("no output")


def test_a_free_port_is_kept_and_a_taken_one_is_not() -> None:
    port = choose_port(None, ())
    assert FIRST_PORT <= port < LAST_PORT
    assert choose_port(port, ()) == port
    assert choose_port(port, {port}) != port
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        assert choose_port(port, ()) != port
        assert choose_port(port - 100, (), above=100) != port - 100


def test_nothing_of_the_users_prefect_leaks_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_KEY", "secret")
    monkeypatch.setenv("PREFECT_API_URL", "https://cloud.example/api")
    monkeypatch.setenv("REELGRAPH_MODELS", "/models")
    monkeypatch.setenv("NO_PROXY", "example.org")
    found = python_environment(tmp_path, "worker", PREFECT_API_URL="http://127.0.0.1:1/api")
    prefect = {name: value for name, value in found.items() if name.startswith("PREFECT_")}
    assert prefect == {"PREFECT_API_URL": "http://127.0.0.1:1/api"}
    assert found["REELGRAPH_HOME"] == str(tmp_path)
    assert found["REELGRAPH_MODELS"] == "/models"
    assert found["NO_PROXY"] == "example.org,127.0.0.1,localhost"


def test_a_fingerprint_changes_with_what_needs_a_restart(make: Make) -> None:
    service = make("pass")

    def changed(**fields: object) -> str:
        return Service(**{**vars(service), **fields}).fingerprint

    assert changed() == service.fingerprint
    assert changed(command=("other",)) != service.fingerprint
    assert changed(configuration="other") != service.fingerprint
    assert changed(environment={"REELGRAPH_MODELS": "x"}) != service.fingerprint
    assert changed(environment={**service.environment, "TERM": "x"}) == service.fingerprint


def test_postgres_is_stopped_by_its_own_signal() -> None:
    assert processes.STOP_SIGNALS["postgres"] is signal.SIGINT
