"""Processes that outlive the command that started them, and are told apart from strangers."""

import hashlib
import json
import os
import pwd
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from deploy.local.records import ServiceRecord
from engines.errors import ServiceUnavailableError
from tasks.settings import process_environment

HOME_MARK = "REELGRAPH_STACK"
SERVICE_MARK = "REELGRAPH_SERVICE"
"""Every process of a stack, and what it starts itself, has these two in its environment."""

FIRST_PORT, LAST_PORT = 18_000, 32_000
"""Below Linux's ephemeral range: no outgoing connection takes a port that we remember."""

STOP_SIGNALS = {"postgres": signal.SIGINT}
"""SIGINT is Postgres's fast shutdown; at SIGTERM it would wait for its clients to leave."""
STOP_WITHIN_S = 20.0

PORT_PATIENCE_S = 3.0

_TICK_S = 0.05
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Service:
    """How to start one process and how to know that it works."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    ready: Callable[[], str | None]
    """None while it does its work, else why it does not; called again and again."""
    started: Callable[[], str | None] | None = None
    """The same, asked while starting; None to ask ``ready``."""
    ready_within_s: float = 120.0
    account: pwd.struct_passwd | None = None
    """Run as this user; None for the user who runs ``up``."""
    configuration: str = ""
    """Content of configuration files that it reads at start."""
    url: str | None = None
    inherited: tuple[str, ...] = field(default=("REELGRAPH_", "PREFECT_", "AWS_"))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that makes a restart necessary when it changes."""
        relevant = {k: v for k, v in self.environment.items() if k.startswith(self.inherited)}
        facts = [self.command, sorted(relevant.items()), self.configuration]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def python_environment(home: Path, service: str, **extra: str) -> dict[str, str]:
    """Environment for a Python service: the caller's, without anything of the user's Prefect.

    Args:
        home: the stack's directory.
        service: name of the service, for the marks.
        extra: variables on top.
    """
    mine = {
        HOME_MARK: str(home),
        SERVICE_MARK: service,
        "REELGRAPH_HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        **extra,
    }
    merged = process_environment(**mine)
    clean = {k: v for k, v in merged.items() if not k.startswith("PREFECT_") or k in extra}
    loopback = "127.0.0.1,localhost"
    for name in ("NO_PROXY", "no_proxy"):
        clean[name] = f"{clean[name]},{loopback}" if clean.get(name) else loopback
    return clean


def plain_environment(home: Path, service: str, **extra: str) -> dict[str, str]:
    """Environment for a server that needs nothing from the caller's."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(home),
        HOME_MARK: str(home),
        SERVICE_MARK: service,
        **extra,
    }


def born(pid: int) -> str | None:
    """Boot id and start tick of a living process; None when there is none.

    Start ticks do not move when the clock is set, which a creation time does.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    state, start_tick = fields[0], fields[19]
    if state in "ZX":
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}:{start_tick}"


def alive(record: ServiceRecord | None) -> bool:
    """Whether the very process of the record is still there."""
    if record is None:
        return False
    child = _children.get(record.pid)
    if child is not None and child.poll() is not None:
        del _children[record.pid]
    return born(record.pid) == record.born


def spawn(service: Service, log: Path) -> ServiceRecord:
    """Start a service in a session of its own, with its output appended to ``log``.

    Raises:
        ServiceUnavailableError: the program cannot be executed.
    """
    account = service.account
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as output:
            child = subprocess.Popen(  # noqa: S603 - a fixed program, no shell
                service.command,
                cwd=service.cwd,
                env=dict(service.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )
    except OSError as error:
        msg = f"{service.name} cannot be started: {error}"
        raise ServiceUnavailableError(msg) from error
    _children[child.pid] = child
    return ServiceRecord(
        pid=child.pid, born=born(child.pid) or "gone", fingerprint=service.fingerprint
    )


def wait_ready(service: Service, record: ServiceRecord, log: Path, log_start: int) -> None:
    """Wait until the service does its work.

    Args:
        service: what was started.
        record: its process.
        log: where its output goes.
        log_start: size of the log before the start; what is older is not quoted.

    Raises:
        ServiceUnavailableError: it died or is not ready in time; quotes its last words.
    """
    deadline = time.monotonic() + service.ready_within_s
    ask = service.started or service.ready
    while (reason := ask()) is not None:
        if not alive(record):
            msg = f"{service.name} ended while starting: {last_words(log, log_start)}"
            raise ServiceUnavailableError(msg)
        if time.monotonic() > deadline:
            words = last_words(log, log_start)
            msg = f"{service.name} not ready after {service.ready_within_s:g} s: {reason}; {words}"
            raise ServiceUnavailableError(msg)
        time.sleep(_TICK_S)


def last_words(log: Path, start: int = 0) -> str:
    """The line of a log that most likely says what went wrong, with the log's path."""
    try:
        with log.open("rb") as file:
            file.seek(max(start, log.stat().st_size - 65_536))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except FileNotFoundError:
        lines = []
    lines = [line for line in lines if any(c.isalnum() for c in line)]
    telling = [
        line
        for line in lines
        if any(word in line.lower() for word in ("error", "fatal", "panic", "no space", "denied"))
    ]
    words = (telling or lines or ["no output"])[-1]
    return f"{words[:300]} (log: {log})"


def stop(records: Mapping[str, ServiceRecord], also: Iterable[psutil.Process] = ()) -> None:
    """End services side by side: politely, and what has not gone in time, for certain.

    Args:
        records: by service name; those whose process is gone already are passed over.
        also: what the services have started and are waiting for.
    """
    living = {name: record for name, record in records.items() if alive(record)}
    for name, record in living.items():
        _send(record.pid, STOP_SIGNALS.get(name, signal.SIGTERM))
    for process in also:
        _send(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_WITHIN_S
    while any(map(alive, living.values())) and time.monotonic() < deadline:
        time.sleep(_TICK_S)
    for record in living.values():
        if alive(record):
            _send(record.pid, signal.SIGKILL)
    while any(map(alive, living.values())):
        time.sleep(_TICK_S)


def marked(home: Path, service: str | None = None) -> list[psutil.Process]:
    """Living processes of this stack by the marks in their environment, never the caller."""
    found = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            environment = process.environ()
        except (psutil.Error, OSError):
            continue
        if environment.get(HOME_MARK) != str(home):
            continue
        if service is None or environment.get(SERVICE_MARK) == service:
            found.append(process)
    return found


def end_all(
    processes: Iterable[psutil.Process],
    *,
    within_s: float,
    how: signal.Signals = signal.SIGTERM,
) -> int:
    """End processes that no record names; returns how many there were."""
    remaining = list(processes)
    for process in remaining:
        _send(process.pid, how)
    _, stubborn = psutil.wait_procs(remaining, timeout=within_s)
    for process in stubborn:
        _send(process.pid, signal.SIGKILL)
    psutil.wait_procs(stubborn, timeout=5.0)
    return len(remaining)


def choose_port(preferred: int | None, taken: Iterable[int], *, above: int = 0) -> int:
    """A port of 127.0.0.1 that nothing listens on: the preferred one when it is free.

    Args:
        preferred: the one that was used before.
        taken: ports that are promised to others.
        above: the port so much higher must be free as well; 0 for no such port.

    Raises:
        ServiceUnavailableError: none found in 200 attempts.
    """
    avoid = set(taken)
    # A process that was killed a moment ago may hold its port a little longer than its life.
    deadline = time.monotonic() + PORT_PATIENCE_S
    while preferred and preferred not in avoid and time.monotonic() < deadline:
        if _free(preferred) and _free(preferred + above):
            return preferred
        time.sleep(_TICK_S)
    span = LAST_PORT - FIRST_PORT
    random_ports = (FIRST_PORT + secrets.randbelow(span) for _ in range(200))
    for port in random_ports:
        if port not in avoid and _free(port) and _free(port + above):
            return port
    msg = f"no free port on 127.0.0.1 between {FIRST_PORT} and {LAST_PORT}"
    raise ServiceUnavailableError(msg)


def _free(port: int) -> bool:
    with socket.socket() as probe:
        # Without this a port in TIME_WAIT after our own restart would look taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _send(pid: int, how: signal.Signals) -> None:
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return
