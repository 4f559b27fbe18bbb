"""The inbox of object events: each version of an object starts at most one run.

Object stores deliver at least once and in any order. The unique index on bucket, key, version,
ETag and kind of event decides what is a duplicate; everything else follows from a row's state:
``queued -> running -> done``, or ``ignored``, or ``dead`` after too many failures.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, Protocol
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Engine,
    Row,
    func,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import Insert, insert

from engines.contracts.base import Contract
from tasks.store import tables
from tasks.store.ids import video_id_of
from tasks.store.session import run_transaction, transaction

InboxState = Literal["queued", "running", "done", "ignored", "dead"]
EventKind = Literal["created", "removed"]

SEQUENCER_WIDTH = 64
STARTED_BY_COMMAND = "started by command"


class Notification(Protocol):
    """What the receiver understood of one event."""

    @property
    def bucket(self) -> str:
        """Bucket of the object."""
        ...

    @property
    def key(self) -> str:
        """Its key, decoded once."""
        ...

    @property
    def etag(self) -> str:
        """Without quotes; empty when the store gave none."""
        ...

    @property
    def version_id(self) -> str | None:
        """None where the bucket keeps no versions."""
        ...

    @property
    def sequencer(self) -> str | None:
        """Hexadecimal; orders the events of one key."""
        ...

    @property
    def size_bytes(self) -> int | None:
        """None when the store did not say."""
        ...

    @property
    def event(self) -> EventKind:
        """Whether the object came or went."""
        ...


class InboxRow(Contract):
    """One event and what became of it."""

    inbox_id: int
    bucket: str
    key: str
    etag: str
    version_id: str | None
    sequencer: str | None
    size_bytes: int | None
    event: EventKind
    received_at: datetime
    changed_at: datetime
    deliveries: int
    state: InboxState
    reason: str | None
    run_id: UUID | None


def receive(engine: Engine, notification: Notification) -> InboxRow | None:
    """Put an event in the inbox; None when it is there already.

    The same version announced again after its object was removed is a new arrival. A removal is
    noted on the asset at once, unless something newer was put under the key since.
    """
    return run_transaction(engine, lambda connection: _receive(connection, notification))


def claim(engine: Engine, inbox_id: int, *, run_id: UUID | None = None) -> bool:
    """Move an event from queued to running; True for exactly one of those who ask."""
    table = tables.event_inbox
    with transaction(engine) as connection:
        changed = connection.execute(
            update(table)
            .where(table.c.inbox_id == inbox_id, table.c.state == "queued")
            .values(state="running", run_id=run_id, changed_at=func.clock_timestamp())
        )
    return changed.rowcount == 1


def mark(
    engine: Engine,
    inbox_id: int,
    state: InboxState,
    reason: str | None = None,
    run_id: UUID | None = None,
) -> None:
    """Set what became of an event; a run id given before stays unless another is given."""
    table = tables.event_inbox
    with transaction(engine) as connection:
        connection.execute(
            update(table)
            .where(table.c.inbox_id == inbox_id)
            .values(
                state=state,
                reason=reason,
                run_id=func.coalesce(run_id, table.c.run_id),
                changed_at=func.clock_timestamp(),
            )
        )


def get_event(engine: Engine, inbox_id: int) -> InboxRow | None:
    """One event, None when there is none with this id."""
    rows = _select(engine, tables.event_inbox.c.inbox_id == inbox_id)
    return rows[0] if rows else None


def pending(engine: Engine, older_than_s: float) -> list[InboxRow]:
    """Events that nobody took up for so long: their signal was lost. Oldest first."""
    table = tables.event_inbox
    since = func.clock_timestamp() - timedelta(seconds=older_than_s)
    return _select(engine, table.c.state == "queued", table.c.changed_at <= since)


def stuck(engine: Engine, older_than_s: float) -> list[InboxRow]:
    """Events that say running for so long; whether their run lives is for the caller to see."""
    table = tables.event_inbox
    since = func.clock_timestamp() - timedelta(seconds=older_than_s)
    return _select(engine, table.c.state == "running", table.c.changed_at <= since)


def known_keys(engine: Engine, bucket: str, prefix: str = "") -> set[tuple[str, str]]:
    """(key, ETag) of everything that came to the inbox or was read by a run.

    A sweep over the bucket compares its listing with this and finds what no event announced.
    """
    inbox, versions = tables.event_inbox, tables.object_versions
    announced = select(inbox.c.key, inbox.c.etag).where(
        inbox.c.bucket == bucket,
        inbox.c.event == "created",
        inbox.c.key.startswith(prefix, autoescape=True),
    )
    read = select(versions.c.key, versions.c.etag).where(
        versions.c.bucket == bucket, versions.c.key.startswith(prefix, autoescape=True)
    )
    with transaction(engine) as connection:
        return {(row.key, row.etag) for row in connection.execute(announced.union(read))}


def ignore_started_by_command(
    engine: Engine,
    bucket: str,
    key: str,
    etag: str,
    *,
    version_id: str | None = None,
    size_bytes: int | None = None,
) -> bool:
    """Say that a command runs this version itself, so that its event starts nothing.

    Call it before the run begins: the event may come before or after.

    Returns:
        False when the event was quicker and its run has begun or ended.
    """
    table = tables.event_inbox
    values = {"state": "ignored", "reason": STARTED_BY_COMMAND}
    statement = insert(table).values(
        bucket=bucket,
        key=key,
        etag=etag,
        version_id=version_id,
        size_bytes=size_bytes,
        event="created",
        **values,
    )
    statement = _on_conflict(
        statement,
        values | {"changed_at": func.clock_timestamp()},
        table.c.state.in_(("queued", "ignored")),
    )
    with transaction(engine) as connection:
        return connection.execute(statement.returning(table.c.inbox_id)).one_or_none() is not None


def _receive(connection: Connection, notification: Notification) -> InboxRow | None:
    table = tables.event_inbox
    fields = ("bucket", "key", "etag", "version_id", "sequencer", "size_bytes", "event")
    came = insert(table).values(
        **{name: getattr(notification, name) for name in fields}, state="queued"
    )
    again = {"deliveries": table.c.deliveries + 1}
    # Zero where the row was inserted, the locking transaction where it was updated.
    is_new = literal_column("xmax = 0", Boolean).label("is_new")
    row = connection.execute(_on_conflict(came, again, None).returning(*table.c, is_new)).one()
    if notification.event == "removed":
        _mark_gone(connection, notification)
        return _row(row) if row.is_new else None
    if row.is_new:
        return _row(row)
    return _reopen(connection, row)


def _reopen(connection: Connection, row: Row[tuple[object, ...]]) -> InboxRow | None:
    """Queue a version again that was removed and is back; None when it never went."""
    videos, table = tables.videos, tables.event_inbox
    back = connection.execute(
        update(videos)
        .where(
            videos.c.video_id == video_id_of(str(row.bucket), str(row.key)),
            videos.c.gone_at.is_not(None),
        )
        .values(gone_at=None)
    )
    if back.rowcount == 0:
        return None
    now = func.clock_timestamp()
    statement = (
        update(table)
        .where(table.c.inbox_id == row.inbox_id, table.c.state.in_(("done", "ignored", "dead")))
        .values(state="queued", reason=None, run_id=None, received_at=now, changed_at=now)
        .returning(*table.c)
    )
    reopened = connection.execute(statement).one_or_none()
    return None if reopened is None else _row(reopened)


def _mark_gone(connection: Connection, notification: Notification) -> None:
    videos, table = tables.videos, tables.event_inbox
    put_later = (
        select(literal(1))
        .where(
            table.c.bucket == notification.bucket,
            table.c.key == notification.key,
            table.c.event == "created",
            _order(table.c.sequencer) > _order(literal(notification.sequencer)),
        )
        .exists()
    )
    connection.execute(
        update(videos)
        .where(videos.c.video_id == video_id_of(notification.bucket, notification.key), ~put_later)
        .values(gone_at=func.clock_timestamp())
    )


def _order(sequencer: ColumnElement[str | None]) -> ColumnElement[str]:
    """Sequencers are hexadecimal of any length: they compare once padded on the left."""
    return func.lpad(func.lower(sequencer), SEQUENCER_WIDTH, "0")


def _on_conflict(
    statement: Insert, values: Mapping[str, object], where: ColumnElement[bool] | None
) -> Insert:
    table = tables.event_inbox
    identity = [
        table.c.bucket,
        table.c.key,
        literal_column("coalesce(version_id, '')"),
        table.c.etag,
        table.c.event,
    ]
    return statement.on_conflict_do_update(index_elements=identity, set_=values, where=where)


def _select(engine: Engine, *conditions: ColumnElement[bool]) -> list[InboxRow]:
    table = tables.event_inbox
    statement = select(table).where(*conditions).order_by(table.c.received_at, table.c.inbox_id)
    with transaction(engine) as connection:
        return [_row(row) for row in connection.execute(statement)]


def _row(row: Row[tuple[object, ...]]) -> InboxRow:
    return InboxRow(**{name: row._mapping[name] for name in InboxRow.model_fields})
