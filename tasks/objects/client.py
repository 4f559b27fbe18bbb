"""The S3 adapter: MinIO, SeaweedFS or any S3 server, by the minio client.

Every failure leaves here as one of our own errors, with the store's as its cause.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

import urllib3
from minio import Minio
from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

from engines.errors import (
    AccessDeniedError,
    LimitExceededError,
    ObjectMissingError,
    ObjectSupersededError,
    ReelgraphError,
    ServiceUnavailableError,
    StorageFullError,
    UsageError,
)
from tasks.objects.keys import ObjectRef

CHUNK_BYTES = 1 << 20
PART_BYTES = 16 << 20
"""Size of one part of a multipart upload."""

_MISSING = {"NoSuchKey", "NoSuchBucket", "NoSuchVersion", "NoSuchObject"}
_DENIED = {
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AuthorizationHeaderMalformed",
    "ExpiredToken",
}
_FULL = {"XMinioStorageFull", "InsufficientStorage", "QuotaExceeded"}
_BUSY = {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout"}


@dataclass(frozen=True)
class ObjectVersion:
    """One pinned version of an object; ``etag`` marks change and is not an identity."""

    ref: ObjectRef
    etag: str
    version_id: str | None
    size_bytes: int
    modified_at: datetime | None


class ObjectStore:
    """A connection to one S3 server; safe to share between threads."""

    def __init__(
        self, endpoint: str, access_key: str, secret_key: str, *, region: str = "us-east-1"
    ) -> None:
        """Connect lazily.

        Args:
            endpoint: ``http://host:port`` or ``https://host:port``.
            access_key: user of the server.
            secret_key: its secret; kept by the client, never printed.
            region: signing region.

        Raises:
            UsageError: the endpoint is not an http(s) address.
        """
        parts = urlsplit(endpoint)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            msg = f"the object store's endpoint must be http(s)://host:port, not {endpoint!r}"
            raise UsageError(msg)
        self._client = Minio(
            parts.netloc,
            access_key=access_key,
            secret_key=secret_key,
            secure=parts.scheme == "https",
            region=region,
            http_client=urllib3.PoolManager(
                timeout=urllib3.Timeout(connect=5, read=60),
                maxsize=8,
                retries=urllib3.Retry(total=3, backoff_factor=0.2, status_forcelist=[502, 503]),
            ),
        )

    def stat(self, ref: ObjectRef, version_id: str | None = None) -> ObjectVersion:
        """Pin what is there now, or the version named.

        Raises:
            ObjectMissingError: no such bucket, key or version.
            AccessDeniedError: the credentials may not read it.
        """
        with _translated(ref):
            found = self._client.stat_object(ref.bucket, ref.key, version_id=version_id)
        return ObjectVersion(
            ref=ref,
            etag=(found.etag or "").strip('"'),
            version_id=found.version_id,
            size_bytes=found.size or 0,
            modified_at=found.last_modified,
        )

    def download(self, version: ObjectVersion, directory: Path, max_bytes: int) -> tuple[str, Path]:
        """Stream one pinned version to ``directory``, named by its SHA-256.

        Returns:
            The SHA-256 of the bytes and the path of the file.

        Raises:
            ObjectSupersededError: the object was replaced while it was read.
            LimitExceededError: it has more than ``max_bytes``.
            StorageFullError: no space left here.
        """
        ref = version.ref
        if version.size_bytes > max_bytes:
            msg = f"{ref} has {version.size_bytes} bytes, more than the limit of {max_bytes}"
            raise LimitExceededError(msg)
        with _translated(ref):
            response = self._client.get_object(
                ref.bucket,
                ref.key,
                version_id=version.version_id,
                request_headers={"If-Match": f'"{version.etag}"'} if version.etag else None,
            )
            try:
                served = (response.headers.get("etag") or "").strip('"')
                if version.etag and served != version.etag:
                    msg = f"{ref} was replaced while it was read"
                    raise ObjectSupersededError(msg)
                sha256, path, size = _store_hashed(response.stream(CHUNK_BYTES), directory)
            finally:
                response.close()
                response.release_conn()
        if size != version.size_bytes:
            msg = f"{ref}: {size} bytes read, {version.size_bytes} announced"
            raise ServiceUnavailableError(msg)
        return sha256, path

    def read(self, ref: ObjectRef) -> bytes:
        """The whole object; for documents, not for media.

        Raises:
            ObjectMissingError: no such object.
        """
        with _translated(ref):
            response = self._client.get_object(ref.bucket, ref.key)
            try:
                return bytes(response.read())
            finally:
                response.close()
                response.release_conn()

    def upload(self, ref: ObjectRef, path: Path, *, content_type: str, **metadata: str) -> str:
        """Store a file, in parts when it is large.

        Returns:
            The ETag of the new object.
        """
        with _translated(ref):
            result = self._client.fput_object(
                ref.bucket,
                ref.key,
                str(path),
                content_type=content_type,
                metadata=dict(metadata) or None,
                part_size=PART_BYTES,
            )
        return (result.etag or "").strip('"')

    def exists(self, ref: ObjectRef) -> bool:
        """Whether an object of that name is there."""
        try:
            self.stat(ref)
        except ObjectMissingError:
            return False
        return True

    def list(self, bucket: str, prefix: str = "") -> Iterator[ObjectVersion]:
        """Objects below a prefix, in key order; folder markers left out."""
        with _translated(ObjectRef(bucket, prefix)):
            for found in self._client.list_objects(bucket, prefix=prefix, recursive=True):
                if found.is_dir or not found.object_name or found.object_name.endswith("/"):
                    continue
                yield ObjectVersion(
                    ref=ObjectRef(bucket, found.object_name),
                    etag=(found.etag or "").strip('"'),
                    version_id=found.version_id,
                    size_bytes=found.size or 0,
                    modified_at=found.last_modified,
                )

    def presigned_url(self, ref: ObjectRef, valid_for: timedelta = timedelta(days=7)) -> str:
        """An address that a browser may open for a while."""
        with _translated(ref):
            return str(self._client.presigned_get_object(ref.bucket, ref.key, expires=valid_for))

    def remove(self, ref: ObjectRef) -> None:
        """Delete; an object that is not there is no error."""
        with _translated(ref):
            self._client.remove_object(ref.bucket, ref.key)

    def ensure_bucket(self, bucket: str) -> None:
        """Make the bucket unless it is there."""
        with _translated(ObjectRef(bucket, "")):
            if not self._client.bucket_exists(bucket):
                self._client.make_bucket(bucket)


def expected_etag(path: Path) -> str:
    """ETag that a store gives to ``path`` when ``ObjectStore.upload`` puts it there.

    MD5 of the bytes, or for several parts MD5 over the parts' MD5s and their number. It lets a
    notification be recognised that arrives before the upload has returned.
    """
    parts = []
    with path.open("rb") as stream:
        while block := stream.read(PART_BYTES):
            parts.append(hashlib.md5(block, usedforsecurity=False).digest())
    if len(parts) == 1:
        return parts[0].hex()
    whole = hashlib.md5(b"".join(parts), usedforsecurity=False)
    return f"{whole.hexdigest()}-{len(parts)}"


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _store_hashed(blocks: Iterator[bytes], directory: Path) -> tuple[str, Path, int]:
    """Write blocks to ``directory/<sha256>``; the name appears only when it is whole."""
    directory.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with NamedTemporaryFile(dir=directory, prefix="incoming-", delete=False) as out:
        temporary = Path(out.name)
        try:
            for block in blocks:
                digest.update(block)
                size += len(block)
                out.write(block)
            out.flush()
            os.fsync(out.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    path = directory / digest.hexdigest()
    temporary.replace(path)
    return digest.hexdigest(), path, size


@contextmanager
def _translated(ref: ObjectRef) -> Iterator[None]:
    """Turn the client's errors into ours; ours pass."""
    try:
        yield
    except S3Error as error:
        raise _from_s3(error, ref) from error
    except (urllib3.exceptions.HTTPError, ServerError, InvalidResponseError) as error:
        msg = f"the object store did not answer for {ref}: {type(error).__name__}"
        raise ServiceUnavailableError(msg) from error
    except MinioException as error:
        msg = f"the object store's client failed for {ref}: {error}"
        raise ServiceUnavailableError(msg) from error
    except ValueError as error:
        msg = f"not a name the object store takes: {ref} ({error})"
        raise UsageError(msg) from error
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            msg = f"no space left while handling {ref}"
            raise StorageFullError(msg) from error
        raise


def _from_s3(error: S3Error, ref: ObjectRef) -> ReelgraphError:
    code = error.code or ""
    if code in _MISSING:
        return ObjectMissingError(f"{ref} is not there ({code})")
    if code in _DENIED:
        return AccessDeniedError(f"the object store refused access to {ref} ({code})")
    if code == "PreconditionFailed":
        return ObjectSupersededError(f"{ref} was replaced while it was read")
    if code in _FULL:
        return StorageFullError(f"the object store has no space left ({code})")
    if code in _BUSY:
        return ServiceUnavailableError(f"the object store is busy ({code}) for {ref}")
    return ServiceUnavailableError(f"the object store answered {code} for {ref}: {error.message}")
