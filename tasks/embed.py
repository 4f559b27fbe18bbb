"""embed: labels with spans, and one vector per sampled picture."""

from prefect import task

from engines.contracts.vision import EmbedParams
from engines.vision.describe import describe_embed
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="embed",
    compute="tasks.compute.vision:embed",
    params=EmbedParams,
    code=("engines.vision", "engines.runtime", "engines.contracts.vision", "tasks.compute.vision"),
    outputs=("embeddings.npy",),
    pool="gpu",
    timeout_s=2 * 3600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def embed_samples(
    run: Run, sample: StageRef, params: EmbedParams, shots: StageRef | None = None
) -> StageRef:
    """Run the stage for one video; ``shots`` names the keyframes that a thinned store keeps."""
    inputs = {"sample": sample.document, **sample.blobs("samples.zip", "pts.npy")}
    if shots is not None:
        inputs["shots"] = shots.document
    return run_stage(STAGE, run, inputs, params, describe_embed(params))
