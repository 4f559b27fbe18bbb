"""Queries of users against the public views."""

from sqlalchemy import Engine, exc

from engines.contracts.base import Contract
from engines.errors import AccessDeniedError, UsageError
from tasks.store.session import transaction
from tasks.store.violations import one_line, sqlstate_of

_MISTAKES = ("22", "42", "0A", "P0")
"""Data, syntax and names, features, raised by a function."""
_DENIED = {"42501", "25006"}
"""A right that the role lacks; writing while read-only."""
_TIMEOUT = "57014"


class QueryResult(Contract):
    """A table as it came back; values as Python has them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def query(engine: Engine, statement: str) -> QueryResult:
    """Run one query of a user; give it the reader's connections.

    Raises:
        UsageError: the query is wrong, or takes longer than the role may; the message is the
            server's.
        AccessDeniedError: it would write, or reads what the role may not.
        ServiceUnavailableError: Postgres is not there.
    """
    with transaction(engine) as connection:
        try:
            # Without parameters a percent sign is only a percent sign.
            found = connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
            columns = tuple(found.keys()) if found.returns_rows else ()
            rows = tuple(tuple(row) for row in found) if columns else ()
        except exc.DBAPIError as error:
            state = sqlstate_of(error) or ""
            msg = f"the query cannot run: {one_line(error.orig)}"
            if state in _DENIED:
                raise AccessDeniedError(msg) from error
            if state == _TIMEOUT or state.startswith(_MISTAKES):
                raise UsageError(msg) from error
            raise
    return QueryResult(columns=columns, rows=rows)
