"""Make a run's facts the current ones, in one transaction.

A reader sees the facts of the run before or those of this one, never a mixture and never half.
Stages whose result is published already are left alone, so the same source again writes no fact;
stages of the run before that this run did not finish lose their facts, since they rest on another
recipe or other bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, Row, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as pg_insert

from engines.contracts.base import StageDocument
from engines.contracts.media import MediaProbe, SampleDocument
from engines.contracts.vision import EmbedDocument
from engines.errors import EngineError, UsageError
from tasks.store import tables
from tasks.store.corpora import is_corpus
from tasks.store.embeddings import EmbeddingSpace, copy_embeddings, ensure_index
from tasks.store.fact_tables import coverage
from tasks.store.ids import fact_id_of
from tasks.store.rows import FACT_TABLES, FactIds, Projection, Source, project
from tasks.store.session import run_transaction

D = TypeVar("D", bound=StageDocument)

PublishStatus = Literal["published", "unchanged", "superseded"]


@dataclass(frozen=True)
class Embeddings:
    """The vectors beside an EmbedDocument."""

    vectors: NDArray[np.float32]
    """float32 [n, d], row i for ``document.embedded[i]``."""
    model_revision: str


@dataclass(frozen=True)
class PublishRequest:
    """Everything that a run found."""

    run_id: UUID
    video_id: UUID
    sources: tuple[Source, ...]
    """One per finished stage, in any order; ``stage_run_id`` is that of the producer."""
    image_uris: Mapping[str, str] = field(default_factory=dict)
    """Sample name -> where its picture can be fetched, for keyframes."""
    embeddings: Embeddings | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    """Stage without a result -> why; becomes a row of coverage, for not seen is not "not there"."""


@dataclass(frozen=True)
class PublishResult:
    """What publishing did."""

    status: PublishStatus
    reason: str = ""
    """Why it was superseded."""
    replaced: tuple[str, ...] = ()
    """Stages whose facts are new."""
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Stages of the run before that this one did not finish."""
    num_rows: int = 0
    """Fact rows written."""


def publish(engine: Engine, request: PublishRequest) -> PublishResult:
    """Publish a run, or say that something newer stands already.

    Args:
        engine: pool of connections.
        request: the documents of the run's stages.

    Raises:
        EngineError: a fact cites one that no document holds, or a stage has no stored result.
        UsageError: no such run of this video.
        ServiceUnavailableError: Postgres went away, or five attempts met deadlocks.
    """
    projections = _projections(request)
    if request.embeddings is not None:
        ensure_index(engine, request.embeddings.model_revision, request.embeddings.vectors.shape[1])
    return run_transaction(engine, lambda c: _publish(c, request, projections))


def _projections(request: PublishRequest) -> list[Projection]:
    """Rows of every stage, made before the transaction opens."""
    stages = [source.stage for source in request.sources]
    if len(set(stages)) != len(stages):
        msg = f"a stage is published twice in one run: {sorted(stages)}"
        raise EngineError(msg)
    ids = FactIds.of(request.video_id, request.sources)
    ordered = sorted(request.sources, key=lambda source: source.stage)
    return [project(ids, source, request.image_uris) for source in ordered]


def _publish(
    connection: Connection, request: PublishRequest, projections: list[Projection]
) -> PublishResult:
    video, run = _lock(connection, request)
    if reason := _superseded(connection, video, run):
        return PublishResult("superseded", reason)
    before = {
        row.stage: (row.cache_key, row.stage_run_id, row.cites)
        for row in connection.execute(
            select(tables.publications).where(tables.publications.c.video_id == video.video_id)
        )
    }
    after = {p.source.stage: _publication(p) for p in projections}
    changed = [p for p in projections if before.get(p.source.stage) != after[p.source.stage]]
    removed = sorted(set(before) - set(after))
    replaced = [p.source.stage for p in changed]
    stale = [before[stage][0] for stage in (*replaced, *removed) if stage in before]
    _delete(connection, video.video_id, stale, [*replaced, *removed])
    num_rows = sum(_insert(connection, request, projection) for projection in changed)
    num_rows += _cover_missing(connection, request)
    moved = bool(changed or removed or video.sha256 != run.sha256)
    _make_current(connection, request, run, moved=moved)
    return PublishResult(
        status="published" if moved else "unchanged",
        replaced=tuple(replaced),
        unchanged=tuple(sorted(set(after) - set(replaced))),
        removed=tuple(removed),
        num_rows=num_rows,
    )


def _lock(connection: Connection, request: PublishRequest) -> tuple[Row[Any], Row[Any]]:
    """The rows of the asset and the run; whoever publishes the same asset waits here.

    NO KEY UPDATE (which SQLAlchemy calls ``key_share``): beginning another run does not wait.
    """
    videos, runs = tables.videos, tables.runs
    video = connection.execute(
        select(videos).where(videos.c.video_id == request.video_id).with_for_update(key_share=True)
    ).one_or_none()
    run = connection.execute(
        select(runs)
        .where(runs.c.run_id == request.run_id, runs.c.video_id == request.video_id)
        .with_for_update(key_share=True)
    ).one_or_none()
    if video is None or run is None:
        msg = f"no run {request.run_id} of video {request.video_id}"
        raise UsageError(msg)
    return video, run


def _superseded(connection: Connection, video: Row[Any], run: Row[Any]) -> str:
    """Why something newer stands; empty when nothing does."""
    if run.status != "running":
        return f"the run was given up as {run.status}"
    if not is_corpus(video.bucket) and run.sha256 is None:
        msg = f"run {run.run_id} has no content: videos.record_content comes before publish"
        raise EngineError(msg)
    if run.sha256 != video.observed_sha256:
        return "the object was replaced by other bytes since this run read it"
    runs = tables.runs
    newer = connection.execute(
        select(runs.c.run_id).where(
            runs.c.run_id == video.current_run_id, runs.c.started_at > run.started_at
        )
    ).scalar_one_or_none()
    return "" if newer is None else f"run {newer}, begun later, is published already"


def _publication(projection: Projection) -> tuple[str, UUID, dict[str, str]]:
    """What the published rows of a stage depend on: when all is equal, so are the rows."""
    source, ids = projection.source, projection.ids
    cites = {kind: ids.cache_keys[kind] for kind in sorted(projection.cited)}
    cites |= projection.members
    return source.cache_key, source.stage_run_id, cites


def _delete(
    connection: Connection, video_id: UUID, cache_keys: list[str], stages: list[str]
) -> None:
    if cache_keys:
        for table in FACT_TABLES:
            connection.execute(
                delete(table).where(table.c.video_id == video_id, table.c.cache_key.in_(cache_keys))
            )
    publications = tables.publications
    connection.execute(
        delete(publications).where(
            publications.c.video_id == video_id, publications.c.stage.in_(stages)
        )
    )


def _insert(connection: Connection, request: PublishRequest, projection: Projection) -> int:
    source = projection.source
    cache_key, stage_run_id, cites = _publication(projection)
    connection.execute(
        insert(tables.publications).values(
            video_id=request.video_id,
            stage=source.stage,
            cache_key=cache_key,
            stage_run_id=stage_run_id,
            cites=cites,
        )
    )
    num_rows = 0
    for table in FACT_TABLES:
        if rows := projection.rows.get(table):
            connection.execute(insert(table), rows)
            num_rows += len(rows)
    if isinstance(source.document, EmbedDocument) and request.embeddings is not None:
        num_rows += copy_embeddings(
            connection,
            (request.video_id, stage_run_id, cache_key),
            source.document.embedded,
            request.embeddings.vectors,
            _space(request, source.document, request.embeddings),
        )
    return num_rows


def _space(
    request: PublishRequest, document: EmbedDocument, embeddings: Embeddings
) -> EmbeddingSpace:
    sample = _document(request, SampleDocument)
    if sample is None:
        msg = "embeddings are published without the sample document that holds their clock"
        raise EngineError(msg)
    return EmbeddingSpace(
        model=document.model,
        model_revision=embeddings.model_revision,
        time_base_num=sample.time_base_num,
        time_base_den=sample.time_base_den,
    )


def _cover_missing(connection: Connection, request: PublishRequest) -> int:
    """Coverage of stages that have no result; they saw nothing of what was decoded."""
    base = next((s for s in request.sources if isinstance(s.document, SampleDocument)), None)
    if base is None:
        return 0
    seen = base.document.coverage
    rows = [
        {
            "fact_id": fact_id_of(
                request.video_id, base.cache_key, f"coverage/{stage}/{reason}", ordinal
            ),
            "video_id": request.video_id,
            "stage_run_id": base.stage_run_id,
            "cache_key": base.cache_key,
            "ordinal": ordinal,
            "stage": stage,
            "covered_s": 0.0,
            "skipped_s": seen.covered_s + seen.skipped_s,
            "reason": reason,
        }
        for ordinal, (stage, reason) in enumerate(sorted(request.missing.items()), start=1)
    ]
    of_missing = [coverage.c.video_id == request.video_id, coverage.c.ordinal > 0]
    kept = [row["fact_id"] for row in rows]
    connection.execute(delete(coverage).where(*of_missing, coverage.c.fact_id.not_in(kept)))
    if not rows:
        return 0
    return connection.execute(pg_insert(coverage).on_conflict_do_nothing(), rows).rowcount


def _make_current(
    connection: Connection, request: PublishRequest, run: Row[Any], *, moved: bool
) -> None:
    now = func.clock_timestamp()
    values: dict[str, object] = {"current_run_id": run.run_id}
    if moved:
        values |= {
            "published_at": now,
            "sha256": run.sha256,
            "version_id": run.version_id,
            **_media_columns(request),
        }
    videos, runs = tables.videos, tables.runs
    connection.execute(update(videos).where(videos.c.video_id == request.video_id).values(**values))
    connection.execute(update(runs).where(runs.c.run_id == run.run_id).values(published_at=now))


def _media_columns(request: PublishRequest) -> dict[str, object]:
    """What the asset's row says of the file: as decoded, else as probed."""
    sample, probe = _document(request, SampleDocument), _document(request, MediaProbe)
    found = sample or probe
    if found is None:
        return {}
    video, audio = found.video, found.audio
    covered, skipped = found.coverage.covered_s, found.coverage.skipped_s
    total = covered + skipped
    return {
        "container": found.media.container,
        "duration_s": found.media.duration_s or found.media.declared_duration_s,
        "start_s": found.media.start_s,
        "width": video and video.width,
        "height": video and video.height,
        "frame_count": video and video.frames_decoded,
        "video_codec": video and video.codec,
        "audio_codec": audio and audio.codec,
        "verdict": sample.verdict if sample else None,
        "decoded_fraction": covered / total if sample and total > 0 else None,
        "problems": [problem.model_dump(mode="json") for problem in found.problems],
    }


def _document(request: PublishRequest, kind: type[D]) -> D | None:
    for source in request.sources:
        if isinstance(source.document, kind):
            return source.document
    return None
