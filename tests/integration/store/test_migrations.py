"""Migrations: up, down, no drift, several at once, and a database ahead of the code."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from pg_cluster import Cluster
from psycopg import sql

from engines.errors import AccessDeniedError, ServiceUnavailableError, UsageError
from tasks.store import migrate
from tasks.store.fact_tables import shots
from tasks.store.session import create_engine
from tasks.store.tables import metadata

MIGRATION_LOCK = 0x7265656C


def objects(url: str) -> list[tuple[str, str]]:
    """Tables, views, indexes and functions of our schemas."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select n.nspname, c.relname from pg_class c join pg_namespace n"
            " on n.oid = c.relnamespace where n.nspname in ('core', 'reel')"
            " union select n.nspname, p.proname || '/' || p.pronargs from pg_proc p"
            " join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'reel' order by 1, 2"
        ).fetchall()


def test_up_down_up_gives_the_same_without_drift(empty_database: str) -> None:
    migrate.upgrade(empty_database)
    first = objects(empty_database)
    migrate.check(empty_database)
    migrate.check_drift(empty_database)
    migrate.downgrade(empty_database, "-1")
    assert objects(empty_database) != first
    with pytest.raises(ServiceUnavailableError, match="migrate it first"):
        migrate.check(empty_database)
    migrate.upgrade(empty_database)
    assert objects(empty_database) == first
    migrate.downgrade(empty_database, "base")
    assert {name for _, name in objects(empty_database)} == {
        "alembic_version",
        "alembic_version_pkc",
    }
    migrate.upgrade(empty_database)
    assert objects(empty_database) == first
    migrate.check_drift(empty_database)


def test_drift_is_seen(empty_database: str) -> None:
    migrate.upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("alter table core.runs add column surprise text")
    with pytest.raises(Exception, match="surprise"):
        migrate.check_drift(empty_database)


def test_nothing_is_said_on_stdout(empty_database: str, capsys: pytest.CaptureFixture[str]) -> None:
    migrate.upgrade(empty_database)
    migrate.check_drift(empty_database)
    assert capsys.readouterr().out == ""


def test_a_fresh_database_has_no_revision(empty_database: str) -> None:
    assert migrate.current(empty_database) is None
    with pytest.raises(ServiceUnavailableError, match="revision none"):
        migrate.check(empty_database)


def test_four_processes_upgrade_at_once(empty_database: str) -> None:
    code = "import sys; from tasks.store.migrate import upgrade; upgrade(sys.argv[1])"
    # From the root directory: nothing may depend on where it is called.
    running = [
        subprocess.Popen([sys.executable, "-c", code, empty_database], cwd="/") for _ in range(4)
    ]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0, 0]
    migrate.check(empty_database)
    with psycopg.connect(empty_database) as connection:
        found = connection.execute("select version_num from core.alembic_version").fetchall()
    assert len(found) == 1


def test_two_threads_upgrade_at_once(empty_database: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(migrate.upgrade, empty_database) for _ in range(2)]:
            done.result()
    migrate.check(empty_database)


def test_a_killed_migrator_frees_the_lock(empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as dead, ThreadPoolExecutor(1) as pool:
        dead.execute("select pg_advisory_lock(%s)", (MIGRATION_LOCK,))
        waiting = pool.submit(migrate.upgrade, empty_database)
        with psycopg.connect(empty_database, autocommit=True) as other:
            for _ in range(200):
                blocked = other.execute(
                    "select count(*) from pg_locks where locktype = 'advisory' and not granted"
                ).fetchone()
                if blocked == (1,):
                    break
                time.sleep(0.05)
            assert not waiting.done()
            other.execute("select pg_terminate_backend(%s)", (dead.info.backend_pid,))
        waiting.result(timeout=60)
    migrate.check(empty_database)


def test_a_database_ahead_of_the_code_is_refused(empty_database: str) -> None:
    migrate.upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("update core.alembic_version set version_num = '9999'")
    for action in (migrate.check, migrate.upgrade):
        with pytest.raises(UsageError, match="ahead of this code: it is at revision 9999"):
            action(empty_database)


def test_changed_views_are_applied_again(empty_database: str) -> None:
    migrate.upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("drop view reel.causal_chains")
        connection.execute("comment on schema reel is 'an older text'")
    migrate.upgrade(empty_database)
    assert ("reel", "causal_chains") in objects(empty_database)


def test_a_wrong_password_and_a_server_that_is_down(cluster: Cluster, empty_database: str) -> None:
    with pytest.raises(AccessDeniedError, match="password"):
        migrate.upgrade(empty_database.replace(cluster.password, "wrong"))
    with pytest.raises(ServiceUnavailableError, match="cannot be reached"):
        migrate.upgrade("postgresql://postgres:x@127.0.0.1:1/postgres")


def described(url: str) -> list[tuple[object, ...]]:
    """Every column, constraint and index of the tables, as Postgres spells them."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select 'column', table_name, column_name, udt_name, is_nullable,"
            "  column_default, generation_expression"
            " from information_schema.columns"
            " where table_schema = 'core' and table_name <> 'alembic_version'"
            " union all"
            " select 'constraint', conrelid::regclass::text, conname, null, null,"
            "  pg_get_constraintdef(oid), null"
            " from pg_constraint where connamespace = 'core'::regnamespace"
            "  and conrelid::regclass::text <> 'core.alembic_version'"
            " union all"
            " select 'index', tablename, indexname, null, null, indexdef, null"
            " from pg_indexes where schemaname = 'core' and tablename <> 'alembic_version'"
            " order by 1, 2, 3"
        ).fetchall()


def test_migrated_tables_equal_those_of_the_code_to_the_last_check(
    cluster: Cluster, template: str, empty_database: str
) -> None:
    """Alembic's comparison leaves CHECK constraints and generated columns out."""
    with psycopg.connect(empty_database) as connection:
        for name in ("vector", "pg_trgm"):
            connection.execute(sql.SQL("create extension {}").format(sql.Identifier(name)))
        connection.execute("create schema core")
    engine = create_engine(empty_database)
    metadata.create_all(engine)
    engine.dispose()
    assert shots.metadata is metadata
    assert described(cluster.url(template)) == described(empty_database)


def test_an_owner_who_is_no_superuser_can_migrate(cluster: Cluster, template: str) -> None:
    """As on a managed server: the extensions are there, roles are somebody else's to make."""
    del template
    with cluster.database() as name:
        owner = sql.Identifier(f"owner_{name}")
        database = sql.Identifier(name)
        cluster.execute(sql.SQL("create role {} login password 'o'").format(owner))
        cluster.execute(sql.SQL("alter database {} owner to {}").format(database, owner))
        for extension in ("vector", "pg_trgm"):
            cluster.execute(sql.SQL("create extension {}").format(sql.Identifier(extension)), name)
        url = cluster.url(name, user=f"owner_{name}", password="o")
        migrate.upgrade(url)
        migrate.check(url)
        with psycopg.connect(cluster.url(name, user="reel_reader", password="reader")) as reader:
            reader.execute("select * from reel.search('x', 1)")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute("create temporary table t (a int)")
