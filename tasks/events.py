"""events: all facts fused into one typed timeline."""

from prefect import task

from engines.causal.describe import describe_timeline
from engines.contracts.causal import TimelineParams
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="events",
    compute="tasks.compute.meaning:events",
    params=TimelineParams,
    code=("engines.causal", "engines.contracts.causal", "tasks.compute.meaning"),
    timeout_s=600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def fuse_events(
    run: Run, sample: StageRef, seen: dict[str, StageRef], params: TimelineParams
) -> StageRef:
    """Run the stage for one video; ``seen`` holds those stages that found something to say."""
    documents = {name: ref.document for name, ref in seen.items()}
    inputs = {"sample": sample.document, **sample.blobs("signals.npy", "pts.npy"), **documents}
    return run_stage(STAGE, run, inputs, params, describe_timeline())
