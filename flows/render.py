"""Facts as text for people, the same on the command line and in the Prefect UI."""

from itertools import groupby
from uuid import UUID

from sqlalchemy import Engine

from flows.chain_graph import data_uri, tree_lines
from tasks.store import timeline
from tasks.store.graphs import CausalGraph

MAX_REJECTED = 3


def chain_lines(db: Engine, video_id: UUID) -> list[str]:
    """Causal chains from root to effect, or why there is none; one line each."""
    # Chains between types and between their single events have the same names: one line for all.
    lines: dict[tuple[str, ...], str] = {}
    for _, group in groupby(timeline.chains(db, video_id), key=lambda step: step.chain_id):
        chain = sorted(group, key=lambda step: step.step)
        if chain[0].depth == 0:
            continue  # An abstention, told below with its edge.
        text = chain[0].event
        for step in chain[1:]:
            lag = "" if step.lag_s is None else f" {step.lag_s:.2f} s"
            sure = "" if step.confidence is None else f", confidence {step.confidence:.2f}"
            seen = "" if step.cooccurrences is None else f", {step.cooccurrences} times"
            text += f" =={lag}{sure}{seen}==> {step.event}"
        lines.setdefault(tuple(step.event for step in chain), text)
    if lines:
        return list(lines.values())
    edges = timeline.edges(db, video_id)
    if not edges:
        return ["no pair of events was tested"]
    return [
        f"{edge.verdict.replace('_', ' ')}: {edge.cause_type} -> {edge.effect_type}: {edge.reason}"
        for edge in edges[:MAX_REJECTED]
    ]


def graph_markdown(graph: CausalGraph, svg: str, title: str) -> str:
    """The drawing and the same in words.

    Both UIs of Prefect show an image whose address is a data URI (``<img src>``, in which an SVG
    runs no script and loads nothing); SVG written into the Markdown itself is cut down by their
    sanitisers.
    """
    lines = [f"## {plain(title)}", "", f"![{plain(title)}]({data_uri(svg)})", "", "```text"]
    lines += [line.replace("`", "'") for line in tree_lines(graph)]
    return "\n".join([*lines, "```"])


def plain(text: str) -> str:
    """Text from a video as inert Markdown: it may hold anything."""
    flat = " ".join(text.split())
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+!|~" else c for c in flat)
