"""causes: which types of event cause which, with evidence, or how much of it was missing."""

from prefect import task

from engines.causal.describe import describe_miner
from engines.contracts.causal import MinerParams
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="causes",
    compute="tasks.compute.meaning:causes",
    params=MinerParams,
    code=("engines.causal", "engines.contracts.causal", "tasks.compute.meaning"),
    timeout_s=1800,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def mine_causes(run: Run, events: StageRef, params: MinerParams) -> StageRef:
    """Run the stage for one video."""
    return run_stage(STAGE, run, {"events": events.document}, params, describe_miner())
