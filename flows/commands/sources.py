"""From what a person names (file, directory, s3 address) to objects in the store."""

import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engines.errors import EmptyInputError, ReelgraphError, UsageError
from tasks.objects.client import expected_etag, sha256_of
from tasks.objects.keys import S3_SCHEME, ObjectRef, parse_s3_uri, upload_key
from tasks.resources import Resources
from tasks.run import content_of
from tasks.store import inbox, videos


@dataclass(frozen=True)
class Source:
    """One video to process, or why it cannot be."""

    label: str
    """As the person named it."""
    ref: ObjectRef | None
    sha256: str | None = None
    error: ReelgraphError | None = None


def resolve(names: list[str], resources: Resources) -> Iterator[Source]:
    """Every video that ``names`` stand for; local files are uploaded on the way.

    A name that cannot be used yields a source with its error: the others still run.
    """
    for name in names:
        try:
            yield from _expand(name, resources)
        except ReelgraphError as error:
            yield Source(label=name, ref=None, error=error)


def _expand(name: str, resources: Resources) -> Iterator[Source]:
    if name.startswith(S3_SCHEME):
        ref = parse_s3_uri(name)
        if ref.key and not ref.key.endswith("/"):
            yield Source(label=name, ref=ref)
            return
        found = False
        for version in resources.objects.list(ref.bucket, ref.key):
            found = True
            yield Source(label=str(version.ref), ref=version.ref)
        if not found:
            msg = f"nothing lies below {name}"
            raise UsageError(msg)
        return
    path = Path(name)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        if not files:
            msg = f"no files in the directory {name!r}"
            raise UsageError(msg)
        for file in files:
            yield from resolve([str(file)], resources)
        return
    if not path.is_file():
        msg = f"no such file, directory or s3:// address: {name!r}"
        raise UsageError(msg)
    yield _upload(name, path, resources)


def _upload(label: str, path: Path, resources: Resources) -> Source:
    """Put a local file into the videos bucket unless the very bytes are there under its key."""
    if path.stat().st_size == 0:
        msg = f"{label} is empty (0 bytes)"
        raise EmptyInputError(msg)
    sha256 = sha256_of(path)
    bucket = resources.settings.videos_bucket
    ref = ObjectRef(bucket, upload_key(path, sha256))
    if not resources.objects.exists(ref):
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        expected = expected_etag(path)
        # The store announces the object before the upload returns; this run is its run.
        inbox.ignore_started_by_command(resources.db, ref.bucket, ref.key, expected)
        etag = resources.objects.upload(ref, path, content_type=kind)
        if etag != expected:
            inbox.ignore_started_by_command(resources.db, ref.bucket, ref.key, etag)
        version = resources.objects.stat(ref)
        videos.remember_content(resources.db, content_of(version, sha256))
    return Source(label=label, ref=ref, sha256=sha256)
