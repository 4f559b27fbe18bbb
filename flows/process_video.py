"""The main DAG: one video in object storage becomes facts, a causal chain and cited answers."""

from uuid import UUID

from prefect import flow
from prefect.runtime import flow_run

from flows.fanout import FanOut
from flows.mine_again import mine_again
from flows.parameters import PipelineParams
from flows.placement import Placement
from flows.present import Presentation
from tasks.actions import recognise_actions
from tasks.causes import mine_causes
from tasks.embed import embed_samples
from tasks.events import fuse_events
from tasks.fetch import fetch_object
from tasks.listen import listen_to_asset
from tasks.pose import follow_people
from tasks.probe import probe_asset
from tasks.publish import Results, publish_facts
from tasks.read_text import read_screen_text
from tasks.reason import answer_questions
from tasks.recipe import code_version, params_hash
from tasks.resources import get_resources
from tasks.run import open_run
from tasks.sample import sample_asset, tracks
from tasks.shots import detect_shots

NO_PICTURE = "the file has no picture"
NO_SOUND = "the file has no sound"


@flow(name="process-video", flow_run_name="{bucket}/{key}", persist_result=False)
def process_video(
    bucket: str,
    key: str,
    version_id: str | None = None,
    params: PipelineParams = PipelineParams(),  # noqa: B008 - frozen, and the form's default
) -> UUID:
    """Turn one object into published facts.

    Args:
        bucket: where the video lies.
        key: its key, as it stands (not URL-encoded).
        version_id: a version of it; None for the one that is there now.
        params: parameters of the stages.

    Returns:
        Id of the run in ``reel.runs``.
    """
    with open_run(
        bucket,
        key,
        version_id,
        recipe_hash=params_hash(params),
        code_version=code_version(("engines", "tasks")),
        flow_run_id=_flow_run_id(),
    ) as (run, ending):
        show = Presentation(run)
        content = show.step(fetch_object, run)
        probe = show.step(probe_asset, run, content, params.limits)
        sample = show.step(sample_asset, run, content, probe, params.sample)

        place = Placement()
        looks = FanOut(run, ending, place)
        found = tracks(sample)
        if found.picture:
            looks.start(detect_shots, sample=sample, params=params.shots)
            thinned = params.embed.vectors_per_s is not None
            looks.start(
                embed_samples,
                after="shots" if thinned else None,
                sample=sample,
                params=params.embed,
            )
            looks.start(read_screen_text, sample=sample, params=params.read_text)
            looks.start(follow_people, sample=sample, params=params.pose)
            looks.start(recognise_actions, after="pose", params=params.actions)
        else:
            for stage in ("shots", "embed", "read_text", "pose", "actions"):
                looks.skip(stage, NO_PICTURE)
        if found.sound:
            looks.start(listen_to_asset, probe=probe, sample=sample, params=params.listen)
        else:
            looks.skip("listen", NO_SOUND)
        seen = looks.collect()

        events = show.step(fuse_events, run, sample, seen, params.timeline)
        causes = show.step(mine_causes, run, events, params.causes)
        answers = show.step(
            place.task_for(answer_questions),
            run,
            seen=seen,
            events=events,
            causes=causes,
            params=params.reason,
        )
        results = Results(
            stages={
                "probe": probe,
                "sample": sample,
                **seen,
                "events": events,
                "causes": causes,
                "reason": answers,
            },
            missing=looks.missing,
        )
        published = show.step(publish_facts, run, results)
        ending.partial |= published.verdict != "complete"
        ending.degraded += [*published.degraded, *place.degradations()]
    if events.stage in published.replaced:
        mine_again(get_resources(), bucket, key)
    # The run is over and its facts are read by now; what follows is for the UI alone.
    show.facts()
    return run.run_id


def _flow_run_id() -> UUID | None:
    """Id of the Prefect flow run; None when the flow is called outside of one."""
    return UUID(flow_run.id) if flow_run.id else None
