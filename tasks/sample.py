"""sample: the one decode pass that every later stage reads from."""

from prefect import task

from engines.contracts.base import Contract
from engines.contracts.media import SampleDocument, SampleParams
from engines.media.describe import describe
from tasks.fetch import Content
from tasks.resources import get_resources
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="sample",
    compute="tasks.compute.media:sample",
    params=SampleParams,
    code=("engines.media", "engines.contracts.media", "tasks.compute.media"),
    outputs=(
        "samples.zip",
        "people.zip",
        "people_pts.npy",
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


class Tracks(Contract):
    """What there is to look at and to listen to."""

    picture: bool
    sound: bool


def tracks(sample: StageRef) -> Tracks:
    """What the decode pass found; a stage with nothing to work on is skipped."""
    path = get_resources().artifacts.local(sample.document)
    document = SampleDocument.model_validate_json(path.read_bytes())
    return Tracks(picture=bool(document.samples), sound=document.audio is not None)
