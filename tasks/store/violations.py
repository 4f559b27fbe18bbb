"""What the database refuses, said in our own errors: by SQLSTATE and by constraint name."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import Error as PsycopgError
from sqlalchemy import exc

from engines.errors import (
    AccessDeniedError,
    EngineError,
    ObjectMissingError,
    ReelgraphError,
    ServiceUnavailableError,
    StorageFullError,
    UsageError,
)

SERIALIZATION_FAILURE = "40001"
DEADLOCK_DETECTED = "40P01"
RETRYABLE_STATES = frozenset({SERIALIZATION_FAILURE, DEADLOCK_DETECTED})

_UNAVAILABLE_CLASSES = ("08", "57P")
_UNAVAILABLE_STATES = frozenset({"53300", "55P03", "57014", *RETRYABLE_STATES})
_DENIED_STATES = frozenset({"28000", "28P01", "42501"})
_FULL_STATES = frozenset({"53100"})

# A refused connection carries no SQLSTATE through libpq, only the server's words.
_DENIED_WORDS = re.compile(
    r"password authentication failed|no password supplied|no pg_hba\.conf entry"
    r"|role \".*\" (does not exist|is not permitted to log in)|permission denied"
)
_FULL_WORDS = re.compile(r"No space left on device", re.IGNORECASE)

CONSTRAINT_ERRORS: dict[str, tuple[type[ReelgraphError], str]] = {
    "videos_key_length_check": (UsageError, "an object key has 1 to 1024 bytes"),
    "event_inbox_key_length_check": (UsageError, "an object key has 1 to 1024 bytes"),
    "runs_video_id_fkey": (ObjectMissingError, "the run's video is not known to the store"),
    "stage_runs_run_id_fkey": (UsageError, "the stage run belongs to no known run"),
    "stage_runs_pkey": (UsageError, "a stage run with this id exists already"),
    "runs_pkey": (UsageError, "a run with this id exists already"),
    "publications_cache_key_fkey": (EngineError, "a stage without a stored result was published"),
    "stage_outputs_sha256_fkey": (EngineError, "a stage output is not among the artifacts"),
}
"""Constraint -> error and what it means; others are engine errors naming the constraint."""


def sqlstate_of(error: exc.DBAPIError) -> str | None:
    """Five-character SQLSTATE of the server, None where the connection itself failed."""
    return error.orig.sqlstate if isinstance(error.orig, PsycopgError) else None


def domain_error(error: exc.SQLAlchemyError) -> ReelgraphError:
    """The error of ours that says what a failed statement or connection means."""
    if isinstance(error, exc.TimeoutError):
        return ServiceUnavailableError("every connection to Postgres stayed in use; try again")
    if not isinstance(error, exc.DBAPIError) or not isinstance(error.orig, PsycopgError):
        return EngineError(f"the store made a statement that cannot run: {one_line(error)}")
    state, message = error.orig.sqlstate, one_line(error.orig)
    if state in _DENIED_STATES or (state is None and _DENIED_WORDS.search(message)):
        return AccessDeniedError(f"Postgres refused the credentials: {message}")
    if state in _FULL_STATES or _FULL_WORDS.search(message):
        return StorageFullError(f"Postgres has no space left: {message}")
    if error.connection_invalidated or _is_unavailable(state, error):
        return ServiceUnavailableError(f"Postgres cannot be reached or is busy: {message}")
    constraint = error.orig.diag.constraint_name
    if constraint in CONSTRAINT_ERRORS:
        kind, meaning = CONSTRAINT_ERRORS[constraint]
        return kind(f"{meaning}: {error.orig.diag.message_detail or message}")
    return EngineError(f"Postgres refused the rows ({constraint or state}): {message}")


@contextmanager
def translated() -> Iterator[None]:
    """Let every SQLAlchemy error leave as one of ours, with the original as its cause.

    Raises:
        ReelgraphError: as ``domain_error`` tells.
    """
    try:
        yield
    except exc.SQLAlchemyError as error:
        raise domain_error(error) from error


def _is_unavailable(state: str | None, error: exc.DBAPIError) -> bool:
    if state is None:
        return isinstance(error, exc.OperationalError | exc.InterfaceError)
    return state in _UNAVAILABLE_STATES or state.startswith(_UNAVAILABLE_CLASSES)


def one_line(error: BaseException | None) -> str:
    """The message of a failed statement on one line, without SQLAlchemy's statement and link."""
    return " ".join(str(error).split("[SQL:")[0].split())
