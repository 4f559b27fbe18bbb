"""Where a stage runs: on the pool that fits it when a worker serves that pool, else here.

Placement is data: each ``Stage`` names its pool. A stage that runs elsewhere leaves its result
under the same cache key, so afterwards it is found here like any other; when the other pool fails,
the same call computes here. What ran on a weaker pool than it asked for is said on the run.
"""

from functools import cached_property
from inspect import signature
from typing import Any, cast

from prefect import Task, flow, task
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from flows.prefect_api import PrefectApi
from tasks import embed, listen, pose, read_text, reason
from tasks.resources import get_resources
from tasks.run import Run
from tasks.stage import Pool, Stage, StageRef

HERE: Pool = "cpu"
"""The pool whose workers run the main flow."""

MOVABLE: dict[str, tuple[Stage[Any], Task[..., StageRef]]] = {
    embed.STAGE.name: (embed.STAGE, embed.embed_samples),
    listen.STAGE.name: (listen.STAGE, listen.listen_to_asset),
    read_text.STAGE.name: (read_text.STAGE, read_text.read_screen_text),
    pose.STAGE.name: (pose.STAGE, pose.follow_people),
    reason.STAGE.name: (reason.STAGE, reason.answer_questions),
}
"""Stages that may run on another pool, and the task that runs each."""


class Placement:
    """Asked once per run: which pools are served, and who had to stay."""

    def __init__(self) -> None:
        """Nothing is asked before the first stage that would go elsewhere."""
        self.stayed: dict[Pool, list[str]] = {}

    def task_for(self, own: Task[..., StageRef]) -> Task[..., StageRef]:
        """The task to submit for a stage: its own, or one that sends it to its pool first."""
        stage = MOVABLE[own.name][0] if own.name in MOVABLE else None
        if stage is None or stage.pool == HERE:
            return own
        if stage.pool in self._served:
            return _elsewhere(stage.pool, own)
        self.stayed.setdefault(stage.pool, []).append(stage.name)
        return own

    def degradations(self) -> list[str]:
        """One line for each pool that nobody serves and that some stage asked for."""
        return [
            f"{', '.join(sorted(names))}: no worker serves the pool {pool}; ran on {HERE}"
            for pool, names in sorted(self.stayed.items())
            if pool != "llm"  # without a language model there is nothing that the pool would add
        ]

    @cached_property
    def _served(self) -> set[Pool]:
        pools: set[Pool] = {stage.pool for stage, _ in MOVABLE.values()}
        with PrefectApi(get_resources().api_url) as api:
            return {pool for pool in pools if api.workers_online(pool)}


@flow(name="run-stage", flow_run_name="{stage}", persist_result=False)
def run_stage_here(stage: str, run: Run, arguments: dict[str, Any]) -> None:
    """Run one stage of another flow's run on this pool.

    Args:
        stage: name of the stage.
        run: the run that it belongs to.
        arguments: those of the stage's task, as JSON; hashes and parameters, never content.
    """
    own = MOVABLE[stage][1]
    typed = {
        name: TypeAdapter(parameter.annotation).validate_python(arguments[name])
        for name, parameter in signature(own.fn).parameters.items()
        if name != "run"
    }
    own(run, **typed)


def _elsewhere(pool: Pool, own: Task[..., StageRef]) -> Task[..., StageRef]:
    @task(name=own.name)
    def on_pool(run: Run, **arguments: Any) -> StageRef:
        parameters = {
            "stage": own.name,
            "run": run.model_dump(mode="json"),
            "arguments": _jsonable(arguments),
        }
        # Called outside of an event loop it returns the run itself, though its type says either.
        done = cast(
            FlowRun, run_deployment(f"run-stage/{pool}", parameters=parameters, as_subflow=False)
        )
        found: StageRef = own.fn(run, **arguments)
        if done.state is None or not done.state.is_completed():
            note = f"{own.name}: its run on the pool {pool} failed; ran on {HERE}"
            found = found.model_copy(update={"degraded": (*found.degraded, note)})
        return found

    return on_pool


def _jsonable(arguments: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = to_jsonable_python(arguments)
    return plain
