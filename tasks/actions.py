"""actions: what the people who were followed do, in nested segments."""

from prefect import task

from engines.actions.describe import describe_actions
from engines.contracts.actions import ActionsParams
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

BLOBS = ("joints.npy", "world.npy", "pose_pts.npy")

STAGE = Stage(
    name="actions",
    compute="tasks.compute.actions:actions",
    params=ActionsParams,
    code=("engines.actions", "engines.contracts.actions", "tasks.compute.actions"),
    timeout_s=3600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def recognise_actions(run: Run, pose: StageRef, params: ActionsParams) -> StageRef:
    """Run the stage for one video."""
    inputs = {"pose": pose.document, **pose.blobs(*BLOBS)}
    return run_stage(STAGE, run, inputs, params, describe_actions(params))
