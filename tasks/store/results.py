"""Results of stages under their cache keys, and the leases that say who computes one.

A lease has an owner and a fence: whoever takes over an expired lease raises the fence, and a
result is stored only by the holder of the present fence. So a worker that was thought dead and
comes back late cannot overwrite what its successor made.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from pydantic import JsonValue
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from engines.contracts.base import Contract
from engines.errors import LeaseLostError
from tasks.store import tables
from tasks.store.artifacts import StoredArtifact, upsert_artifacts
from tasks.store.session import run_transaction, transaction

NOBODY = UUID(int=0)


class Lease(Contract):
    """The right to compute one result until ``expires_at`` (clock of the database)."""

    cache_key: str
    owner: UUID
    fence: int
    expires_at: datetime


class StageResult(Contract):
    """A result found under its cache key."""

    cache_key: str
    stage: str
    stage_run_id: UUID
    """The stage run that computed it."""
    document_sha256: str
    inputs: dict[str, str]
    """Input name -> SHA-256."""
    outputs: dict[str, str]
    """Blob name -> SHA-256, the document not among them."""


def find_result(engine: Engine, cache_key: str) -> StageResult | None:
    """The result under ``cache_key``, None when nobody has stored one that may be used again."""
    with transaction(engine) as connection:
        row = connection.execute(
            select(tables.stage_results).where(
                tables.stage_results.c.cache_key == cache_key, tables.stage_results.c.reusable
            )
        ).one_or_none()
        if row is None:
            return None
        inputs, outputs = (
            {row.name: row.sha256 for row in connection.execute(_hashes(table, cache_key))}
            for table in (tables.stage_inputs, tables.stage_outputs)
        )
    return StageResult(
        cache_key=cache_key,
        stage=row.stage,
        stage_run_id=row.stage_run_id,
        document_sha256=row.document_sha256,
        inputs=inputs,
        outputs=outputs,
    )


def acquire_lease(engine: Engine, cache_key: str, *, lease_s: float) -> Lease | None:
    """Take the lease when it is free or its holder let it expire; None when it is held.

    Args:
        engine: pool of connections.
        cache_key: the result to be computed.
        lease_s: how long the holder may be silent before another takes over.
    """
    owner = uuid4()
    table = tables.leases
    expires = func.clock_timestamp() + timedelta(seconds=lease_s)
    statement = (
        insert(table)
        .values(cache_key=cache_key, owner=owner, fence=1, expires_at=expires)
        .on_conflict_do_update(
            index_elements=[table.c.cache_key],
            set_={"owner": owner, "fence": table.c.fence + 1, "expires_at": expires},
            where=table.c.expires_at <= func.clock_timestamp(),
        )
        .returning(table.c.fence, table.c.expires_at)
    )
    with transaction(engine) as connection:
        row = connection.execute(statement).one_or_none()
    if row is None:
        return None
    return Lease(cache_key=cache_key, owner=owner, fence=row.fence, expires_at=row.expires_at)


def renew_lease(engine: Engine, lease: Lease, *, lease_s: float) -> Lease:
    """Hold the lease for another ``lease_s`` from now.

    Raises:
        LeaseLostError: another worker took over.
    """
    expires = func.clock_timestamp() + timedelta(seconds=lease_s)
    statement = (
        update(tables.leases)
        .where(*_held(lease))
        .values(expires_at=expires)
        .returning(tables.leases.c.expires_at)
    )
    with transaction(engine) as connection:
        row = connection.execute(statement).one_or_none()
    if row is None:
        raise _lost(lease)
    return lease.model_copy(update={"expires_at": row.expires_at})


def release_lease(engine: Engine, lease: Lease) -> None:
    """Let others have it at once; nothing happens when it was lost already.

    The row stays, so that the fence never runs backwards.
    """
    with transaction(engine) as connection:
        _expire(connection, lease)


def store_result(  # noqa: PLR0913 - one result is this much
    engine: Engine,
    lease: Lease,
    *,
    stage: str,
    stage_run_id: UUID,
    recipe: Mapping[str, JsonValue],
    inputs: Mapping[str, str],
    document: StoredArtifact,
    blobs: Mapping[str, StoredArtifact],
    reusable: bool = True,
) -> StageResult:
    """Record what the holder of ``lease`` computed, and release the lease, in one transaction.

    A result already under the key is replaced: its holder found it unusable (a blob was gone).

    Args:
        engine: pool of connections.
        lease: held for this cache key.
        stage: name of the stage.
        stage_run_id: the stage run that computed it.
        recipe: every ingredient of the cache key beside the inputs.
        inputs: input name -> SHA-256.
        document: the stored output document.
        blobs: blob name -> stored artifact.
        reusable: False for a result that no later run shall find.

    Raises:
        LeaseLostError: another worker took over; nothing is stored.
    """
    result = StageResult(
        cache_key=lease.cache_key,
        stage=stage,
        stage_run_id=stage_run_id,
        document_sha256=document.sha256,
        inputs=dict(inputs),
        outputs={name: blob.sha256 for name, blob in blobs.items()},
    )

    def work(connection: Connection) -> None:
        # Checking and releasing are one update: it locks the row until the commit.
        if not _expire(connection, lease):
            raise _lost(lease)
        upsert_artifacts(connection, [document, *blobs.values()])
        _write_result(connection, result, dict(recipe), reusable=reusable)

    run_transaction(engine, work)
    return result


def _write_result(
    connection: Connection, result: StageResult, recipe: dict[str, JsonValue], *, reusable: bool
) -> None:
    values = {
        "stage": result.stage,
        "stage_run_id": result.stage_run_id,
        "recipe": recipe,
        "document_sha256": result.document_sha256,
        "reusable": reusable,
    }
    connection.execute(
        insert(tables.stage_results)
        .values(cache_key=result.cache_key, **values)
        .on_conflict_do_update(index_elements=["cache_key"], set_=values)
    )
    named = ((tables.stage_inputs, result.inputs), (tables.stage_outputs, result.outputs))
    for table, hashes in named:
        connection.execute(delete(table).where(table.c.cache_key == result.cache_key))
        rows: Sequence[dict[str, str]] = [
            {"cache_key": result.cache_key, "name": name, "sha256": hashes[name]}
            for name in sorted(hashes)
        ]
        if rows:
            connection.execute(insert(table), rows)


def _hashes(table: Table, cache_key: str) -> Select[tuple[str, str]]:
    return select(table.c.name, table.c.sha256).where(table.c.cache_key == cache_key)


def _expire(connection: Connection, lease: Lease) -> bool:
    """End the lease; whether it was still ours.

    It is left without an owner, so that a heartbeat a moment later cannot revive it.
    """
    free = {"owner": NOBODY, "expires_at": func.clock_timestamp()}
    statement = update(tables.leases).where(*_held(lease)).values(free)
    return connection.execute(statement).rowcount == 1


def _held(lease: Lease) -> tuple[ColumnElement[bool], ...]:
    # An expired lease that nobody took is still ours: only a higher fence ends it.
    table = tables.leases
    return (
        table.c.cache_key == lease.cache_key,
        table.c.owner == lease.owner,
        table.c.fence == lease.fence,
    )


def _lost(lease: Lease) -> LeaseLostError:
    return LeaseLostError(
        f"another worker took over {lease.cache_key[:12]} after fence {lease.fence}: "
        "this result is late and is not stored"
    )
