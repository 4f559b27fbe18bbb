"""The inbox: at-least-once delivery in any order becomes at most one run."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import pytest
from sqlalchemy import Engine
from store_data import Pipeline, rows, value

from engines.errors import UsageError
from tasks.store import inbox, videos


@dataclass(frozen=True)
class Announced:
    bucket: str = "videos"
    key: str = "a b+c%20é🎬.mp4"
    etag: str = "e1"
    version_id: str | None = None
    sequencer: str | None = "0a"
    size_bytes: int | None = 3_221_225_472
    event: Literal["created", "removed"] = "created"


CREATED = Announced()


def test_twelve_deliveries_at_once_make_one_row(db: Engine) -> None:
    barrier = threading.Barrier(4)

    def deliver() -> list[inbox.InboxRow | None]:
        barrier.wait()
        return [inbox.receive(db, CREATED) for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        received = [
            row for done in [pool.submit(deliver) for _ in range(4)] for row in done.result()
        ]
    assert sum(row is not None for row in received) == 1
    [row] = rows(db, "select * from reel.event_inbox")
    assert (row["deliveries"], row["state"], row["key"]) == (12, "queued", CREATED.key)
    assert row["size_bytes"] == 3_221_225_472


def test_another_version_is_another_event(db: Engine) -> None:
    kinds = [
        CREATED,
        replace(CREATED, etag="e2"),
        replace(CREATED, version_id="v1"),
        replace(CREATED, version_id="v2"),
        replace(CREATED, key="other"),
    ]
    assert all(inbox.receive(db, kind) is not None for kind in kinds)
    assert all(inbox.receive(db, kind) is None for kind in kinds)


def test_one_of_many_claims_an_event(db: Engine) -> None:
    row = inbox.receive(db, CREATED)
    assert row is not None
    with ThreadPoolExecutor(4) as pool:
        claims = [pool.submit(inbox.claim, db, row.inbox_id) for _ in range(8)]
    assert sum(claim.result() for claim in claims) == 1
    found = inbox.get_event(db, row.inbox_id)
    assert found is not None
    assert found.state == "running"


def test_a_duplicate_after_the_end_starts_nothing(db: Engine, pipeline: Pipeline) -> None:
    row = inbox.receive(db, CREATED)
    assert row is not None
    run_id, _ = pipeline.start()
    assert inbox.claim(db, row.inbox_id, run_id=run_id)
    inbox.mark(db, row.inbox_id, "done")
    assert inbox.receive(db, CREATED) is None
    assert not inbox.claim(db, row.inbox_id)
    found = inbox.get_event(db, row.inbox_id)
    assert found is not None
    assert (found.state, found.run_id) == ("done", run_id)


def test_pending_and_stuck_say_what_a_sweep_must_take_up(db: Engine) -> None:
    first = inbox.receive(db, CREATED)
    second = inbox.receive(db, replace(CREATED, key="other"))
    assert first is not None
    assert second is not None
    inbox.claim(db, second.inbox_id)
    assert inbox.pending(db, 3600) == []
    assert [row.inbox_id for row in inbox.pending(db, 0)] == [first.inbox_id]
    assert [row.inbox_id for row in inbox.stuck(db, 0)] == [second.inbox_id]


@pytest.mark.parametrize("event_first", [True, False])
def test_a_command_keeps_its_own_upload_from_starting_twice(db: Engine, event_first: bool) -> None:
    def command() -> bool:
        return inbox.ignore_started_by_command(db, CREATED.bucket, CREATED.key, CREATED.etag)

    if event_first:
        row = inbox.receive(db, CREATED)
        assert row is not None
        assert command()
        assert not inbox.claim(db, row.inbox_id)
    else:
        assert command()
        assert inbox.receive(db, CREATED) is None
    assert rows(db, "select state, reason from reel.event_inbox") == [
        {"state": "ignored", "reason": "started by command"}
    ]


def test_a_command_learns_that_the_event_was_quicker(db: Engine) -> None:
    row = inbox.receive(db, CREATED)
    assert row is not None
    inbox.claim(db, row.inbox_id)
    assert not inbox.ignore_started_by_command(db, CREATED.bucket, CREATED.key, CREATED.etag)
    assert value(db, "select state from reel.event_inbox") == "running"


def test_the_same_version_put_again_after_its_removal_runs_again(
    db: Engine, pipeline: Pipeline
) -> None:
    pipeline.publish()
    row = inbox.receive(db, CREATED)
    assert row is not None
    inbox.mark(db, row.inbox_id, "done")
    removed = replace(CREATED, event="removed", sequencer="0b")
    assert inbox.receive(db, removed) is not None
    assert value(db, "select gone_at is not null from reel.videos")
    with ThreadPoolExecutor(3) as pool:
        again = replace(CREATED, sequencer="0c")
        back = [pool.submit(inbox.receive, db, again) for _ in range(3)]
    assert sum(done.result() is not None for done in back) == 1
    assert inbox.claim(db, row.inbox_id)
    assert value(db, "select gone_at is null from reel.videos")


def test_a_removal_that_comes_late_does_not_bury_what_is_there(
    db: Engine, pipeline: Pipeline
) -> None:
    pipeline.publish()
    inbox.receive(db, replace(CREATED, etag="e2", sequencer="1ff"))
    inbox.receive(db, replace(CREATED, event="removed", sequencer="ff"))
    assert value(db, "select gone_at is null from reel.videos")


def test_known_keys_hold_what_was_announced_or_read(db: Engine, pipeline: Pipeline) -> None:
    pipeline.start()
    inbox.receive(db, replace(CREATED, key="a_b/1.mp4", etag="x"))
    inbox.receive(db, replace(CREATED, key="aXb/1.mp4", etag="y"))
    assert inbox.known_keys(db, "videos") == {
        (pipeline.key, pipeline.etag),
        ("a_b/1.mp4", "x"),
        ("aXb/1.mp4", "y"),
    }
    # An underscore is a letter of the key, not a wildcard.
    assert inbox.known_keys(db, "videos", "a_b") == {("a_b/1.mp4", "x")}


def test_keys_of_1024_bytes_fit_and_longer_ones_are_named(db: Engine) -> None:
    longest = "é" * 512
    assert inbox.receive(db, replace(CREATED, key=longest, version_id="v" * 200)) is not None
    videos.ensure_video(db, "videos", longest)
    with pytest.raises(UsageError, match="1 to 1024 bytes"):
        inbox.receive(db, replace(CREATED, key=longest + "x"))
