"""``up``, ``down`` and ``status`` of the embedded stack.

``up`` brings the services from whatever state they are in to a working one: what runs and fits
is left alone, what is missing is started, what has other settings by now is started anew. One
``up`` or ``down`` works at a time; a second one waits for it.
"""

import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from minio.error import MinioException

from deploy.local.health import examine
from deploy.local.plan import make_plan, read_plan
from deploy.local.postgres import clear_data_directory
from deploy.local.processes import alive, end_all, marked, stop
from deploy.local.records import (
    Report,
    StackFile,
    StackStatus,
    load_stack,
    save_stack,
)
from deploy.local.start import Starter
from engines.errors import ServiceUnavailableError
from tasks.settings import Settings

MIN_FREE_BYTES = 512 * 2**20
DOWN_ORDER = (("worker-", "receiver"), ("prefect",), ("objects",), ("postgres",))
"""Prefixes of service names: first who uses the others, last who is used."""


def up(settings: Settings, report: Report) -> StackStatus:
    """Start what is not running, migrate the database, register the deployments.

    Args:
        settings: services that they name themselves are used and not started.
        report: called with one line for each step.

    Returns:
        The state after that, every service healthy.

    Raises:
        ServiceUnavailableError: one line that says which service, why, and where its log is.
    """
    home = settings.home.resolve()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_space(home)
        with _exclusive(home, report):
            plan = make_plan(settings, home)
            Starter(plan, report).run()
            return examine(plan, load_stack(home))
    except (OSError, psycopg.Error, MinioException, subprocess.SubprocessError) as error:
        words = " ".join(str(error).split())[:300]
        msg = f"the stack in {home} cannot be started: {words}"
        raise ServiceUnavailableError(msg) from error


def down(settings: Settings, report: Report) -> StackStatus:
    """End every process of the stack; the data stays.

    Flow runs in progress are ended too; their work resumes with the next run.

    Args:
        settings: names the home directory.
        report: called with one line for each service that was ended.
    """
    home = settings.home.resolve()
    if home.is_dir():
        with _exclusive(home, report):
            _stop_all(home, report)
    return status(settings)


def status(settings: Settings) -> StackStatus:
    """Look at every service without changing anything."""
    home = settings.home.resolve()
    plan = read_plan(settings, home)
    return examine(plan, load_stack(home))


def _stop_all(home: Path, report: Report) -> None:
    stack = load_stack(home)
    for tier in DOWN_ORDER:
        living = {n: r for n, r in stack.services.items() if n.startswith(tier) and alive(r)}
        for name in living:
            report(f"{name}: stopping")
        # A worker waits for its flow runs. Told now, these can still tell Prefect that they end.
        own = {record.pid for record in living.values()}
        stop(living, also=[p for n in living for p in marked(home, n) if p.pid not in own])
    leftovers = end_all(marked(home), within_s=10.0)
    if leftovers:
        report(f"{leftovers} more processes of this stack: ended")
    if (home / "pg").is_dir():
        clear_data_directory(home / "pg")
    save_stack(home, StackFile(registered=stack.registered))


def _require_space(home: Path) -> None:
    free = shutil.disk_usage(home).free
    if free < MIN_FREE_BYTES:
        msg = (
            f"{home} has {free / 2**20:.0f} MiB free, the stack needs {MIN_FREE_BYTES >> 20} MiB: "
            f"free some space or set REELGRAPH_HOME"
        )
        raise ServiceUnavailableError(msg)


@contextmanager
def _exclusive(home: Path, report: Report) -> Iterator[None]:
    """Hold the stack's lock; it goes with this process, however that ends."""
    with (home / "stack.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another up or down of this stack is at work: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
