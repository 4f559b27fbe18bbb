"""Assets: what lies at a bucket and key, and which bytes each version of it had."""

from contextlib import suppress
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Engine, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from engines.contracts.base import Contract
from engines.errors import UsageError
from tasks.store import tables
from tasks.store.ids import video_id_of
from tasks.store.session import run_transaction, transaction


class ObjectContent(Contract):
    """One version of an object and the bytes it was found to have."""

    bucket: str
    key: str
    etag: str
    """Without quotes; marks change, is no identity."""
    version_id: str | None
    size_bytes: int
    sha256: str
    """Ours, of the bytes as read."""
    modified_at: datetime | None = None
    """By the object store's clock; orders versions of one key."""


class VideoRow(Contract):
    """An asset as the store knows it."""

    video_id: UUID
    bucket: str
    key: str
    sha256: str | None
    """Of the published bytes, else of those last seen."""
    current_run_id: UUID | None
    published_at: datetime | None
    verdict: str | None
    duration_s: float | None
    gone_at: datetime | None


def ensure_video(engine: Engine, bucket: str, key: str) -> UUID:
    """Id of the asset, whose row is made when it is new.

    Raises:
        UsageError: the key is empty or longer than 1024 bytes.
    """
    video_id = video_id_of(bucket, key)
    with transaction(engine) as connection:
        connection.execute(
            insert(tables.videos)
            .values(video_id=video_id, bucket=bucket, key=key)
            .on_conflict_do_nothing(index_elements=["video_id"])
        )
    return video_id


def known_sha256(
    engine: Engine, bucket: str, key: str, *, etag: str, version_id: str | None, size_bytes: int
) -> str | None:
    """SHA-256 of this very version when it was read before, so that it need not be again."""
    table = tables.object_versions
    with transaction(engine) as connection:
        return connection.execute(
            select(table.c.sha256).where(
                table.c.bucket == bucket,
                table.c.key == key,
                table.c.etag == etag,
                table.c.version_id.is_not_distinct_from(version_id),
                table.c.size_bytes == size_bytes,
            )
        ).scalar_one_or_none()


def record_content(engine: Engine, content: ObjectContent, *, run_id: UUID) -> None:
    """Note which bytes a run reads; the asset's latest content moves forward, never back.

    Args:
        engine: pool of connections.
        content: the pinned version and its SHA-256.
        run_id: a started run of the asset.
    """
    run_transaction(engine, lambda connection: _record(connection, content, run_id))


def remember_content(engine: Engine, content: ObjectContent) -> None:
    """Note the bytes of a version that was hashed outside of a run, on its upload."""
    run_transaction(engine, lambda connection: _remember(connection, content))


def mark_gone(engine: Engine, bucket: str, key: str) -> None:
    """Note that the object was deleted; its facts stay until they are forgotten."""
    with transaction(engine) as connection:
        connection.execute(
            update(tables.videos)
            .where(tables.videos.c.video_id == video_id_of(bucket, key))
            .values(gone_at=func.clock_timestamp())
        )


def find_videos(engine: Engine, name: str) -> list[VideoRow]:
    """Assets that ``name`` may mean: id, ``s3://bucket/key``, ``bucket/key``, key or SHA-256.

    Returns:
        All that match, by bucket and key; empty when none does.
    """
    table = tables.videos
    address = name.removeprefix("s3://")
    matches = [
        table.c.key == name,
        func.concat(table.c.bucket, "/", table.c.key) == address,
        table.c.sha256 == name,
        table.c.observed_sha256 == name,
    ]
    with suppress(ValueError):
        matches.append(table.c.video_id == UUID(name))
    return _select(engine, or_(*matches))


def get_video(engine: Engine, video_id: UUID) -> VideoRow:
    """The asset with this id.

    Raises:
        UsageError: no such asset.
    """
    rows = _select(engine, tables.videos.c.video_id == video_id)
    if not rows:
        msg = f"no video {video_id}"
        raise UsageError(msg)
    return rows[0]


def _select(engine: Engine, condition: ColumnElement[bool]) -> list[VideoRow]:
    table = tables.videos
    columns = [table.c[name] for name in VideoRow.model_fields if name != "sha256"]
    sha256 = func.coalesce(table.c.sha256, table.c.observed_sha256).label("sha256")
    statement = select(*columns, sha256).where(condition).order_by(table.c.bucket, table.c.key)
    with transaction(engine) as connection:
        return [VideoRow(**row._mapping) for row in connection.execute(statement)]


def _remember(connection: Connection, content: ObjectContent) -> None:
    connection.execute(
        insert(tables.contents)
        .values(sha256=content.sha256, size_bytes=content.size_bytes)
        .on_conflict_do_nothing()
    )
    connection.execute(
        insert(tables.object_versions).values(**content.model_dump()).on_conflict_do_nothing()
    )


def _record(connection: Connection, content: ObjectContent, run_id: UUID) -> None:
    _remember(connection, content)
    connection.execute(
        update(tables.runs)
        .where(tables.runs.c.run_id == run_id)
        .values(sha256=content.sha256, version_id=content.version_id)
    )
    videos = tables.videos
    # A slow reader of an old version may end after the reader of a new one.
    is_newest = func.coalesce(videos.c.observed_modified_at <= content.modified_at, True)
    connection.execute(
        update(videos)
        .where(videos.c.video_id == video_id_of(content.bucket, content.key), is_newest)
        .values(
            observed_sha256=content.sha256,
            observed_etag=content.etag,
            observed_version_id=content.version_id,
            observed_modified_at=content.modified_at,
            gone_at=None,
        )
    )
