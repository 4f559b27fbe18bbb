"""fetch: from a bucket and key to bytes with a SHA-256 of our own."""

import time

from prefect import task

from engines.contracts.base import Contract
from engines.errors import EmptyInputError
from tasks.objects.client import ObjectVersion
from tasks.recipe import code_version
from tasks.resources import get_resources
from tasks.run import Run, content_of, read_pinned
from tasks.stage import TASK_OPTIONS, stage_run
from tasks.store import runs, videos

NAME = "fetch"


class Content(Contract):
    """The bytes that a run is about."""

    sha256: str
    cached: bool
    """True when this very version of the object was read before; then nothing was read now."""


def fetch(run: Run) -> Content:
    """Pin the object's version and know its bytes, reading them only when they are new.

    Raises:
        ObjectMissingError: nothing is there (retried: a new object can be slow to appear).
        EmptyInputError: zero bytes.
        ObjectSupersededError: it was replaced while it was read.
    """
    world = get_resources()
    identity = runs.StageIdentity(
        stage=NAME, code_version=code_version(("tasks.fetch", "tasks.objects")), pool="cpu"
    )
    with stage_run(run, identity, None) as finish:
        started = time.monotonic()
        version = world.objects.stat(run.ref, run.version_id)
        if version.size_bytes == 0:
            msg = f"{run.ref} is empty (0 bytes)"
            raise EmptyInputError(msg)
        sha256 = _known(version)
        cached = sha256 is not None
        if sha256 is None:
            version, sha256, _ = read_pinned(world, run)
        videos.record_content(world.db, content_of(version, sha256), run_id=run.run_id)
        finish.outcome = runs.StageOutcome(
            status="cached" if cached else "done", seconds=time.monotonic() - started
        )
    return Content(sha256=sha256, cached=cached)


@task(name=NAME, **TASK_OPTIONS)
def fetch_object(run: Run) -> Content:
    """Run the stage for one video."""
    return fetch(run)


def _known(version: ObjectVersion) -> str | None:
    return videos.known_sha256(
        get_resources().db,
        version.ref.bucket,
        version.ref.key,
        etag=version.etag,
        version_id=version.version_id,
        size_bytes=version.size_bytes,
    )
