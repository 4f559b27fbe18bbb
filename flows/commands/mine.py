"""mine: what causes what over all published videos below a prefix, by the real flow; and wait."""

import time
from typing import Any

from engines.errors import EngineError, ReelgraphError, UsageError
from flows.chain_graph import tree_lines
from flows.commands.output import dump, say, tell
from flows.prefect_api import MINE_CORPUS, PrefectApi
from tasks.objects.keys import parse_s3_uri
from tasks.resources import get_resources
from tasks.store import runs
from tasks.store.corpora import CorpusName
from tasks.store.graphs import causal_graph

POLL_S = 1.0


def mine(source: str | None, *, as_json: bool) -> None:
    """Start the flow `mine-corpus`, wait for its end, and print the graph.

    Args:
        source: ``s3://bucket/prefix``; None for every bucket.
        as_json: print one JSON document.

    Raises:
        UsageError: no address, or no published video lies there.
        EngineError: the run failed.
    """
    corpus = _corpus(source)
    world = get_resources()
    with PrefectApi(world.api_url) as api:
        parameters: dict[str, Any] = {"bucket": corpus.bucket, "prefix": corpus.prefix}
        flow_run_id = api.start(MINE_CORPUS, parameters)
        tell(f"mining {corpus.bucket}/{corpus.prefix} in flow run {flow_run_id}")
        while not (state := api.state(flow_run_id)).is_final:
            time.sleep(POLL_S)
    progress = runs.known_progress(world.db, flow_run_id)
    if progress is None or progress.status != "done":
        raise _error(progress, state.message)
    graph = causal_graph(world.db, progress.video_id)
    if as_json:
        dump({"run_id": progress.run_id, "video_id": progress.video_id, "causal_graph": graph})
        return
    for line in tree_lines(graph):
        say(line)


def _corpus(source: str | None) -> CorpusName:
    if source is None:
        return CorpusName()
    ref = parse_s3_uri(source)
    return CorpusName(bucket=ref.bucket, prefix=ref.key)


def _error(progress: runs.RunProgress | None, message: str | None) -> ReelgraphError:
    """Why it failed, as Postgres knows it; Prefect's word only where there is no row."""
    if progress is None:
        return EngineError(f"the flow run ended before it began: {message}")
    said = UsageError(progress.error_message or f"the run ended as {progress.status}")
    return said if progress.error_code == said.code else EngineError(str(said))
