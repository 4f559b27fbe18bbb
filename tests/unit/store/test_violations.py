"""Constraint names in the code are those of the tables; messages are one line."""

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, exc

from engines.errors import EngineError, ServiceUnavailableError
from tasks.store.fact_tables import shots
from tasks.store.tables import metadata
from tasks.store.violations import CONSTRAINT_ERRORS, domain_error


def constraint_names() -> set[str]:
    names = set()
    for table in metadata.tables.values():
        for constraint in table.constraints:
            if isinstance(constraint, ForeignKeyConstraint):
                names.add(f"{table.name}_{constraint.columns.keys()[0]}_fkey")
            elif isinstance(constraint, CheckConstraint):
                names.add(str(constraint.name))
            else:
                names.add(f"{table.name}_pkey")
    return names


def test_every_mapped_constraint_exists() -> None:
    assert shots.metadata is metadata
    assert set(CONSTRAINT_ERRORS) <= constraint_names()


def test_waiting_in_vain_for_a_connection_can_be_retried() -> None:
    error = domain_error(exc.TimeoutError("QueuePool limit"))
    assert isinstance(error, ServiceUnavailableError)
    assert error.retryable


def test_a_statement_of_ours_that_cannot_run_is_an_error_of_ours() -> None:
    error = domain_error(exc.CompileError("no\nsuch column"))
    assert isinstance(error, EngineError)
    assert "\n" not in str(error)
