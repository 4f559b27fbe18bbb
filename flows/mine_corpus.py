"""The causal graph over many videos: their published timelines, pooled."""

from uuid import UUID

from prefect import flow, get_run_logger
from prefect.runtime import flow_run

from engines.contracts.causal import MinerParams
from flows.present import show_corpus
from tasks.mine_corpus import (
    count_corpus_parts,
    open_corpus_run,
    pool_corpus_parts,
    publish_corpus_edges,
)
from tasks.store.corpora import EVERY_BUCKET, CorpusName


@flow(name="mine-corpus", flow_run_name="{bucket}/{prefix}", persist_result=False)
def mine_corpus(
    bucket: str = EVERY_BUCKET,
    prefix: str = "",
    params: MinerParams = MinerParams(),  # noqa: B008 - frozen, and the form's default
) -> UUID:
    """Mine the current events of all published videos below a prefix; run it again as they come.

    Args:
        bucket: where the videos lie; ``*`` for every bucket.
        prefix: only keys that begin with it.
        params: of the miner.

    Returns:
        Id of the run in ``reel.runs``.
    """
    corpus = CorpusName(bucket=bucket, prefix=prefix)
    flow_run_id = UUID(flow_run.id) if flow_run.id else None
    with open_corpus_run(corpus, params, flow_run_id) as (run, _):
        parts = count_corpus_parts(run, corpus, params)
        pooled = pool_corpus_parts(run, parts, params)
        mined = publish_corpus_edges(run, parts, pooled)
    get_run_logger().info(
        "%d videos, %d parts new, %d edges: %s",
        mined.num_videos,
        parts.computed,
        mined.num_edges,
        mined.reason,
    )
    show_corpus(run)
    return run.run_id
