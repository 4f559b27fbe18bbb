"""Runs and their stage runs: what happened, when, at what cost, and how it ended."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID, uuid4

from sqlalchemy import Engine, Row, and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from engines.contracts.base import Contract
from engines.errors import ReelgraphError, UsageError
from tasks.store import tables
from tasks.store.session import transaction

RunStatus = Literal["running", "done", "partial", "failed", "refused", "superseded", "crashed"]
StageStatus = Literal["running", "done", "cached", "skipped", "failed"]


class StageIdentity(Contract):
    """What a stage run is about to do, known before it does it."""

    stage: str
    code_version: str | None = None
    engine: str | None = None
    model: str | None = None
    model_revision: str | None = None
    device: str | None = None
    pool: str | None = None
    attempt: int = 1


class StageOutcome(Contract):
    """How a stage run ended and what it cost."""

    status: StageStatus
    cache_key: str | None = None
    produced_by: UUID | None = None
    """The stage run that first computed the result; None means this one when it is ``done``."""
    seconds: float | None = None
    cpu_seconds: float | None = None
    peak_rss_bytes: int | None = None
    degraded: tuple[str, ...] = ()
    error_code: str | None = None
    error_message: str | None = None


class StageProgress(Contract):
    """One stage run as the command line shows it."""

    stage_run_id: UUID
    stage: str
    status: StageStatus
    cached: bool
    cache_key: str | None
    produced_by: UUID | None
    engine: str | None
    started_at: datetime
    finished_at: datetime | None
    seconds: float | None
    degraded: tuple[str, ...]
    error_code: str | None
    error_message: str | None


class RunProgress(Contract):
    """A run and its stage runs so far, in the order in which they began."""

    run_id: UUID
    video_id: UUID
    bucket: str
    key: str
    sha256: str | None
    status: RunStatus
    prefect_flow_run_id: UUID | None
    started_at: datetime
    finished_at: datetime | None
    published_at: datetime | None
    error_code: str | None
    error_message: str | None
    error_retryable: bool | None
    degraded: tuple[str, ...]
    stages: tuple[StageProgress, ...]


def start_run(
    engine: Engine,
    video_id: UUID,
    *,
    run_id: UUID | None = None,
    recipe_hash: str | None = None,
    code_version: str | None = None,
    prefect_flow_run_id: UUID | None = None,
) -> UUID:
    """Begin a run over an asset; beginning one with the same id again (a retry) resumes it.

    Raises:
        ObjectMissingError: the asset has no row (``videos.ensure_video`` makes it).
    """
    run_id = run_id or uuid4()
    values = {
        "status": "running",
        "recipe_hash": recipe_hash,
        "code_version": code_version,
        "prefect_flow_run_id": prefect_flow_run_id,
    }
    statement = insert(tables.runs).values(run_id=run_id, video_id=video_id, **values)
    cleared = {"finished_at": None, "error_code": None, "error_message": None}
    with transaction(engine) as connection:
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["run_id"], set_=values | cleared | {"error_retryable": None}
            )
        )
    return run_id


def finish_run(
    engine: Engine,
    run_id: UUID,
    status: RunStatus,
    *,
    error: ReelgraphError | None = None,
    degraded: Sequence[str] = (),
) -> None:
    """Record how a run ended, once: the late word of one that was given up changes nothing.

    An asset that was refused and never published says so too.
    """
    runs, videos = tables.runs, tables.videos
    with transaction(engine) as connection:
        video_id = connection.execute(
            update(runs)
            .where(runs.c.run_id == run_id, runs.c.status == "running")
            .values(
                status=status,
                finished_at=func.clock_timestamp(),
                error_code=None if error is None else error.code,
                error_message=None if error is None else str(error),
                error_retryable=None if error is None else error.retryable,
                degraded=list(dict.fromkeys(degraded)),
            )
            .returning(runs.c.video_id)
        ).scalar_one_or_none()
        if status == "refused":
            connection.execute(
                update(videos)
                .where(videos.c.video_id == video_id, videos.c.published_at.is_(None))
                .values(verdict="refused")
            )


def start_stage_run(
    engine: Engine, run_id: UUID, identity: StageIdentity, *, cache_key: str | None = None
) -> UUID:
    """Begin a stage run.

    Raises:
        UsageError: no such run.
    """
    stage_run_id = uuid4()
    with transaction(engine) as connection:
        connection.execute(
            insert(tables.stage_runs).values(
                stage_run_id=stage_run_id,
                run_id=run_id,
                cache_key=cache_key,
                status="running",
                **identity.model_dump(),
            )
        )
    return stage_run_id


def finish_stage_run(engine: Engine, stage_run_id: UUID, outcome: StageOutcome) -> None:
    """Record how a stage run ended, once: what has ended stays as it is."""
    values = outcome.model_dump(exclude={"cache_key"})
    if outcome.status == "done" and outcome.produced_by is None:
        values["produced_by"] = stage_run_id
    if outcome.cache_key is not None:
        values["cache_key"] = outcome.cache_key
    values |= {
        "degraded": list(outcome.degraded),
        "cached": outcome.status == "cached",
        "finished_at": func.clock_timestamp(),
    }
    table = tables.stage_runs
    with transaction(engine) as connection:
        connection.execute(
            update(table)
            .where(table.c.stage_run_id == stage_run_id, table.c.status == "running")
            .values(**values)
        )


def close_abandoned(
    engine: Engine,
    video_id: UUID | None = None,
    *,
    keep: UUID | None = None,
    silent_s: float = 120.0,
) -> int:
    """Mark runs crashed whose process died silently; how many there were.

    A run is taken for dead when it still says ``running``, is not ``keep``, began or ended no
    stage for ``silent_s``, and holds no live lease: whoever computes renews one. Such a run can
    no longer publish.

    Args:
        engine: pool of connections.
        video_id: look at this asset alone; None for all.
        keep: the run that asks, if one does.
        silent_s: a run waits for so long at most between two stages.
    """
    runs, stage_runs, leases = tables.runs, tables.stage_runs, tables.leases
    alive = (
        select(stage_runs.c.run_id)
        .join(leases, leases.c.cache_key == stage_runs.c.cache_key)
        .where(stage_runs.c.status == "running", leases.c.expires_at > func.clock_timestamp())
    )
    since = func.clock_timestamp() - timedelta(seconds=silent_s)
    active = select(stage_runs.c.run_id).where(
        func.coalesce(stage_runs.c.finished_at, stage_runs.c.started_at) > since
    )
    dead = and_(
        video_id is None or runs.c.video_id == video_id,
        runs.c.run_id.is_distinct_from(keep),
        runs.c.status == "running",
        runs.c.started_at <= since,
        runs.c.run_id.not_in(alive),
        runs.c.run_id.not_in(active),
    )
    now = func.clock_timestamp()
    message = "its process died; the work goes on in a later run"
    with transaction(engine) as connection:
        ended = connection.execute(
            update(runs)
            .where(dead)
            .values(status="crashed", finished_at=now, error_code="crashed", error_message=message)
            .returning(runs.c.run_id)
        ).scalars()
        run_ids = list(ended)
        connection.execute(
            update(stage_runs)
            .where(stage_runs.c.run_id.in_(run_ids), stage_runs.c.status == "running")
            .values(status="failed", finished_at=now, error_code="crashed", error_message=message)
        )
    return len(run_ids)


def run_progress(engine: Engine, run_id: UUID) -> RunProgress:
    """A run by its own id or by the id of its Prefect flow run (then the latest of them).

    Raises:
        UsageError: no such run.
    """
    runs, videos, stage_runs = tables.runs, tables.videos, tables.stage_runs
    with transaction(engine) as connection:
        run = connection.execute(
            select(runs, videos.c.bucket, videos.c.key)
            .join(videos, videos.c.video_id == runs.c.video_id)
            .where(or_(runs.c.run_id == run_id, runs.c.prefect_flow_run_id == run_id))
            .order_by(runs.c.started_at.desc())
            .limit(1)
        ).one_or_none()
        if run is None:
            msg = f"no run {run_id}"
            raise UsageError(msg)
        stages = connection.execute(
            select(stage_runs)
            .where(stage_runs.c.run_id == run.run_id)
            .order_by(stage_runs.c.started_at, stage_runs.c.stage_run_id)
        ).all()
    picked = _pick(RunProgress, run)
    return RunProgress(
        **picked, stages=tuple(StageProgress(**_pick(StageProgress, s)) for s in stages)
    )


def known_progress(engine: Engine, run_id: UUID) -> RunProgress | None:
    """The same, or None where there is no such run: its process has not begun, or never did."""
    try:
        return run_progress(engine, run_id)
    except UsageError:
        return None


def _pick(model: type[Contract], row: Row[tuple[object, ...]]) -> dict[str, object]:
    """The columns of ``row`` that ``model`` has."""
    mapping = row._mapping
    return {name: mapping[name] for name in model.model_fields if name in mapping}
