"""The embedded Postgres 18: made, started, given roles and databases.

The server runs in the foreground as a child of its own session, like every other service, so
``pg_ctl`` is not needed. It speaks TCP on loopback only, every connection with a SCRAM password.
"""

import os
import pwd
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from deploy.local.binaries import copy_install, postgres_install, verified
from deploy.local.processes import Service, end_all, plain_environment
from deploy.local.records import SecretsFile
from engines.errors import ServiceUnavailableError

MAJOR_VERSION = "18"
DATABASE = "reelgraph"
OWNER_ROLE = "reelgraph"
READER_ROLE = "reel_reader"
PREFECT_DATABASE = PREFECT_ROLE = "prefect"
EXTENSIONS = ("vector", "pg_trgm", "btree_gist")

# Sized for one worker on a small machine: about 100 MB in all when idle.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "80",
    "shared_buffers": "64MB",
    "effective_cache_size": "512MB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "max_wal_size": "512MB",
    "max_worker_processes": "4",
    "max_parallel_workers_per_gather": "1",
    "autovacuum_max_workers": "2",
    # Three reader processes are the default; a loopback stack gains nothing from them.
    "io_method": "sync",
    # Compiling a query costs more than any query here takes.
    "jit": "off",
    "huge_pages": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %u@%d ",
    "cluster_name": "reelgraph",
}


@dataclass(frozen=True)
class Cluster:
    """Where a data directory and its programs are, and who runs them."""

    home: Path
    data: Path
    install: Path
    account: pwd.struct_passwd | None

    @property
    def made(self) -> bool:
        """Whether initdb has run to its end."""
        return (self.data / "PG_VERSION").is_file()


def prepare_cluster(home: Path) -> Cluster:
    """Find the programs and the user who runs them; nothing is started.

    Raises:
        ServiceUnavailableError: as root, when the unprivileged user cannot reach ``home``.
    """
    install = postgres_install()
    account = _unprivileged_account() if os.geteuid() == 0 else None
    if account is not None:
        home.chmod(0o711)
        _require_reachable(home, account)
        install = copy_install(install, home)
    return Cluster(home=home, data=home / "pg", install=install, account=account)


def make_cluster(cluster: Cluster, password: str) -> None:
    """Run initdb; an interrupted earlier attempt is thrown away.

    Args:
        cluster: where.
        password: of the superuser ``postgres``.

    Raises:
        ServiceUnavailableError: initdb failed; quotes its last line.
    """
    unfinished = cluster.data.with_name("pg.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    password_file = cluster.home / "pg.password"
    password_file.touch(mode=0o600)
    password_file.write_text(password)
    if cluster.account is not None:
        for path in (unfinished, password_file):
            os.chown(path, cluster.account.pw_uid, cluster.account.pw_gid)
    try:
        done = _initdb(cluster, unfinished, password_file)
    finally:
        password_file.unlink()
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        telling = [line for line in lines if "error" in line.lower()] or lines
        msg = f"initdb failed: {telling[-1]}"
        raise ServiceUnavailableError(msg)
    unfinished.rename(cluster.data)


def postgres_service(cluster: Cluster, port: int, secrets: SecretsFile) -> Service:
    """How to start the server on an existing data directory.

    Raises:
        ServiceUnavailableError: the data directory belongs to another major version.
    """
    made_by = (cluster.data / "PG_VERSION").read_text(encoding="ascii").strip()
    if made_by != MAJOR_VERSION:
        msg = f"{cluster.data} was made by Postgres {made_by}, this is {MAJOR_VERSION}"
        raise ServiceUnavailableError(msg)
    program = verified("postgres", cluster.install / "bin" / "postgres")
    options = [f"{name}={value}" for name, value in {**SETTINGS, "port": port}.items()]
    arguments = [part for option in options for part in ("-c", option)]
    environment = plain_environment(cluster.home, "postgres")

    return Service(
        name="postgres",
        command=(str(program), "-D", str(cluster.data), *arguments),
        environment=environment,
        cwd=Path("/"),
        ready=lambda: server_problem(port, secrets.postgres_password),
        account=cluster.account,
        url=f"postgresql://127.0.0.1:{port}/{DATABASE}",
    )


def server_problem(port: int, superuser_password: str) -> str | None:
    """Why the server does not take connections; None when it does.

    Raises:
        ServiceUnavailableError: it does, but has another password: waiting is of no use.
    """
    try:
        with connect(port, "postgres", superuser_password, "postgres"):
            return None
    except psycopg.OperationalError as error:
        reason = str(error).strip().splitlines()[-1]
        if "password authentication failed" in reason:
            msg = f"Postgres on port {port} has another password than secrets.json: restore it"
            raise ServiceUnavailableError(msg) from error
        return reason


def clear_data_directory(data: Path) -> None:
    """End every process that still works in a data directory, and remove its lock file.

    For a server that no record names, or whose first process was killed: its other processes
    may linger, and a new server refuses to start beside them. It also refuses when the number
    in its lock file belongs to any process, even to a stranger.
    """
    strays = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(data):
                strays.append(process)
        except (psutil.Error, OSError):
            continue
    end_all(strays, within_s=20.0, how=signal.SIGINT)
    (data / "postmaster.pid").unlink(missing_ok=True)


def ensure_databases(port: int, secrets: SecretsFile) -> None:
    """Create roles, databases and extensions that are missing; set the passwords anew.

    The reader may connect to the one database and create nothing in it, not even a temporary
    table; what it may read is granted by the migrations.
    """
    roles = {
        OWNER_ROLE: secrets.owner_password,
        READER_ROLE: secrets.reader_password,
        PREFECT_ROLE: secrets.prefect_password,
    }
    with connect(port, "postgres", secrets.postgres_password, "postgres") as connection:
        for role, password in roles.items():
            known = connection.execute("select 1 from pg_roles where rolname = %s", [role])
            verb = "alter" if known.fetchone() else "create"
            statement = sql.SQL("{} role {} login password {}").format(
                sql.SQL(verb), sql.Identifier(role), sql.Literal(password)
            )
            connection.execute(statement)
        for database, owner in ((DATABASE, OWNER_ROLE), (PREFECT_DATABASE, PREFECT_ROLE)):
            _ensure_database(connection, database, owner)
        reader = {"role": sql.Identifier(READER_ROLE), "database": sql.Identifier(DATABASE)}
        connection.execute("revoke connect on database postgres from public")
        for command in (
            "grant connect on database {database} to {role}",
            "alter role {role} set default_transaction_read_only = on",
            "alter role {role} set statement_timeout = '120s'",
        ):
            connection.execute(sql.SQL(command).format(**reader))
    with connect(port, "postgres", secrets.postgres_password, DATABASE) as connection:
        for extension in EXTENSIONS:
            name = sql.Identifier(extension)
            connection.execute(sql.SQL("create extension if not exists {}").format(name))
        # Large objects would let a reader write; only a superuser can take that back.
        connection.execute(
            "revoke execute on function lo_create(oid), lo_creat(integer), "
            "lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea) from public"
        )


def connect(
    port: int, role: str, password: str, database: str
) -> psycopg.Connection[tuple[object, ...]]:
    """Connect over loopback with autocommit.

    Raises:
        psycopg.OperationalError: not there, or refused.
    """
    return psycopg.connect(
        host="127.0.0.1",
        port=port,
        user=role,
        password=password,
        dbname=database,
        connect_timeout=5,
        autocommit=True,
    )


def database_url(port: int, role: str, password: str, database: str = DATABASE) -> str:
    """``postgresql://role:password@127.0.0.1:port/database``."""
    return f"postgresql://{role}:{password}@127.0.0.1:{port}/{database}"


def _initdb(cluster: Cluster, data: Path, password_file: Path) -> subprocess.CompletedProcess[str]:
    account = cluster.account
    return subprocess.run(  # noqa: S603 - a verified program, no shell
        [
            str(verified("initdb", cluster.install / "bin" / "initdb")),
            f"--pgdata={data}",
            "--username=postgres",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ],
        cwd="/",
        env=plain_environment(cluster.home, "initdb"),
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _ensure_database(
    connection: psycopg.Connection[tuple[object, ...]], database: str, owner: str
) -> None:
    names = {"database": sql.Identifier(database), "owner": sql.Identifier(owner)}
    known = connection.execute("select 1 from pg_database where datname = %s", [database])
    if known.fetchone() is None:
        connection.execute(sql.SQL("create database {database} owner {owner}").format(**names))
    # Postgres lets every role connect and make temporary tables unless told otherwise.
    connection.execute(sql.SQL("revoke all on database {database} from public").format(**names))


def _unprivileged_account() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    msg = "Postgres does not run as root, and there is no user postgres or nobody to run it as"
    raise ServiceUnavailableError(msg)


def _require_reachable(home: Path, account: pwd.struct_passwd) -> None:
    for folder in (home, *home.parents):
        info = folder.stat()
        bit = 0o001
        if info.st_uid == account.pw_uid:
            bit = 0o100
        elif info.st_gid == account.pw_gid:
            bit = 0o010
        if not info.st_mode & bit:
            msg = (
                f"Postgres runs as {account.pw_name} when started by root, and {folder} is closed "
                f"to that user: set REELGRAPH_HOME to a directory elsewhere"
            )
            raise ServiceUnavailableError(msg)
