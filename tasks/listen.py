"""listen: speech with word times, and sound events, on the asset's clock."""

from prefect import task

from engines.contracts.speech import ListenParams
from engines.speech.describe import describe
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="listen",
    compute="tasks.compute.speech:listen",
    params=ListenParams,
    code=("engines.speech", "engines.contracts.speech", "tasks.compute.speech"),
    pool="gpu",
    timeout_s=4 * 3600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def listen_to_asset(run: Run, probe: StageRef, sample: StageRef, params: ListenParams) -> StageRef:
    """Run the stage for one video."""
    inputs = {"probe": probe.document, "sample": sample.document, **sample.blobs("audio.npy")}
    return run_stage(STAGE, run, inputs, params, describe(params))
