"""Stage results under their cache keys; leases, takeover and fencing."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from sqlalchemy import Engine
from store_data import Pipeline, digest, rows, value

from engines.errors import LeaseLostError
from tasks.store import artifacts, results, runs
from tasks.store.artifacts import ArtifactRow

KEY = digest("key")


def artifact(name: str) -> ArtifactRow:
    return ArtifactRow(sha256=digest(name), uri=f"s3://a/{name}", size_bytes=2**33, kind="x/y")


@pytest.fixture
def stage_run_id(pipeline: Pipeline) -> UUID:
    run_id, _ = pipeline.start()
    return runs.start_stage_run(pipeline.engine, run_id, runs.StageIdentity(stage="listen"))


def store(db: Engine, lease: results.Lease, stage_run_id: UUID, name: str = "doc") -> None:
    results.store_result(
        db,
        lease,
        stage="listen",
        stage_run_id=stage_run_id,
        recipe={"params": {"seed": 0}},
        inputs={"audio": digest("audio")},
        document=artifact(name),
        blobs={"b.npy": artifact("b"), "a.npy": artifact("a")},
    )


def test_a_result_is_found_as_it_was_stored(db: Engine, stage_run_id: UUID) -> None:
    assert results.find_result(db, KEY) is None
    lease = results.acquire_lease(db, KEY, lease_s=30)
    assert lease is not None
    store(db, lease, stage_run_id)
    found = results.find_result(db, KEY)
    assert found is not None
    assert found.inputs == {"audio": digest("audio")}
    assert found.outputs == {"a.npy": digest("a"), "b.npy": digest("b")}
    assert (found.document_sha256, found.stage_run_id) == (digest("doc"), stage_run_id)
    kept = artifacts.find_artifact(db, digest("a"))
    assert kept == artifact("a")
    edges = rows(db, "select input, output, output_name from reel.lineage order by output_name")
    assert [edge["output_name"] for edge in edges] == ["a.npy", "b.npy", "document"]


def test_one_of_many_gets_the_lease(db: Engine) -> None:
    barrier = threading.Barrier(4)

    def take() -> results.Lease | None:
        barrier.wait()
        return results.acquire_lease(db, KEY, lease_s=30)

    with ThreadPoolExecutor(4) as pool:
        leases = [done.result() for done in [pool.submit(take) for _ in range(4)]]
    assert sum(lease is not None for lease in leases) == 1


def test_an_expired_lease_is_taken_over_and_the_late_result_refused(
    db: Engine, stage_run_id: UUID
) -> None:
    late = results.acquire_lease(db, KEY, lease_s=0.05)
    assert late is not None
    time.sleep(0.1)
    successor = results.acquire_lease(db, KEY, lease_s=30)
    assert successor is not None
    assert successor.fence == late.fence + 1
    with pytest.raises(LeaseLostError):
        results.renew_lease(db, late, lease_s=30)
    with pytest.raises(LeaseLostError):
        store(db, late, stage_run_id, "late")
    assert results.find_result(db, KEY) is None
    assert artifacts.find_artifact(db, digest("late")) is None
    results.release_lease(db, late)
    assert results.acquire_lease(db, KEY, lease_s=30) is None
    store(db, successor, stage_run_id)
    assert results.find_result(db, KEY) is not None


def test_a_renewed_lease_outlives_its_first_term(db: Engine) -> None:
    lease = results.acquire_lease(db, KEY, lease_s=0.3)
    assert lease is not None
    renewed = results.renew_lease(db, lease, lease_s=30)
    assert renewed.expires_at > lease.expires_at
    time.sleep(0.4)
    assert results.acquire_lease(db, KEY, lease_s=30) is None


def test_a_released_lease_is_free_at_once_and_a_heartbeat_cannot_revive_it(
    db: Engine, stage_run_id: UUID
) -> None:
    lease = results.acquire_lease(db, KEY, lease_s=30)
    assert lease is not None
    store(db, lease, stage_run_id)
    with pytest.raises(LeaseLostError):
        results.renew_lease(db, lease, lease_s=30)
    following = results.acquire_lease(db, KEY, lease_s=30)
    assert following is not None
    assert following.fence > lease.fence


def test_an_expired_lease_that_nobody_took_still_stores(db: Engine, stage_run_id: UUID) -> None:
    lease = results.acquire_lease(db, KEY, lease_s=0.01)
    assert lease is not None
    time.sleep(0.05)
    store(db, lease, stage_run_id)
    assert results.find_result(db, KEY) is not None


def test_a_result_made_again_replaces_the_unusable_one(db: Engine, stage_run_id: UUID) -> None:
    for name in ("doc", "doc made again"):
        lease = results.acquire_lease(db, KEY, lease_s=30)
        assert lease is not None
        store(db, lease, stage_run_id, name)
    found = results.find_result(db, KEY)
    assert found is not None
    assert found.document_sha256 == digest("doc made again")
    assert value(db, "select count(*) from core.stage_outputs") == 2


def test_artifacts_recorded_in_any_order_at_once_do_not_deadlock(db: Engine) -> None:
    names = [f"blob {i}" for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        for done in [
            pool.submit(
                artifacts.record_artifacts,
                db,
                [artifact(name) for name in (names if i % 2 else reversed(names))],
            )
            for i in range(8)
        ]:
            done.result()
    assert value(db, "select count(*) from reel.artifacts") == 40
