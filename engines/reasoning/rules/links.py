"""Tested causes of a video as links between event types, each with its best instance."""

from bisect import bisect_right

from pydantic import JsonValue

from engines.contracts.base import Contract, FactRef
from engines.contracts.causal import CausalEdge
from engines.prompts.untrusted import INSTRUCTION_LIKE
from engines.reasoning.rules.case import Case, readable

LINKS_SHOWN = 3
_AFTER_ANY_REF = "~"
"""Sorts after every ref, so that a search includes all events at one time."""


class Link(Contract):
    """A pair of types whose edge is causal, with one pair of events that shows it."""

    edge_ref: FactRef
    edge: CausalEdge
    cause_event: FactRef | None
    effect_event: FactRef | None

    @property
    def cause(self) -> str:
        """The cause's type in readable words."""
        return readable(self.edge.cause_type)

    @property
    def effect(self) -> str:
        """The effect's type in readable words."""
        return readable(self.edge.effect_type)

    @property
    def cites(self) -> tuple[FactRef | None, ...]:
        """The edge and the two events."""
        return (self.edge_ref, self.cause_event, self.effect_event)

    def numbers(self) -> str:
        """The figures that decided, e.g. ``6 co-occurrences, lag 0.8 s, q = 0.01``."""
        edge = self.edge
        parts = [f"{edge.cooccurrences} co-occurrences"]
        if edge.lag_s is not None:
            parts.append(f"lag {edge.lag_s:.2f} s")
        if edge.q_value is not None:
            parts.append(f"q = {edge.q_value:.3g}")
        if edge.confidence is not None:
            parts.append(f"confidence {edge.confidence:.2f}")
        return ", ".join(parts)

    def values(self) -> dict[str, JsonValue]:
        """The edge's figures for a structured answer."""
        edge = self.edge
        return {
            "edge": self.edge_ref,
            "cause_type": edge.cause_type,
            "effect_type": edge.effect_type,
            "cause_event": self.cause_event,
            "effect_event": self.effect_event,
            "lag_s": edge.lag_s,
            "cooccurrences": edge.cooccurrences,
            "q_value": edge.q_value,
            "confidence": edge.confidence,
            "test": edge.test,
        }


def links(case: Case) -> tuple[Link, ...]:
    """Causal pairs of types, the surest first; an edge between types beats its instances."""
    best: dict[tuple[str, str], tuple[int, CausalEdge]] = {}
    for n, edge in enumerate(case.causes.edges):
        item = case.by_ref.get(f"edge:{n}")
        if edge.verdict != "causal" or item is None or INSTRUCTION_LIKE in item.flags:
            continue
        pair = (edge.cause_type, edge.effect_type)
        if pair not in best or _rank(n, edge) < _rank(*best[pair]):
            best[pair] = (n, edge)
    chosen = sorted(best.values(), key=lambda found: _rank(*found)[1:])
    return tuple(_with_instance(case, n, edge) for n, edge in chosen)


def _rank(ordinal: int, edge: CausalEdge) -> tuple[bool, float, float, int]:
    sure = edge.confidence if edge.confidence is not None else 0.0
    q_value = edge.q_value if edge.q_value is not None else 1.0
    return (edge.cause_event is not None, -sure, q_value, ordinal)


def _with_instance(case: Case, ordinal: int, edge: CausalEdge) -> Link:
    cause, effect = edge.cause_event, edge.effect_event
    if cause is None or effect is None:
        cause, effect = _instance_edge(case, edge) or _instance_by_lag(case, edge)
    return Link(edge_ref=f"edge:{ordinal}", edge=edge, cause_event=cause, effect_event=effect)


def _instance_edge(case: Case, edge: CausalEdge) -> tuple[FactRef | None, FactRef | None] | None:
    pair = (edge.cause_type, edge.effect_type)
    for other in case.causes.edges:
        same = (other.cause_type, other.effect_type) == pair and other.verdict == "causal"
        if same and other.cause_event and other.effect_event:
            return other.cause_event, other.effect_event
    return None


def _instance_by_lag(case: Case, edge: CausalEdge) -> tuple[FactRef | None, FactRef | None]:
    """The pair of events whose distance comes closest to the edge's lag; earliest on a tie."""
    lag_s = edge.lag_s or 0.0
    causes = case.events_of_type.get(edge.cause_type, ())
    found: tuple[float, FactRef, FactRef] | None = None
    for effect_s, effect in case.events_of_type.get(edge.effect_type, ()):
        wanted = bisect_right(causes, (effect_s - lag_s, _AFTER_ANY_REF))
        for cause_s, cause in causes[max(0, wanted - 1) : wanted + 1]:
            if cause == effect or cause_s > effect_s:
                continue
            miss = abs(effect_s - cause_s - lag_s)
            if found is None or miss < found[0]:
                found = (miss, cause, effect)
    return (found[1], found[2]) if found else (None, None)
