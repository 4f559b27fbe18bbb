"""read_text: lines of on-screen text with their spans."""

from prefect import task

from engines.contracts.vision import ReadTextParams
from engines.vision.describe import describe_read_text
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="read_text",
    compute="tasks.compute.vision:read_text",
    params=ReadTextParams,
    code=("engines.vision", "engines.runtime", "engines.contracts.vision", "tasks.compute.vision"),
    pool="gpu",
    timeout_s=2 * 3600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def read_screen_text(run: Run, sample: StageRef, params: ReadTextParams) -> StageRef:
    """Run the stage for one video."""
    inputs = {"sample": sample.document, **sample.blobs("samples.zip", "pts.npy")}
    return run_stage(STAGE, run, inputs, params, describe_read_text(params))
