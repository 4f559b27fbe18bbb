"""The one place that knows how a stage runs.

    begin a row -> look up the result by its cache key -> else take the lease, compute in a child
    process under a time limit, store document and blobs, record the result -> finish the row

Every stage can run twice: a result is named by its content and recipe, a lease in Postgres says
who computes it, and storing it checks that the lease is still held. Retrying is left to Prefect,
which asks ``is_retryable``; there is no second owner of retries.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

from opentelemetry import trace
from prefect import State, Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import TaskRun
from prefect.runtime import task_run
from pydantic import Field

from engines.contracts.base import Contract
from engines.errors import ReelgraphError, StageTimeoutError
from engines.runtime.manifest import EngineDescription
from tasks.compute.call import DOCUMENT, P, StageCall, Usage, execute
from tasks.objects.artifacts import Artifact
from tasks.recipe import Recipe, cache_key, code_version
from tasks.resources import Resources, get_resources
from tasks.run import Run, fetch_content
from tasks.store import results, runs

Child = Literal["decode", "model"]
Pool = Literal["cpu", "gpu", "llm"]
T = TypeVar("T")

RUNNER_CODE = ("tasks.clean", "tasks.compute.call")
LEASE_POLL_S = 0.5
SETTLE_S = 60.0
"""How much longer than a stage's own limit another worker's lease is waited for."""
DOCUMENT_KIND = "application/json"
KINDS = {".npy": "application/x-npy", ".zip": "application/zip", ".jpg": "image/jpeg"}

_tracer = trace.get_tracer("reelgraph")


@dataclass(frozen=True)
class Stage(Generic[P]):
    """One stage of the pipeline: what it computes and where it may run."""

    name: str
    compute: str
    """``module:function`` in ``tasks.compute``, imported only in the child that calls it: the
    flow's own process stays free of decoders and models."""
    params: type[P]
    code: tuple[str, ...]
    """Modules and packages whose source is part of the recipe."""
    outputs: tuple[str, ...] = ()
    """Glob patterns of the blobs that ``compute`` leaves in its work directory."""
    child: Child = "model"
    pool: Pool = "cpu"
    """The work pool that fits it best; ``flows.placement`` sends it there."""
    timeout_s: float = 1800.0


class StageRef(Contract):
    """A finished stage, small enough to pass between tasks: hashes and ids, no content."""

    stage: str
    cache_key: str
    document: str
    """SHA-256 of the output document."""
    outputs: dict[str, str] = Field(default_factory=dict)
    """Blob name -> SHA-256."""
    produced_by: UUID
    model_revision: str
    cached: bool
    degraded: tuple[str, ...] = ()

    def blobs(self, *names: str) -> dict[str, str]:
        """Those of the named blobs that there are, by name; a file without sound has no audio."""
        return {name: self.outputs[name] for name in names if name in self.outputs}


def is_retryable(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """Prefect's question whether another try can help: only our retryable errors can."""
    del task, run
    error = state.result(raise_on_failure=False)
    return isinstance(error, ReelgraphError) and error.retryable


TASK_OPTIONS: dict[str, Any] = {
    "retries": 2,
    "retry_delay_seconds": [1, 5],
    "retry_condition_fn": is_retryable,
    # Results are ours to keep, by content and recipe; Prefect's keys hold source text and pickles.
    "cache_policy": NO_CACHE,
    "persist_result": False,
}


def run_stage(
    stage: Stage[P],
    run: Run,
    inputs: Mapping[str, str],
    params: P,
    description: EngineDescription,
    *,
    prompts: Mapping[str, str] | None = None,
) -> StageRef:
    """The result of a stage over ``inputs`` (name -> SHA-256), computed only when it is new.

    Raises:
        ReelgraphError: the stage failed; the row of the stage run says how.
    """
    recipe = recipe_of(stage, params, description, prompts)
    key = cache_key(inputs, recipe)
    identity = runs.StageIdentity(
        stage=stage.name,
        code_version=recipe.code_version,
        engine=recipe.engine,
        model=recipe.model,
        model_revision=recipe.model_revision,
        device=description.device,
        pool=stage.pool,
        attempt=_attempt(),
    )
    with stage_run(run, identity, key) as finish:
        world = get_resources()
        found = find_usable(world, key, recipe)
        if found is None:
            with _lease(world, key, recipe, stage.timeout_s + SETTLE_S) as held:
                if isinstance(held, StageRef):
                    found = held
                else:
                    job = _Job(stage, run, recipe, inputs, params, held)
                    return _compute(world, job, finish)
        finish.cached(found)
        return found


def recipe_of(
    stage: Stage[P],
    params: P,
    description: EngineDescription,
    prompts: Mapping[str, str] | None = None,
) -> Recipe:
    """Everything beside the inputs that decides what a stage computes."""
    return Recipe(
        stage=stage.name,
        code_version=code_version((*stage.code, *RUNNER_CODE)),
        engine=description.engine,
        model=description.model,
        model_revision=description.model_revision,
        params=params.model_dump(mode="json"),
        prompts=dict(prompts or {}),
    )


def find_usable(world: Resources, key: str, recipe: Recipe) -> StageRef | None:
    """The stored result under a key, unless one of its artifacts is gone from the store."""
    result = results.find_result(world.db, key)
    if result is None:
        return None
    for sha256 in (result.document_sha256, *result.outputs.values()):
        if not world.objects.exists(world.artifacts.reference(sha256)):
            return None
    return _ref(result, recipe, cached=True)


def _ref(
    result: results.StageResult,
    recipe: Recipe,
    *,
    cached: bool,
    degraded: tuple[str, ...] = (),
) -> StageRef:
    return StageRef(
        stage=result.stage,
        cache_key=result.cache_key,
        document=result.document_sha256,
        outputs=result.outputs,
        produced_by=result.stage_run_id,
        model_revision=recipe.model_revision,
        cached=cached,
        degraded=degraded,
    )


@dataclass
class Finish:
    """How a stage run ends; exactly one of its methods is called."""

    world: Resources
    stage_run_id: UUID
    outcome: runs.StageOutcome | None = None

    def cached(self, found: StageRef) -> None:
        """The result was there already."""
        self.outcome = runs.StageOutcome(
            status="cached", cache_key=found.cache_key, produced_by=found.produced_by
        )

    def computed(self, usage: Usage) -> None:
        """It was computed here."""
        self.outcome = runs.StageOutcome(
            status="done",
            seconds=usage.seconds,
            cpu_seconds=usage.cpu_seconds,
            peak_rss_bytes=usage.peak_rss_bytes,
            degraded=usage.degraded,
        )

    def skipped(self, reason: str) -> None:
        """There was nothing for it to work on."""
        self.outcome = runs.StageOutcome(status="skipped", degraded=(), error_message=reason)


@contextmanager
def stage_run(run: Run, identity: runs.StageIdentity, key: str | None) -> Iterator[Finish]:
    """A row that says a stage runs, and in the end how it went, with a span around it."""
    world = get_resources()
    stage_run_id = runs.start_stage_run(world.db, run.run_id, identity, cache_key=key)
    finish = Finish(world, stage_run_id)
    attributes = {"reelgraph.stage": identity.stage, "reelgraph.engine": identity.engine or ""}
    with _tracer.start_as_current_span(f"stage.{identity.stage}", attributes=attributes) as span:
        try:
            yield finish
        except ReelgraphError as error:
            finish.outcome = runs.StageOutcome(
                status="failed", error_code=error.code, error_message=str(error)
            )
            raise
        finally:
            outcome = finish.outcome or runs.StageOutcome(
                status="failed", error_code="internal", error_message="ended by an unknown error"
            )
            span.set_attribute("reelgraph.status", outcome.status)
            runs.finish_stage_run(world.db, stage_run_id, outcome)


def skip_stage(run: Run, stage: str, reason: str) -> None:
    """Record that a stage had nothing to work on."""
    with stage_run(run, runs.StageIdentity(stage=stage), None) as finish:
        finish.skipped(reason)


@dataclass(frozen=True)
class _Job(Generic[P]):
    """One computation whose lease is held."""

    stage: Stage[P]
    run: Run
    recipe: Recipe
    inputs: Mapping[str, str]
    params: P
    lease: results.Lease


def _compute(world: Resources, job: _Job[P], finish: Finish) -> StageRef:
    stage, key = job.stage, job.lease.cache_key
    work_dir = world.artifacts.work_dir(key)
    call = StageCall(
        inputs={name: _local(world, job.run, name, sha256) for name, sha256 in job.inputs.items()},
        params=job.params,
        work_dir=work_dir,
        cache_dir=world.cache_dir,
        threads=world.settings.engine_threads,
    )
    child = world.decode_child if stage.child == "decode" else world.model_child
    usage = child.run(stage.timeout_s, execute, stage.compute, call)
    document = world.artifacts.put(work_dir / DOCUMENT, DOCUMENT_KIND)
    blobs = {path.name: _put(world, path) for path in _blobs(work_dir, stage.outputs)}
    result = results.store_result(
        world.db,
        job.lease,
        stage=stage.name,
        stage_run_id=finish.stage_run_id,
        recipe=job.recipe.model_dump(mode="json"),
        inputs=job.inputs,
        document=document,
        blobs=blobs,
        reusable=usage.reusable,
    )
    world.artifacts.drop_work_dir(key)
    finish.computed(usage)
    return _ref(result, job.recipe, cached=False, degraded=usage.degraded)


def _local(world: Resources, run: Run, name: str, sha256: str) -> Path:
    """Path of an input on this machine; the video itself is read again when it is not here."""
    if name == "content" and not world.artifacts.has_local(sha256):
        return fetch_content(world, run, sha256)
    return world.artifacts.local(sha256)


def _blobs(work_dir: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path for pattern in patterns for path in work_dir.glob(pattern)})


def _put(world: Resources, path: Path) -> Artifact:
    return world.artifacts.put(path, KINDS[path.suffix])


@contextmanager
def _lease(
    world: Resources, key: str, recipe: Recipe, patience_s: float
) -> Iterator[results.Lease | StageRef]:
    """Hold the lease on a result, renewed until the block ends; or the result, made meanwhile."""
    lease_s = world.settings.lease_s
    deadline = time.monotonic() + patience_s
    while (lease := results.acquire_lease(world.db, key, lease_s=lease_s)) is None:
        if time.monotonic() > deadline:
            msg = f"another worker holds {key[:12]} and did not finish in {patience_s:g} s"
            raise StageTimeoutError(msg)
        time.sleep(LEASE_POLL_S)
        if (found := find_usable(world, key, recipe)) is not None:
            yield found
            return
    if (found := find_usable(world, key, recipe)) is not None:
        results.release_lease(world.db, lease)
        yield found
        return
    done = threading.Event()
    renewal = threading.Thread(
        target=_renew, args=(world, lease, lease_s, done), name=f"lease-{key[:8]}", daemon=True
    )
    renewal.start()
    try:
        yield lease
    finally:
        done.set()
        renewal.join()
        results.release_lease(world.db, lease)


def _renew(world: Resources, lease: results.Lease, lease_s: float, done: threading.Event) -> None:
    """Renew until ``done``. A lease that is lost stops this; storing the result will refuse."""
    while not done.wait(lease_s / 3):
        try:
            results.renew_lease(world.db, lease, lease_s=lease_s)
        except ReelgraphError as error:
            if not error.retryable:
                return


def _attempt() -> int:
    """How often Prefect has started this task run; 1 outside of one."""
    count: int | None = task_run.run_count
    return max(1, count or 1)
