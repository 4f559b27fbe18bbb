"""Runs and stage runs: progress, endings, and what is left by a dead process."""

from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine
from store_data import DOCUMENTS, Pipeline, digest, value

from engines.errors import NotMediaError, ObjectMissingError, ServiceUnavailableError, UsageError
from tasks.store import results, runs, videos


def test_progress_by_run_and_by_flow_run(db: Engine, pipeline: Pipeline) -> None:
    request = pipeline.request()
    flow_run_id = uuid4()
    runs.start_run(db, request.video_id, run_id=request.run_id, prefect_flow_run_id=flow_run_id)
    progress = runs.run_progress(db, flow_run_id)
    assert progress == runs.run_progress(db, request.run_id)
    assert (progress.status, progress.key) == ("running", pipeline.key)
    assert progress.sha256 == digest("bytes")
    assert {stage.stage for stage in progress.stages} == set(DOCUMENTS)
    assert {stage.status for stage in progress.stages} == {"done"}
    assert all(stage.produced_by == stage.stage_run_id for stage in progress.stages)
    again = pipeline.request()
    cached = runs.run_progress(db, again.run_id)
    assert {(stage.status, stage.cached) for stage in cached.stages} == {("cached", True)}


def test_an_ending_is_recorded_once(db: Engine, pipeline: Pipeline) -> None:
    run_id, _ = pipeline.start()
    error = ServiceUnavailableError("the store is not there")
    runs.finish_run(db, run_id, "failed", error=error, degraded=["no gpu", "no gpu"])
    runs.finish_run(db, run_id, "done")
    run = runs.run_progress(db, run_id)
    assert (run.status, run.error_code, run.error_retryable) == (
        "failed",
        "service_unavailable",
        True,
    )
    assert run.degraded == ("no gpu",)
    assert run.finished_at is not None


def test_a_refused_asset_says_so_and_has_no_facts(db: Engine, pipeline: Pipeline) -> None:
    run_id, video_id = pipeline.start()
    runs.finish_run(db, run_id, "refused", error=NotMediaError("a playlist"))
    assert videos.get_video(db, video_id).verdict == "refused"
    assert value(db, "select count(*) from reel.videos where verdict = 'refused'") == 1
    assert value(db, "select count(*) from reel.facts") == 0


def test_a_refusal_does_not_touch_published_facts(db: Engine, pipeline: Pipeline) -> None:
    pipeline.publish()
    run_id, video_id = pipeline.start()
    runs.finish_run(db, run_id, "refused", error=NotMediaError("replaced by a script"))
    assert videos.get_video(db, video_id).verdict == "partial"


def test_a_stage_run_ends_once(db: Engine, pipeline: Pipeline) -> None:
    run_id, _ = pipeline.start()
    stage_run_id = runs.start_stage_run(db, run_id, runs.StageIdentity(stage="embed", attempt=2))
    big = 200 * 2**30
    runs.finish_stage_run(db, stage_run_id, runs.StageOutcome(status="done", peak_rss_bytes=big))
    runs.finish_stage_run(db, stage_run_id, runs.StageOutcome(status="failed"))
    [stage] = runs.run_progress(db, run_id).stages
    assert stage.status == "done"
    assert value(db, "select peak_rss_bytes from reel.stage_runs") == big


def test_a_dead_run_is_marked_once_and_a_working_one_is_left_alone(
    db: Engine, pipeline: Pipeline
) -> None:
    dead, video_id = pipeline.start()
    runs.start_stage_run(db, dead, runs.StageIdentity(stage="listen"))
    working, _ = pipeline.start()
    runs.start_stage_run(db, working, runs.StageIdentity(stage="embed"), cache_key=digest("k"))
    assert results.acquire_lease(db, digest("k"), lease_s=30) is not None
    asking, _ = pipeline.start()
    assert runs.close_abandoned(db, video_id, keep=asking) == 0
    assert runs.close_abandoned(db, video_id, keep=asking, silent_s=0.0) == 1
    assert runs.close_abandoned(db, video_id, keep=asking, silent_s=0.0) == 0
    crashed = runs.run_progress(db, dead)
    assert (crashed.status, crashed.stages[0].status) == ("crashed", "failed")
    assert runs.run_progress(db, working).status == "running"
    runs.finish_run(db, dead, "done")
    assert runs.run_progress(db, dead).status == "crashed"


def test_unknown_names_are_named(db: Engine) -> None:
    unknown = UUID(int=7)
    with pytest.raises(UsageError, match=str(unknown)):
        runs.run_progress(db, unknown)
    with pytest.raises(UsageError, match=str(unknown)):
        videos.get_video(db, unknown)
    with pytest.raises(ObjectMissingError, match="not known"):
        runs.start_run(db, unknown)
    with pytest.raises(UsageError, match="no known run"):
        runs.start_stage_run(db, unknown, runs.StageIdentity(stage="probe"))
    assert videos.find_videos(db, "nothing") == []


def test_a_video_is_found_by_every_name(db: Engine, pipeline: Pipeline) -> None:
    _, video_id = pipeline.start()
    names = (
        str(video_id),
        pipeline.key,
        f"videos/{pipeline.key}",
        f"s3://videos/{pipeline.key}",
        digest("bytes"),
    )
    for name in names:
        assert [row.video_id for row in videos.find_videos(db, name)] == [video_id]


def test_an_object_version_is_remembered_exactly(db: Engine, pipeline: Pipeline) -> None:
    pipeline.start()

    def known(etag: str = "e1", version_id: str | None = None, size: int = 3_221_225_472):
        return videos.known_sha256(
            db, "videos", pipeline.key, etag=etag, version_id=version_id, size_bytes=size
        )

    assert known() == digest("bytes")
    assert [known(etag="e2"), known(version_id="v"), known(size=1)] == [None, None, None]
