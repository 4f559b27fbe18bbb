"""sample: the one decode pass that every later stage reads from."""

from prefect import task

from engines.contracts.media import SampleParams
from engines.media.describe import describe
from tasks.fetch import Content
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="sample",
    compute="tasks.compute.media:sample",
    params=SampleParams,
    code=("engines.media", "engines.contracts.media", "tasks.compute.media"),
    outputs=(
        "samples.zip",
        "audio.npy",
        "signals.npy",
        "pts.npy",
        "thumbs.npy",
        "thumb_frames.npy",
    ),
    child="decode",
    timeout_s=4 * 3600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def sample_asset(run: Run, content: Content, probe: StageRef, params: SampleParams) -> StageRef:
    """Run the stage for one video."""
    inputs = {"content": content.sha256, "probe": probe.document}
    return run_stage(STAGE, run, inputs, params, describe())
