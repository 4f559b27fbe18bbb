"""probe: what the bytes truly are."""

from prefect import task

from engines.media import MediaLimits
from engines.media.describe import describe
from tasks.fetch import Content
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="probe",
    compute="tasks.compute.media:probe",
    params=MediaLimits,
    code=("engines.media", "engines.contracts.media", "tasks.compute.media"),
    child="decode",
    timeout_s=120,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def probe_asset(run: Run, content: Content, limits: MediaLimits) -> StageRef:
    """Run the stage for one video."""
    return run_stage(STAGE, run, {"content": content.sha256}, limits, describe())
