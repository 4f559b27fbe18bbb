"""mine_corpus: which types of event cause which over many videos.

One part per video, named by its events document, so that a corpus that grew by one video computes
one part and the pooling. Published under an asset of the corpus, with the runs and lineage that a
video has.
"""

from contextlib import AbstractContextManager
from uuid import UUID

from prefect import task

from engines.causal.describe import describe_miner
from engines.contracts.base import Contract
from engines.contracts.causal import CausesDocument, MinerParams, PartParams
from engines.errors import ObjectSupersededError, UsageError
from tasks.recipe import cache_key, code_version, params_hash
from tasks.resources import get_resources
from tasks.run import Ending, Run, open_run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, recipe_of, run_stage, stage_run
from tasks.store import corpora, runs
from tasks.store.corpora import CorpusName, Timeline
from tasks.store.publish import PublishRequest, PublishStatus
from tasks.store.publish import publish as publish_to_store
from tasks.store.rows import Source

PART = "part.zip"
PART_STAGE = Stage(
    name="part",
    compute="tasks.compute.corpus:part",
    params=PartParams,
    code=(
        "engines.causal.series",
        "engines.causal.candidates",
        "engines.causal.null",
        "engines.causal.corpus",
        "engines.contracts.causal",
        "tasks.compute.corpus",
    ),
    outputs=(PART,),
    timeout_s=600,
)
POOL_STAGE = Stage(
    name=corpora.STAGE,
    compute="tasks.compute.corpus:mine_corpus",
    params=MinerParams,
    code=("engines.causal", "engines.contracts.causal", "tasks.compute.corpus"),
    timeout_s=3600,
)


class Parts(Contract):
    """What every video of a corpus contributes."""

    timelines: tuple[Timeline, ...]
    blobs: dict[str, str]
    """Events document -> SHA-256 of its part."""
    computed: int
    """Parts that were not known before."""


class Mined(Contract):
    """What publishing a corpus did."""

    status: PublishStatus
    num_videos: int
    num_edges: int
    """Edges found causal."""
    verdict: str
    reason: str


def open_corpus_run(
    corpus: CorpusName, params: MinerParams, flow_run_id: UUID | None
) -> AbstractContextManager[tuple[Run, Ending]]:
    """A run over a corpus, recorded like one over a video; see ``tasks.run.open_run``."""
    return open_run(
        corpus.asset_bucket,
        corpus.asset_key,
        None,
        recipe_hash=params_hash(params),
        code_version=code_version(("engines", "tasks")),
        flow_run_id=flow_run_id,
    )


def count_parts(run: Run, corpus: CorpusName, params: MinerParams) -> Parts:
    """The part of every video that has a published timeline, made where it is new.

    Raises:
        UsageError: no video of the corpus has one.
    """
    world = get_resources()
    timelines = corpora.timelines(world.db, corpus)
    if not timelines:
        msg = f"no published video lies below {corpus.bucket}/{corpus.prefix}"
        raise UsageError(msg)
    wanted = PartParams.of(params)
    keys = {t.document_sha256: _part_key(t.document_sha256, wanted) for t in timelines}
    known = corpora.known_blobs(world.db, list(keys.values()), PART)
    blobs: dict[str, str] = {}
    for document, key in keys.items():
        sha256 = known.get(key)
        if sha256 is not None and (
            world.artifacts.has_local(sha256)
            or world.objects.exists(world.artifacts.reference(sha256))
        ):
            blobs[document] = sha256
            continue
        made = run_stage(PART_STAGE, run, {"events": document}, wanted, describe_miner())
        blobs[document] = made.outputs[PART]
    computed = sum(keys[document] not in known for document in blobs)
    return Parts(timelines=tuple(timelines), blobs=blobs, computed=computed)


def _part_key(events: str, params: PartParams) -> str:
    """The key that ``run_stage`` will use; were it another, parts would be asked for one by one."""
    return cache_key({"events": events}, recipe_of(PART_STAGE, params, describe_miner()))


def pool_parts(run: Run, parts: Parts, params: MinerParams) -> StageRef:
    """Mine all parts together; each is an input called after its events document."""
    return run_stage(POOL_STAGE, run, parts.blobs, params, describe_miner())


def publish_corpus(run: Run, parts: Parts, pooled: StageRef) -> Mined:
    """Make the edges current in one transaction, or find that the very same stand already.

    Raises:
        ObjectSupersededError: a run begun later has published.
    """
    world = get_resources()
    document = CausesDocument.model_validate_json(
        world.artifacts.local(pooled.document).read_bytes()
    )
    source = Source(
        stage=POOL_STAGE.name,
        cache_key=pooled.cache_key,
        stage_run_id=pooled.produced_by,
        document=document,
        members={t.document_sha256: t for t in parts.timelines},
    )
    identity = runs.StageIdentity(
        stage="publish", code_version=code_version(("tasks.mine_corpus", "tasks.store")), pool="cpu"
    )
    request = PublishRequest(run_id=run.run_id, video_id=run.video_id, sources=(source,))
    with stage_run(run, identity, None) as finish:
        done = publish_to_store(world.db, request)
        if done.status == "superseded":
            msg = f"{run.ref}: {done.reason}"
            raise ObjectSupersededError(msg)
        unchanged = done.status == "unchanged"
        finish.outcome = runs.StageOutcome(status="cached" if unchanged else "done")
    return Mined(
        status=done.status,
        num_videos=document.num_videos,
        num_edges=sum(edge.verdict == "causal" for edge in document.edges),
        verdict=document.verdict,
        reason=document.reason,
    )


@task(name=PART_STAGE.name, **TASK_OPTIONS)
def count_corpus_parts(run: Run, corpus: CorpusName, params: MinerParams) -> Parts:
    """Run ``count_parts``; one task run for the whole corpus."""
    return count_parts(run, corpus, params)


@task(name=POOL_STAGE.name, **TASK_OPTIONS)
def pool_corpus_parts(run: Run, parts: Parts, params: MinerParams) -> StageRef:
    """Run ``pool_parts``."""
    return pool_parts(run, parts, params)


@task(name="publish", **TASK_OPTIONS)
def publish_corpus_edges(run: Run, parts: Parts, pooled: StageRef) -> Mined:
    """Run ``publish_corpus``."""
    return publish_corpus(run, parts, pooled)
