"""Corpora keep up with their videos: what was mined once is mined again when a video was added."""

import logging
from uuid import UUID

from engines.errors import ReelgraphError, ServiceUnavailableError
from flows.prefect_api import MINE_CORPUS, PrefectApi
from tasks.resources import Resources
from tasks.store import corpora
from tasks.store.corpora import MinedCorpus

MAX_ATTEMPTS = 3
"""Flow runs started after one run of a corpus, when those before ended without a run of their own:
cancelled while they waited, or their process never began."""

logger = logging.getLogger("reelgraph.mine_again")


def mine_again(world: Resources, bucket: str, key: str) -> list[UUID]:
    """Schedule ``mine-corpus`` for each corpus that was mined before and holds an object.

    A failure here is logged and nothing else: the video's own facts are published, and the next
    video asks again.

    Args:
        world: of this process.
        bucket: of the video whose timeline is new.
        key: of that video.

    Returns:
        Ids of the flow runs that will see the video; several videos share one.
    """
    delay_s = world.settings.mine_after_s
    if delay_s < 0:
        return []
    try:
        found = corpora.holding(world.db, bucket, key)
        if not found:
            return []
        with PrefectApi(world.api_url) as api:
            return [_schedule(api, corpus, delay_s) for corpus in found]
    except ReelgraphError as error:
        logger.warning("%s/%s: no corpus is mined again: %s", bucket, key, error)
        return []


def _schedule(api: PrefectApi, corpus: MinedCorpus, delay_s: float) -> UUID:
    """One flow run for all videos that were published since the latest run began.

    A run writes its row before it reads the timelines. So as long as the key below is current,
    the flow run that has it has read none yet, and will find this video's. The deployment lets no
    two of them run at a time.
    """
    parameters = {**corpus.name.model_dump(), "params": corpus.params}
    for attempt in range(1, MAX_ATTEMPTS + 1):
        key = f"after-{corpus.latest_run_id}-{attempt}"
        flow_run_id = api.start(MINE_CORPUS, parameters, idempotency_key=key, delay_s=delay_s)
        if not api.state(flow_run_id).is_final:
            return flow_run_id
    msg = f"{MAX_ATTEMPTS} flow runs over {corpus.name.bucket}/{corpus.name.prefix} came to nothing"
    raise ServiceUnavailableError(msg)
