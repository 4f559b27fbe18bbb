"""Connections and transactions under trouble: deadlocks, lost servers, forks, crowds."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from pg_cluster import Cluster
from sqlalchemy import Connection, Engine, text
from store_data import digest, value

from engines.errors import AccessDeniedError, ServiceUnavailableError, StorageFullError, UsageError
from tasks.store.session import MAX_ATTEMPTS, POOL_SIZE, create_engine, run_transaction, transaction


def prepare(db: Engine) -> None:
    with transaction(db) as connection:
        connection.execute(
            text("insert into core.contents (sha256, size_bytes) values (:a, 0), (:b, 0)"),
            {"a": digest("a"), "b": digest("b")},
        )


def count_up(connection: Connection, name: str) -> None:
    connection.execute(
        text("update core.contents set size_bytes = size_bytes + 1 where sha256 = :s"),
        {"s": digest(name)},
    )


def test_a_deadlock_is_run_again_as_a_whole_and_counts_end_exact(db: Engine) -> None:
    prepare(db)
    both_hold_one = threading.Barrier(2)
    attempts = {"ab": 0, "ba": 0}

    def add(order: str) -> None:
        def work(connection: Connection) -> None:
            attempts[order] += 1
            count_up(connection, order[0])
            if attempts[order] == 1:
                both_hold_one.wait(timeout=30)
            count_up(connection, order[1])

        run_transaction(db, work)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(add, order) for order in ("ab", "ba")]:
            done.result()
    assert sum(attempts.values()) > 2
    assert value(db, "select array_agg(size_bytes) from core.contents") == [2, 2]


def test_a_lost_serialisation_is_run_again(db: Engine) -> None:
    prepare(db)
    both_have_read = threading.Barrier(2)
    attempts = [0, 0]

    def add(i: int) -> None:
        def work(connection: Connection) -> None:
            attempts[i] += 1
            connection.execute(text("set transaction isolation level repeatable read"))
            connection.execute(text("select * from core.contents")).all()
            if attempts[i] == 1:
                both_have_read.wait(timeout=30)
            count_up(connection, "a")

        run_transaction(db, work)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(add, i) for i in range(2)]:
            done.result()
    assert sorted(attempts) == [1, 2]
    assert value(db, "select max(size_bytes) from core.contents") == 2


def test_a_transaction_that_always_loses_ends_as_retryable(db: Engine) -> None:
    calls = []

    def work(connection: Connection) -> None:
        calls.append(1)
        connection.execute(
            text("do $$ begin raise exception 'lost' using errcode = '40001'; end $$")
        )

    with pytest.raises(ServiceUnavailableError):
        run_transaction(db, work)
    assert len(calls) == MAX_ATTEMPTS


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("53100", StorageFullError),
        ("42501", AccessDeniedError),
        ("53300", ServiceUnavailableError),
        ("57P01", ServiceUnavailableError),
        ("55P03", ServiceUnavailableError),
    ],
)
def test_what_the_server_says_becomes_our_error(
    db: Engine, state: str, expected: type[Exception]
) -> None:
    raising = text(f"do $$ begin raise exception 'so' using errcode = '{state}'; end $$")
    with pytest.raises(expected, match="so") as caught, transaction(db) as connection:
        connection.execute(raising)
    assert "\n" not in str(caught.value)


def test_a_wrong_password_is_not_a_missing_server(cluster: Cluster) -> None:
    for url, expected in (
        (cluster.url("postgres", password="wrong"), AccessDeniedError),
        (cluster.url("postgres", user="nobody"), AccessDeniedError),
        (cluster.url("no_such_database"), ServiceUnavailableError),
        ("postgresql://postgres:x@127.0.0.1:1/postgres", ServiceUnavailableError),
    ):
        engine = create_engine(url)
        with pytest.raises(expected) as caught, transaction(engine):
            pass
        assert cluster.password not in str(caught.value)
        engine.dispose()


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://a@b/c", "sqlite://"])
def test_another_kind_of_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        create_engine(url)


def test_broken_connections_are_replaced(db: Engine, cluster: Cluster) -> None:
    assert value(db, "select 1") == 1
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
            (db.url.database,),
        )
    with transaction(db) as connection:
        assert connection.execute(text("select 2")).scalar_one() == 2


def test_a_crowd_waits_for_few_connections(db: Engine) -> None:
    """Sixteen threads: nobody fails, and never more connections than the pool may hold."""

    def work(_: int) -> int:
        with transaction(db) as connection:
            connection.execute(text("select pg_sleep(0.01)"))
            return connection.execute(
                text("select count(*) from pg_stat_activity where datname = current_database()")
            ).scalar_one()

    with ThreadPoolExecutor(16) as pool:
        most = max(pool.map(work, range(64)))
    assert most <= POOL_SIZE


def test_a_forked_child_uses_connections_of_its_own(db: Engine) -> None:
    mine = value(db, "select pg_backend_pid()")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(value(db, "select pg_backend_pid()")).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)
    assert theirs.isdigit()
    assert int(theirs) != mine
    assert value(db, "select pg_backend_pid()") == mine


def test_a_connection_forgotten_in_a_transaction_is_ended(db: Engine) -> None:
    assert value(db, "show idle_in_transaction_session_timeout") == "1min"
    assert value(db, "show timezone") == "UTC"
    assert value(db, "show application_name") == "reelgraph"
