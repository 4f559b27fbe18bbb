"""What a person sees of a run in the Prefect UI: progress, facts, pictures, timeline, chain."""

from collections.abc import Sequence
from typing import ParamSpec, TypeVar, cast
from uuid import UUID

from prefect import Task
from prefect.artifacts import (
    create_image_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from flows.chain_graph import draw
from flows.clock import clock
from flows.render import chain_lines, graph_markdown, plain
from tasks.objects.keys import parse_s3_uri
from tasks.resources import get_resources
from tasks.run import Run
from tasks.store import timeline
from tasks.store.graphs import causal_graph
from tasks.thumbnails import thumbnails

P = ParamSpec("P")
R = TypeVar("R")

NUM_STEPS = 8
"""Steps of the DAG that are shown one by one; stages that fan out count as one."""
MAX_PICTURES = 6
MAX_ROWS = 200


class Presentation:
    """Result artifacts of one run, under keys that name the video."""

    def __init__(self, run: Run) -> None:
        """Show a bar at zero."""
        self._run = run
        self._done = 0
        # Called outside of an event loop it returns the id itself, though its type says either.
        self._progress = cast(
            UUID,
            create_progress_artifact(0.0, key=f"progress-{run.video_id}", description=f"{run.ref}"),
        )

    def step(self, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one task of the DAG and move the bar."""
        result = task(*args, **kwargs)
        self.advance(task.name)
        return result

    def advance(self, what: str) -> None:
        """Move the bar by one step."""
        self._done = min(self._done + 1, NUM_STEPS)
        update_progress_artifact(
            self._progress, progress=100.0 * self._done / NUM_STEPS, description=f"{what} done"
        )

    def facts(self) -> None:
        """Table of facts, timeline, causal graph and chains, and pictures of keyframes."""
        db, video_id = get_resources().db, self._run.video_id
        rows = timeline.timeline(db, video_id)
        create_table_artifact(
            [
                {"from": clock(r.start_s), "to": clock(r.end_s), "kind": r.kind, "fact": r.summary}
                for r in rows[:MAX_ROWS]
            ],
            key=f"facts-{video_id}",
            description=f"Facts of {self._run.ref} ({len(rows)} in all)",
        )
        create_markdown_artifact(
            _markdown(self._run, rows, chain_lines(db, video_id)),
            key=f"story-{video_id}",
            description=f"Timeline, causal chain and answers of {self._run.ref}",
        )
        _show_graph(self._run, f"Causal graph of {self._run.ref}")
        self._pictures()

    def _pictures(self) -> None:
        world = get_resources()
        frames = timeline.keyframes(world.db, self._run.video_id)
        stride = max(1, len(frames) // MAX_PICTURES)
        for number, frame in enumerate(frames[::stride][:MAX_PICTURES]):
            if frame.image_uri is None:
                continue
            create_image_artifact(
                world.objects.presigned_url(parse_s3_uri(frame.image_uri)),
                key=f"keyframe-{number}-{self._run.video_id}",
                description=f"{clock(frame.start_s)}, shot {frame.shot_ordinal}, {frame.reason}",
            )


def show_corpus(run: Run) -> None:
    """The causal graph of a corpus, under a key that names it."""
    _show_graph(run, f"Causal graph over the videos of {run.ref}")


def _show_graph(run: Run, title: str) -> None:
    world = get_resources()
    graph = causal_graph(world.db, run.video_id)
    pictures = thumbnails(world, (node.image_uri for node in graph.nodes))
    create_markdown_artifact(
        graph_markdown(graph, draw(graph, pictures), title),
        key=f"graph-{run.video_id}",
        description=title,
    )


def _markdown(run: Run, rows: Sequence[timeline.FactRow], chain: Sequence[str]) -> str:
    db = get_resources().db
    lines = [f"## {plain(str(run.ref))}", "", "### Causal chain", ""]
    lines += [f"- {plain(line)}" for line in chain]
    lines += ["", "### Answers", ""]
    for answer in timeline.answers(db, run.video_id):
        lines.append(f"- **{answer.kind}**: {plain(answer.claim)} ({len(answer.cites)} cited)")
    lines += ["", "### Timeline", "", "| from | to | kind | fact |", "|---|---|---|---|"]
    lines += [
        f"| {clock(r.start_s)} | {clock(r.end_s)} | {r.kind} | {plain(r.summary)} |"
        for r in rows[:MAX_ROWS]
    ]
    lines += ["", "### Coverage", "", "| stage | looked at | skipped | why |", "|---|---|---|---|"]
    lines += [
        f"| {c.stage} | {c.covered_s:.1f} s | {c.skipped_s:.1f} s | {plain(c.reason or '')} |"
        for c in timeline.coverage(db, run.video_id)
    ]
    return "\n".join(lines)
