"""Pure key layout: where things lie in the buckets and how a source is written.

Object keys are data: they are never decoded, normalised or used as a local file name. Local
files are named by the SHA-256 of their bytes.
"""

import os
from pathlib import Path
from typing import NamedTuple

from engines.errors import UsageError

S3_SCHEME = "s3://"
UPLOAD_PREFIX = "uploads/"
MAX_KEY_BYTES = 1024
"""Longest key that S3 takes, in UTF-8 bytes."""


class ObjectRef(NamedTuple):
    """One object by name; whatever version is there now."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{S3_SCHEME}{self.bucket}/{self.key}"


def parse_s3_uri(uri: str) -> ObjectRef:
    """Split ``s3://bucket/key`` at the first slash; the key is taken as it stands.

    Raises:
        UsageError: no bucket, or not an s3 URI.
    """
    if not uri.startswith(S3_SCHEME):
        msg = f"not an s3:// address: {uri!r}"
        raise UsageError(msg)
    bucket, _, key = uri.removeprefix(S3_SCHEME).partition("/")
    if not bucket:
        msg = f"no bucket in {uri!r}; expected s3://bucket/key"
        raise UsageError(msg)
    return ObjectRef(bucket, key)


def artifact_key(sha256: str) -> str:
    """Key of an artifact in the artifacts bucket; two levels keep listings short."""
    return f"sha256/{sha256[:2]}/{sha256[2:4]}/{sha256}"


def upload_key(path: Path, sha256: str) -> str:
    """Key under which a local file is uploaded: two files of one name do not collide.

    Raises:
        UsageError: the name is too long for a key.
    """
    name = os.fsencode(path.name).decode("utf-8", "replace")
    key = f"{UPLOAD_PREFIX}{sha256[:12]}/{name}"
    if len(key.encode()) > MAX_KEY_BYTES:
        msg = f"file name of {len(name)} characters is too long for an object key"
        raise UsageError(msg)
    return key
