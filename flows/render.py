"""Facts as text for people, the same on the command line and in the Prefect UI."""

from itertools import groupby
from uuid import UUID

from sqlalchemy import Engine

from tasks.store import timeline

MAX_REJECTED = 3


def chain_lines(db: Engine, video_id: UUID) -> list[str]:
    """Causal chains from root to effect, or why there is none; one line each."""
    # Chains between types and between their single events have the same names: one line for all.
    lines: dict[tuple[str, ...], str] = {}
    for _, group in groupby(timeline.chains(db, video_id), key=lambda step: step.chain_id):
        chain = sorted(group, key=lambda step: step.step)
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
