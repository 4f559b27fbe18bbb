"""Which artifacts exist: content hash, where they lie, how big, of what media type."""

from collections.abc import Iterable
from typing import Protocol

from sqlalchemy import Connection, Engine, select
from sqlalchemy.dialects.postgresql import insert

from engines.contracts.base import Contract
from tasks.store import tables
from tasks.store.session import run_transaction, transaction


class StoredArtifact(Protocol):
    """What the object side says of a blob that it has stored."""

    @property
    def sha256(self) -> str:
        """Content hash, lower-case hex."""
        ...

    @property
    def uri(self) -> str:
        """Where the bytes lie."""
        ...

    @property
    def size_bytes(self) -> int:
        """Their number."""
        ...

    @property
    def kind(self) -> str:
        """Media type."""
        ...


class ArtifactRow(Contract):
    """One artifact as the store knows it."""

    sha256: str
    uri: str
    size_bytes: int
    kind: str
    """Media type."""


def record_artifacts(engine: Engine, artifacts: Iterable[StoredArtifact]) -> None:
    """Note artifacts that are in the object store; the same again changes nothing."""
    listed = list(artifacts)
    run_transaction(engine, lambda connection: upsert_artifacts(connection, listed))


def upsert_artifacts(connection: Connection, artifacts: Iterable[StoredArtifact]) -> None:
    """As ``record_artifacts``, inside the caller's transaction.

    Rows are de-duplicated and sorted, so that two writers lock them in the same order.
    """
    rows = {
        a.sha256: {"sha256": a.sha256, "uri": a.uri, "size_bytes": a.size_bytes, "kind": a.kind}
        for a in artifacts
    }
    if rows:
        ordered = [rows[sha256] for sha256 in sorted(rows)]
        connection.execute(insert(tables.artifacts).on_conflict_do_nothing(), ordered)


def find_artifact(engine: Engine, sha256: str) -> ArtifactRow | None:
    """The artifact with these bytes, None when the store knows none."""
    columns = (tables.artifacts.c[name] for name in ("sha256", "uri", "size_bytes", "kind"))
    with transaction(engine) as connection:
        row = connection.execute(
            select(*columns).where(tables.artifacts.c.sha256 == sha256)
        ).one_or_none()
    return None if row is None else ArtifactRow(**row._mapping)
