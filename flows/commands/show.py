"""show: what is known of one video."""

from pathlib import Path

from engines.errors import UsageError
from flows.chain_graph import draw, tree_lines
from flows.clock import clock
from flows.commands.output import dump, say, table, tell
from flows.render import chain_lines
from tasks.objects.client import sha256_of
from tasks.objects.keys import S3_SCHEME
from tasks.resources import get_resources
from tasks.store import timeline
from tasks.store.corpora import CORPUS_BUCKET
from tasks.store.graphs import causal_graph
from tasks.store.videos import VideoRow, find_videos
from tasks.thumbnails import thumbnails


def show(video: str, *, as_json: bool, graph: Path | None = None) -> None:
    """Print timeline, causal graph and chains, answers and coverage.

    Args:
        video: file, address, key, SHA-256 or id of a video; ``s3://bucket/prefix*`` is a corpus.
        as_json: print one JSON document.
        graph: write the causal graph there as one SVG file.

    Raises:
        UsageError: no such video, or the name fits several.
    """
    row = _find(video)
    db = get_resources().db
    facts = timeline.timeline(db, row.video_id)
    chains = causal_graph(db, row.video_id)
    if graph is not None:
        pictures = thumbnails(get_resources(), (node.image_uri for node in chains.nodes))
        graph.write_text(draw(chains, pictures), encoding="utf-8")
        tell(f"causal graph written to {graph}")
    if as_json:
        dump(
            {
                "video": row,
                "timeline": facts,
                "causal_chains": timeline.chains(db, row.video_id),
                "causal_edges": timeline.edges(db, row.video_id),
                "causal_graph": chains,
                "answers": timeline.answers(db, row.video_id),
                "coverage": timeline.coverage(db, row.video_id),
            }
        )
        return
    length = "" if row.duration_s is None else f", {row.duration_s:.2f} s"
    say(f"s3://{row.bucket}/{row.key}{length}, {row.verdict or 'not published'}")
    say(f"video {row.video_id}, sha256 {row.sha256}")
    say("\nTIMELINE")
    table(
        ("from", "to", "kind", "fact"),
        [(clock(f.start_s), clock(f.end_s), f.kind, f.summary) for f in facts if f.kind != "event"],
    )
    say("\nCAUSAL GRAPH")
    for line in tree_lines(chains):
        say("  " + line)
    say("\nCAUSAL CHAINS")
    for line in chain_lines(db, row.video_id):
        say("  " + line)
    say("\nANSWERS")
    for answer in timeline.answers(db, row.video_id):
        cited = f"[{len(answer.cites)} facts cited, {answer.verdict}, {answer.engine}]"
        say(f"  {answer.kind}: {answer.claim} {cited}")
    say("\nCOVERAGE")
    table(
        ("stage", "looked at", "skipped", "trust", "why"),
        [
            (c.stage, f"{c.covered_s:.2f} s", f"{c.skipped_s:.2f} s", c.trust, c.reason)
            for c in timeline.coverage(db, row.video_id)
        ],
    )


def _find(name: str) -> VideoRow:
    """The video that ``name`` means; a local file is found by its bytes, a corpus by its ``*``."""
    path = Path(name)
    if name.endswith("*"):
        wanted = f"{CORPUS_BUCKET}{name.removeprefix(S3_SCHEME)}"
    else:
        wanted = sha256_of(path) if path.is_file() else name
    rows = find_videos(get_resources().db, wanted)
    if not rows:
        msg = f"no video {name!r} is known; process it with `reelgraph run`"
        raise UsageError(msg)
    published = [row for row in rows if row.published_at is not None]
    if len(published) > 1 and not path.is_file():
        places = ", ".join(f"{row.bucket}/{row.key}" for row in published)
        msg = f"{name!r} fits several videos: {places}"
        raise UsageError(msg)
    return max(published or rows, key=lambda row: (row.published_at is not None, row.key))
