"""Pure parsing of what object stores send when an object changes.

Every store has its own form, and they differ where it matters most: S3 and MinIO form-encode
the key, SeaweedFS sends it as it is. Which of the two is decided by the source that sent it,
never by how the text looks: ``a%20b`` is a fine key.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote_plus

from pydantic import BaseModel, ConfigDict, Field

from engines.errors import UsageError

INTERNAL_FOLDERS = (".uploads/", ".system/")
"""What SeaweedFS keeps below a bucket for itself: parts of uploads, and its own files."""
VERSIONS_SUFFIX = ".versions"
"""SeaweedFS keeps the versions of ``a.mp4`` as files in a folder ``a.mp4.versions``."""


class ObjectNotification(BaseModel):
    """One object that came or went."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bucket: str = Field(min_length=1)
    key: str = Field(min_length=1)
    """Decoded exactly once; names the object byte for byte."""
    etag: str = ""
    """Without quotes; a mark of change and not an identity. Empty when the store gave none."""
    version_id: str | None = None
    sequencer: str | None = None
    """Orders the events of one key: hexadecimal, of a length of the store's choice."""
    size_bytes: int | None = Field(default=None, ge=0)
    event: Literal["created", "removed"]


@dataclass(frozen=True)
class Parsed:
    """What one request announced."""

    notifications: tuple[ObjectNotification, ...] = ()
    skipped: tuple[str, ...] = ()
    """Why the rest of it names no object; one line each."""


def parse_seaweedfs(body: Mapping[str, Any]) -> Parsed:
    """Read one event of the SeaweedFS filer's webhook.

    Args:
        body: the JSON document: ``event_type``, ``key`` as a path below ``/buckets/``, and
            ``message`` with ``old_entry`` and ``new_entry``.

    Raises:
        UsageError: not of that form.
    """
    try:
        kind = str(body["event_type"])
        message: Mapping[str, Any] = body["message"]
        created = kind in {"create", "update", "rename"}
        entry: Mapping[str, Any] = message["new_entry" if created else "old_entry"]
        path = _filer_path(kind, str(body["key"]), message)
        if not path.startswith("/buckets/"):
            return Parsed(skipped=(f"{path}: not in a bucket",))
        bucket, _, key = path.removeprefix("/buckets/").partition("/")
        if not key or entry.get("is_directory"):
            return Parsed(skipped=(f"{path}: a folder",))
        if key.startswith(INTERNAL_FOLDERS):
            return Parsed(skipped=(f"{path}: internal to the store",))
        return _seaweedfs_object(bucket, key, entry, created=created)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        msg = f"not a SeaweedFS notification: {type(error).__name__}: {error}"
        raise UsageError(msg) from error


def parse_s3(body: Mapping[str, Any]) -> Parsed:
    """Read an S3 event document, as AWS and MinIO send it.

    Keys in ``Records`` are form-encoded: ``+`` is a space and ``%2B`` a plus sign. MinIO's
    additional top-level ``Key`` is not encoded and not used.

    Args:
        body: the JSON document with ``Records``, or the test message of a new subscription.

    Raises:
        UsageError: not of that form.
    """
    if body.get("Event") == "s3:TestEvent":
        return Parsed(skipped=(f"s3:TestEvent of bucket {body.get('Bucket')}",))
    notifications, skipped = [], []
    try:
        for record in body["Records"]:
            name = str(record["eventName"]).removeprefix("s3:")
            if name.startswith("ObjectCreated:"):
                event: Literal["created", "removed"] = "created"
            elif name.startswith(("ObjectRemoved:", "LifecycleExpiration:")):
                event = "removed"
            else:
                skipped.append(f"{name}: neither created nor removed")
                continue
            s3 = record["s3"]
            stored = s3["object"]
            notifications.append(
                ObjectNotification(
                    bucket=s3["bucket"]["name"],
                    key=unquote_plus(stored["key"], errors="strict"),
                    etag=(stored.get("eTag") or "").strip('"'),
                    version_id=_version(stored.get("versionId")),
                    sequencer=stored.get("sequencer"),
                    size_bytes=stored.get("size"),
                    event=event,
                )
            )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        msg = f"not an S3 event document: {type(error).__name__}: {error}"
        raise UsageError(msg) from error
    return Parsed(notifications=tuple(notifications), skipped=tuple(skipped))


SOURCES: Mapping[str, Callable[[Mapping[str, Any]], Parsed]] = {
    "seaweedfs": parse_seaweedfs,
    "minio": parse_s3,
    "s3": parse_s3,
}
"""Parsers by the name of the source, which is the last part of the receiver's path."""


def unwatched_reason(
    notification: ObjectNotification, *, videos_bucket: str, watched_prefix: str
) -> str | None:
    """Why a notification is none of our business; None when it is.

    Args:
        notification: what was announced.
        videos_bucket: the only bucket that is watched; our own outputs go to another one.
        watched_prefix: only keys that begin with it count; empty for all.
    """
    if notification.bucket != videos_bucket:
        return "not the watched bucket"
    if notification.key.startswith(INTERNAL_FOLDERS):
        return "internal to the store"
    if not notification.key.startswith(watched_prefix):
        return "outside the watched prefix"
    if notification.key.endswith("/"):
        return "a folder"
    return None


def no_run_reason(event: str, size_bytes: int | None) -> str | None:
    """Why an object of the watched bucket starts no run; None when it does.

    Nothing is guessed from the key's suffix: what the bytes are is found out by the probe.
    """
    if event == "removed":
        return "removed"
    return "empty" if size_bytes == 0 else None


def _seaweedfs_object(bucket: str, key: str, entry: Mapping[str, Any], *, created: bool) -> Parsed:
    version_id = None
    folder, _, name = key.rpartition("/")
    if folder.endswith(VERSIONS_SUFFIX) and name.startswith("v_"):
        key, version_id = folder.removesuffix(VERSIONS_SUFFIX), name.removeprefix("v_")
    attributes: Mapping[str, Any] = entry.get("attributes") or {}
    extended: Mapping[str, str] = entry.get("extended") or {}
    notification = ObjectNotification(
        bucket=bucket,
        key=key,
        etag=_seaweedfs_etag(attributes, extended),
        version_id=version_id,
        sequencer=_seaweedfs_sequencer(attributes, entry),
        size_bytes=attributes.get("file_size", 0),
        event="created" if created else "removed",
    )
    return Parsed(notifications=(notification,))


def _filer_path(kind: str, path: str, message: Mapping[str, Any]) -> str:
    """The path an event is about: of a rename the new one."""
    if kind == "rename":
        return f"{message['new_parent_path']}/{message['new_entry']['name']}"
    return path


def _seaweedfs_etag(attributes: Mapping[str, Any], extended: Mapping[str, str]) -> str:
    """ETag as S3 shows it: stored for S3 uploads, else the MD5 of the file."""
    stored = extended.get("Seaweed-X-Amz-ETag")
    if stored:
        return base64.b64decode(stored, validate=True).decode("ascii").strip('"')
    md5 = attributes.get("md5")
    return base64.b64decode(md5, validate=True).hex() if md5 else ""


def _seaweedfs_sequencer(attributes: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """When the last byte was written, in nanoseconds since 1970, as 16 hexadecimal digits."""
    written = [int(chunk["modified_ts_ns"]) for chunk in entry.get("chunks") or ()]
    seconds = int(attributes.get("mtime", 0))
    return f"{max(written, default=seconds * 10**9):016x}"


def _version(value: str | None) -> str | None:
    """MinIO sends ``null`` as a word for objects of a bucket without versions."""
    return None if value in {None, "", "null"} else value
