"""One run over one video: its row in Postgres, how it ends, and the bytes that it reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from engines.contracts.base import Contract
from engines.errors import (
    ObjectSupersededError,
    ReelgraphError,
    RefusedError,
)
from tasks.objects.client import ObjectVersion
from tasks.objects.keys import ObjectRef
from tasks.resources import Resources, get_resources
from tasks.store import runs, videos


class Run(Contract):
    """A run as it is passed between tasks."""

    run_id: UUID
    video_id: UUID
    bucket: str
    key: str
    version_id: str | None
    """The version asked for; None means whatever is there when it is fetched."""

    @property
    def ref(self) -> ObjectRef:
        """The object that this run reads."""
        return ObjectRef(self.bucket, self.key)


@dataclass
class Ending:
    """What the end of a run will say; the flow adds to it on the way."""

    degraded: list[str] = field(default_factory=list)
    partial: bool = False
    """Some stage failed or some part of the file could not be decoded."""


@contextmanager
def open_run(
    bucket: str,
    key: str,
    version_id: str | None,
    *,
    recipe_hash: str,
    code_version: str,
    flow_run_id: UUID | None,
) -> Iterator[tuple[Run, Ending]]:
    """A row for the run from its first moment to its end, whatever that is.

    Raises:
        ReelgraphError: what ended the run, after it was recorded.
    """
    db = get_resources().db
    video_id = videos.ensure_video(db, bucket, key)
    run_id = runs.start_run(
        db,
        video_id,
        run_id=uuid4(),
        recipe_hash=recipe_hash,
        code_version=code_version,
        prefect_flow_run_id=flow_run_id,
    )
    runs.close_abandoned(db, video_id, keep=run_id)
    run = Run(run_id=run_id, video_id=video_id, bucket=bucket, key=key, version_id=version_id)
    ending = Ending()
    try:
        yield run, ending
    except ReelgraphError as error:
        runs.finish_run(db, run_id, _status_of(error), error=error, degraded=ending.degraded)
        raise
    except BaseException as error:
        unknown = ReelgraphError(f"{type(error).__name__}: {error}")
        runs.finish_run(db, run_id, "failed", error=unknown, degraded=ending.degraded)
        raise
    status: runs.RunStatus = "partial" if ending.partial else "done"
    runs.finish_run(db, run_id, status, degraded=ending.degraded)


def fetch_content(world: Resources, run: Run, expected_sha256: str | None) -> Path:
    """Read the run's object into the scratch directory, named by its SHA-256.

    Raises:
        ObjectSupersededError: it holds other bytes than ``expected_sha256`` by now.
    """
    _, _, path = read_pinned(world, run)
    if expected_sha256 is not None and path.name != expected_sha256:
        msg = f"{run.ref} holds other bytes than when this run began"
        raise ObjectSupersededError(msg)
    return path


def read_pinned(world: Resources, run: Run) -> tuple[ObjectVersion, str, Path]:
    """Pin the object's version, stream it to the scratch directory, and name it by content."""
    version = world.objects.stat(run.ref, run.version_id)
    world.artifacts.make_room()
    sha256, path = world.objects.download(
        version, world.artifacts.files_dir, world.settings.max_object_bytes
    )
    return version, sha256, path


def content_of(version: ObjectVersion, sha256: str) -> videos.ObjectContent:
    """What the store keeps of one version of an object."""
    return videos.ObjectContent(
        bucket=version.ref.bucket,
        key=version.ref.key,
        etag=version.etag,
        version_id=version.version_id,
        size_bytes=version.size_bytes,
        sha256=sha256,
        modified_at=version.modified_at,
    )


def _status_of(error: ReelgraphError) -> runs.RunStatus:
    if isinstance(error, RefusedError):
        return "refused"
    if isinstance(error, ObjectSupersededError):
        return "superseded"
    return "failed"
