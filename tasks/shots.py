"""shots: where one take ends and the next begins, and the pictures that stand for each."""

from prefect import task

from engines.contracts.media import ShotParams
from engines.media.describe import describe
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

SIGNALS = ("signals.npy", "pts.npy", "thumbs.npy", "thumb_frames.npy", "samples.zip")

STAGE = Stage(
    name="shots",
    compute="tasks.compute.media:shots",
    params=ShotParams,
    code=("engines.media", "engines.contracts.media", "tasks.compute.media"),
    outputs=("keyframe-*.jpg",),
    child="decode",
    timeout_s=3600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def detect_shots(run: Run, sample: StageRef, params: ShotParams) -> StageRef:
    """Run the stage for one video."""
    inputs = {"sample": sample.document, **sample.blobs(*SIGNALS)}
    return run_stage(STAGE, run, inputs, params, describe())
