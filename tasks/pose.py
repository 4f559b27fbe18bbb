"""pose: people followed over time, with the landmarks of their bodies."""

from prefect import task

from engines.actions.pose.describe import describe_pose
from engines.contracts.actions import PoseParams
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="pose",
    compute="tasks.compute.pose:pose",
    params=PoseParams,
    code=(
        "engines.actions.pose",
        "engines.runtime",
        "engines.contracts.actions",
        "engines.media.samples",
        "tasks.compute.pose",
    ),
    outputs=("joints.npy", "world.npy", "pose_pts.npy"),
    pool="gpu",
    timeout_s=2 * 3600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def follow_people(run: Run, sample: StageRef, params: PoseParams) -> StageRef:
    """Run the stage for one video."""
    pictures = sample.blobs("people.zip", "people_pts.npy") or sample.blobs("samples.zip")
    inputs = {"sample": sample.document, **pictures}
    return run_stage(STAGE, run, inputs, params, describe_pose(params))
