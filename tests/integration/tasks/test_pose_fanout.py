"""Stages that follow others in the fan-out: ``actions`` after ``pose``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from engines.errors import EngineError, ReelgraphError, StageCrashedError
from flows.fanout import FanOut
from tasks.resources import Resources
from tasks.run import Ending, Run, open_run
from tasks.stage import StageRef


@dataclass
class _Future:
    """Like Prefect's: futures among the arguments are awaited, and without them nothing runs."""

    work: Callable[..., StageRef]
    run: Run
    arguments: dict[str, Any]

    def result(self) -> StageRef:
        ready = {
            name: value.result() if isinstance(value, _Future) else value
            for name, value in self.arguments.items()
        }
        return self.work(self.run, **ready)


@dataclass
class _Task:
    name: str
    work: Callable[..., StageRef]

    def submit(self, run: Run, **arguments: Any) -> _Future:
        return _Future(self.work, run, arguments)


class _Here:
    def task_for(self, task: _Task) -> _Task:
        return task


def _ref(stage: str) -> StageRef:
    return StageRef(
        stage=stage,
        cache_key="0" * 64,
        document="1" * 64,
        produced_by=uuid4(),
        model_revision="r",
        cached=False,
    )


def _pose(run: Run, sample: str) -> StageRef:
    del run
    assert sample == "sampled"
    return _ref("pose")


def _actions(run: Run, pose: StageRef) -> StageRef:
    del run
    assert pose.stage == "pose"
    return _ref("actions")


def _failing(error: ReelgraphError) -> Callable[..., StageRef]:
    def work(run: Run, sample: str) -> StageRef:
        raise error

    return work


def _start(fan: FanOut, pose: Callable[..., StageRef]) -> None:
    fan.start(_Task("pose", pose), sample="sampled")  # type: ignore[arg-type]
    fan.start(_Task("actions", _actions), after="pose")  # type: ignore[arg-type]


def _fan(run: Run, ending: Ending) -> FanOut:
    return FanOut(run, ending, _Here())  # type: ignore[arg-type]


@pytest.fixture
def unstored() -> Run:
    """A run of which nothing is stored."""
    return Run(run_id=uuid4(), video_id=uuid4(), bucket="videos", key="a.mp4", version_id=None)


def test_a_stage_is_given_what_the_one_before_left(unstored: Run):
    ending = Ending()
    fan = _fan(unstored, ending)
    _start(fan, _pose)
    assert list(fan.collect()) == ["pose", "actions"]
    assert fan.missing == {}
    assert not ending.partial


def test_what_can_be_tried_again_ends_the_run(unstored: Run):
    fan = _fan(unstored, Ending())
    _start(fan, _failing(StageCrashedError("the process died")))
    with pytest.raises(StageCrashedError):
        fan.collect()
    assert "actions" not in fan.missing


def test_without_the_stage_before_nothing_is_invented_and_it_is_said(world: Resources):
    with open_run("videos", "a.mp4", None, recipe_hash="r", code_version="c", flow_run_id=None) as (
        run,
        ending,
    ):
        failed = _fan(run, ending)
        _start(failed, _failing(EngineError("the network is broken")))
        assert failed.collect() == {}
        skipped = _fan(run, Ending())
        skipped.skip("pose", "the file has no picture")
        skipped.start(_Task("actions", _actions), after="pose")  # type: ignore[arg-type]
        assert skipped.collect() == {}
    assert "the network is broken" in failed.missing["pose"]
    assert "the network is broken" in failed.missing["actions"]
    assert ending.partial
    assert skipped.missing == dict.fromkeys(("pose", "actions"), "the file has no picture")
    query = text(
        "select stage, error_message from reel.stage_runs "
        "where run_id = :run and status = 'skipped' order by started_at"
    )
    with world.db.connect() as connection:
        rows = [tuple(row) for row in connection.execute(query, {"run": run.run_id})]
    assert rows == [
        ("actions", f"pose failed: {failed.missing['pose']}"),
        ("pose", "the file has no picture"),
        ("actions", "the file has no picture"),
    ]
