"""publish: what a run found becomes what readers see, in one transaction."""

import numpy as np
from prefect import task

from engines.contracts.base import Contract
from engines.contracts.media import SampleDocument, Verdict
from engines.errors import ObjectSupersededError
from tasks.documents import DOCUMENTS
from tasks.recipe import code_version
from tasks.resources import Resources, get_resources
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, StageRef, stage_run
from tasks.store import runs
from tasks.store.publish import Embeddings, PublishRequest
from tasks.store.publish import publish as publish_to_store
from tasks.store.rows import Source

NAME = "publish"
EMBEDDINGS = "embeddings.npy"
KEYFRAME_PREFIX = "keyframe-"


class Results(Contract):
    """What the stages of a run left: references to documents and blobs, no content."""

    stages: dict[str, StageRef]
    missing: dict[str, str]
    """Stage -> why it has no result."""


class Published(Contract):
    """What publishing did."""

    verdict: Verdict
    """Of the file: ``partial`` when some of it could not be decoded."""
    replaced: tuple[str, ...]
    """Stages whose facts are new; empty when the same was published already."""
    degraded: tuple[str, ...]


def publish(run: Run, results: Results) -> Published:
    """Publish, or find that the very same stands already.

    Raises:
        ObjectSupersededError: something newer was published, or the object was replaced.
    """
    world = get_resources()
    identity = runs.StageIdentity(
        stage=NAME, code_version=code_version(("tasks.publish", "tasks.store")), pool="cpu"
    )
    with stage_run(run, identity, None) as finish:
        request = _request(world, run, results)
        done = publish_to_store(world.db, request)
        if done.status == "superseded":
            msg = f"{run.ref}: {done.reason}"
            raise ObjectSupersededError(msg)
        finish.outcome = runs.StageOutcome(
            status="cached" if done.status == "unchanged" else "done"
        )
    documents = [source.document for source in request.sources]
    return Published(
        verdict=next(d.verdict for d in documents if isinstance(d, SampleDocument)),
        replaced=done.replaced,
        degraded=tuple(dict.fromkeys(reason for d in documents for reason in d.degraded)),
    )


@task(name=NAME, **TASK_OPTIONS)
def publish_facts(run: Run, results: Results) -> Published:
    """Run the stage for one video."""
    return publish(run, results)


def _request(world: Resources, run: Run, results: Results) -> PublishRequest:
    sources = tuple(
        Source(
            stage=name,
            cache_key=ref.cache_key,
            stage_run_id=ref.produced_by,
            document=DOCUMENTS[name].model_validate_json(
                world.artifacts.local(ref.document).read_bytes()
            ),
        )
        for name, ref in results.stages.items()
    )
    return PublishRequest(
        run_id=run.run_id,
        video_id=run.video_id,
        sources=sources,
        missing=results.missing,
        image_uris=_image_uris(world, results.stages.get("shots")),
        embeddings=_embeddings(world, results.stages.get("embed")),
    )


def _image_uris(world: Resources, shots: StageRef | None) -> dict[str, str]:
    """Sample name -> address of its picture, for keyframes."""
    if shots is None:
        return {}
    return {
        name.removeprefix(KEYFRAME_PREFIX): str(world.artifacts.reference(sha256))
        for name, sha256 in shots.outputs.items()
        if name.startswith(KEYFRAME_PREFIX)
    }


def _embeddings(world: Resources, embed: StageRef | None) -> Embeddings | None:
    if embed is None or EMBEDDINGS not in embed.outputs:
        return None
    vectors = np.load(world.artifacts.local(embed.outputs[EMBEDDINGS]))
    return (
        Embeddings(vectors=vectors, model_revision=embed.model_revision) if len(vectors) else None
    )
