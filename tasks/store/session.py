"""Connections and transactions.

One small pool per process. A transaction is opened late and closed before anything is computed:
a connection left idle in a transaction is ended by the server after a minute.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar
from weakref import WeakSet

import sqlalchemy
from sqlalchemy import Connection, Engine, exc, make_url

from engines.errors import UsageError
from tasks.store.violations import RETRYABLE_STATES, domain_error, sqlstate_of, translated

T = TypeVar("T")

POOL_SIZE = 4
POOL_WAIT_S = 30.0
"""A thread that finds all connections in use waits for so long, then says so."""
CONNECT_TIMEOUT_S = 5
IDLE_IN_TRANSACTION_MS = 60_000
MAX_ATTEMPTS = 5
FIRST_BACKOFF_S = 0.05

_engines: WeakSet[Engine] = WeakSet()


def create_engine(database_url: str, *, application_name: str = "reelgraph") -> Engine:
    """A pool of connections; nothing connects before the first use.

    Args:
        database_url: ``postgresql://user:password@host:port/database``.
        application_name: shown in ``pg_stat_activity``.

    Raises:
        UsageError: not a Postgres address.
    """
    try:
        url = make_url(database_url)
    except exc.ArgumentError as error:
        msg = "the database address must be postgresql://user:password@host:port/database"
        raise UsageError(msg) from error
    if url.get_backend_name() not in {"postgresql", "postgres"}:
        msg = f"the database must be Postgres, not {url.get_backend_name()!r}"
        raise UsageError(msg)
    engine = sqlalchemy.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=POOL_WAIT_S,
        pool_pre_ping=True,
        connect_args={
            "application_name": application_name,
            "connect_timeout": CONNECT_TIMEOUT_S,
            "options": (
                f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_MS} -c timezone=UTC"
            ),
        },
    )
    _drop_pools_after_fork()
    _engines.add(engine)
    return engine


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction: committed at the end, rolled back on any error.

    Raises:
        ServiceUnavailableError: Postgres is not there, went away, or is out of connections.
        AccessDeniedError: it refused the credentials or the right to do this.
        StorageFullError: its disk is full.
        ReelgraphError: a constraint was violated; see ``violations.CONSTRAINT_ERRORS``.
    """
    with translated(), engine.begin() as connection:
        yield connection


def run_transaction(engine: Engine, work: Callable[[Connection], T]) -> T:
    """``work`` in one transaction, run again as a whole after a deadlock or lost serialisation.

    ``work`` must do nothing but talk to its connection, since it may run up to five times.

    Raises:
        ReelgraphError: as ``transaction``; ServiceUnavailableError when every attempt lost.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with engine.begin() as connection:
                return work(connection)
        except exc.DBAPIError as error:
            if sqlstate_of(error) not in RETRYABLE_STATES or attempt == MAX_ATTEMPTS:
                raise domain_error(error) from error
        except exc.SQLAlchemyError as error:
            raise domain_error(error) from error
        # Jitter, or the same two would meet again.
        time.sleep(FIRST_BACKOFF_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))  # noqa: S311
    msg = "unreachable: the last attempt returns or raises"
    raise AssertionError(msg)


@cache
def _drop_pools_after_fork() -> None:
    """Two processes must not talk through one socket: a child begins with empty pools."""

    def drop() -> None:
        for engine in list(_engines):
            engine.dispose(close=False)

    os.register_at_fork(after_in_child=drop)
