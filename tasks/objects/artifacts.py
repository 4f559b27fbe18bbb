"""Content-addressed artifacts: what stages make, named by the SHA-256 of their bytes.

An artifact is written before any row mentions it, and never changed. A local copy lies in the
scratch directory under the same name, so that stages on one machine hand files to each other
without a second read from the store.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from engines.errors import ObjectMissingError
from tasks.objects.client import ObjectStore, sha256_of
from tasks.objects.keys import ObjectRef, artifact_key


@dataclass(frozen=True)
class Artifact:
    """A stored artifact."""

    sha256: str
    uri: str
    size_bytes: int
    kind: str
    """Media type of the bytes."""


class ArtifactStore:
    """Artifacts in one bucket with a local copy of each in ``scratch_dir``."""

    def __init__(
        self, objects: ObjectStore, bucket: str, scratch_dir: Path, scratch_max_bytes: int
    ) -> None:
        """Use ``bucket`` of ``objects``; keep at most ``scratch_max_bytes`` of local copies."""
        self._objects = objects
        self._bucket = bucket
        self._files = scratch_dir / "sha256"
        self._work = scratch_dir / "work"
        self._max_bytes = scratch_max_bytes

    @property
    def files_dir(self) -> Path:
        """Local copies, each named by its SHA-256."""
        self._files.mkdir(parents=True, exist_ok=True)
        return self._files

    def work_dir(self, name: str) -> Path:
        """A directory that outlives a killed process, so that work in chunks can resume."""
        path = self._work / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def drop_work_dir(self, name: str) -> None:
        """Forget the intermediate files of finished work."""
        shutil.rmtree(self._work / name, ignore_errors=True)

    def put(self, path: Path, kind: str) -> Artifact:
        """Store a file unless the same bytes are there; the local copy moves to scratch."""
        sha256 = sha256_of(path)
        ref = ObjectRef(self._bucket, artifact_key(sha256))
        size = path.stat().st_size
        if not self._objects.exists(ref):
            self._objects.upload(ref, path, content_type=kind)
        local = self.files_dir / sha256
        if path != local:
            path.replace(local)
        return Artifact(sha256=sha256, uri=str(ref), size_bytes=size, kind=kind)

    def local(self, sha256: str) -> Path:
        """Path of the local copy, fetched when it is not here; its bytes are verified.

        Raises:
            ObjectMissingError: the artifact is in neither place.
        """
        path = self.files_dir / sha256
        if path.exists():
            os.utime(path)
            return path
        ref = ObjectRef(self._bucket, artifact_key(sha256))
        self.make_room()
        found, path = self._objects.download(
            self._objects.stat(ref), self.files_dir, self._max_bytes
        )
        if found != sha256:
            path.unlink(missing_ok=True)
            msg = f"{ref} holds other bytes than its name says ({found})"
            raise ObjectMissingError(msg)
        return path

    def has_local(self, sha256: str) -> bool:
        """Whether a local copy is here now."""
        return (self._files / sha256).exists()

    def reference(self, sha256: str) -> ObjectRef:
        """Where an artifact lies in the store."""
        return ObjectRef(self._bucket, artifact_key(sha256))

    def make_room(self) -> None:
        """Delete the local copies used longest ago until they fit the bound again."""
        files = sorted(
            ((entry.stat(), Path(entry.path)) for entry in os.scandir(self.files_dir)),
            key=lambda pair: pair[0].st_mtime,
        )
        excess = sum(stat.st_size for stat, _ in files) - self._max_bytes
        for stat, path in files:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= stat.st_size
