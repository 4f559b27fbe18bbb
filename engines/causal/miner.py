"""Events in, causal edges with evidence out; or an abstention with the number that was missing.

Steps: candidates by lagged co-occurrence against chance, attention over the history, selection
of direct causes, conditional independence, correction for the number of tests, removal of the
cause in the fitted model, an acyclic graph, placebo runs. See docs on each module.
"""

from collections.abc import Sequence

import numpy as np

from engines.causal.confidence import edge_confidence
from engines.causal.placebo import PlaceboResult, run_placebos
from engines.causal.series import EventTable, VideoEvents, build_table
from engines.causal.verdicts import Mined, Pair, judge
from engines.contracts.base import Coverage
from engines.contracts.causal import CausalEdge, CausesDocument, Event, MinerParams, Scope
from engines.contracts.time import TimeSpan

VERDICT_ORDER = {"causal": 0, "insufficient_evidence": 1, "not_causal": 2}
CLEAR_SHARE = 0.5
"""Attention above which one occurrence is said to have caused another."""
EDGE_RATE_HZ = 16_000


def mine(
    events: Sequence[Event],
    observed: Sequence[TimeSpan],
    params: MinerParams | None = None,
) -> CausesDocument:
    """Mine one video.

    Args:
        events: its timeline; ``event:i`` in the result is ``events[i]``.
        observed: the decoded spans; what lies outside is no evidence of absence. Empty means
            the span of the events themselves.
        params: defaults when None.

    Returns:
        Edges between types, best first, then the instances of accepted edges; verdict
        ``insufficient_evidence`` when not one pair could be tested.
    """
    params = params or MinerParams()
    spans = [(s.start_s, s.end_s) for s in observed] or _own_span(events)
    return _mine([VideoEvents("video", events, spans)], params, "video")


def mine_corpus(videos: Sequence[VideoEvents], params: MinerParams | None = None) -> CausesDocument:
    """Mine many videos together; edges have scope ``corpus`` and no instances.

    The spans of the edges reach from 0 to the lag, since no clock is shared. The result does
    not depend on the order of the videos or of their events.
    """
    ordered = sorted(videos, key=lambda v: v.video)
    return _mine(ordered, params or MinerParams(), "corpus")


def _own_span(events: Sequence[Event]) -> list[tuple[float, float]]:
    if not events:
        return []
    start = min(e.span.start_s for e in events)
    end = max(e.span.end_s for e in events)
    return [(start, end + 1e-3)]


def _mine(videos: Sequence[VideoEvents], params: MinerParams, scope: Scope) -> CausesDocument:
    table = build_table(videos, gap_s=2 * params.max_lag_s + 1.0)
    observed = table.total_s
    coverage = Coverage(covered_s=observed, skipped_s=0.0)
    missing = _nothing_to_mine(table)
    if missing is not None:
        return CausesDocument(
            coverage=coverage,
            edges=(),
            verdict="insufficient_evidence",
            reason=missing,
            num_events=len(table.time),
            effective_n=0.0,
            placebo_rate=None,
        )
    mined = judge(table, params)
    placebo = run_placebos(table, mined, params) if mined.num_eligible else None
    return _document(videos, mined, placebo, params, scope)


def _nothing_to_mine(table: EventTable) -> str | None:
    if len(table.time) == 0:
        return "0 usable events in the observed spans"
    if table.num_types < 2:  # noqa: PLR2004
        return f"{len(table.time)} events of 1 type, at least 2 types needed"
    return None


def _document(
    videos: Sequence[VideoEvents],
    mined: Mined,
    placebo: PlaceboResult | None,
    params: MinerParams,
    scope: Scope,
) -> CausesDocument:
    ranked = sorted(
        mined.pairs,
        key=lambda p: (
            VERDICT_ORDER[p.verdict],
            p.p_value if p.p_value is not None else 1.0 + p.p_scan,
            -p.cooccurrences,
            p.cause,
            p.effect,
        ),
    )
    causal = [p for p in ranked if p.verdict == "causal"]
    rest = [p for p in ranked if p.verdict != "causal" and p.cooccurrences > 0]
    shown = causal + rest[: params.max_rejected_edges]
    edges = [_edge(p, mined.table, placebo, params, scope) for p in shown]
    if scope == "video":
        for pair, edge in zip(causal, edges, strict=False):
            edges += _instances(pair, edge, mined.table, videos[0].events)
    effective = max((p.effective_n for p in mined.pairs), default=0.0)
    return CausesDocument(
        coverage=Coverage(covered_s=mined.table.total_s, skipped_s=0.0),
        edges=tuple(edges),
        verdict=_verdict(mined, causal),
        reason=_reason(mined, causal, len(rest), params),
        num_events=len(mined.table.time),
        effective_n=effective,
        placebo_rate=placebo.rate if placebo else None,
        placebo_edges=sum(placebo.found.values()) if placebo else None,
        placebo_runs=placebo.runs if placebo else 0,
    )


def _verdict(mined: Mined, causal: list[Pair]) -> str:
    if causal:
        return "edges"
    return "no_edges" if mined.num_eligible else "insufficient_evidence"


def _reason(mined: Mined, causal: list[Pair], num_rest: int, params: MinerParams) -> str:
    effective = max((p.effective_n for p in mined.pairs), default=0.0)
    if not mined.num_eligible:
        return (
            f"the best pair of types has an effective n of {effective:g}, "
            f"at least {params.min_effective_n:g} needed"
        )
    hidden = max(0, num_rest - params.max_rejected_edges)
    text = f"{len(causal)} of {mined.num_eligible} testable pairs are causal"
    return f"{text}; {hidden} more without an edge are not listed" if hidden else text


def _edge(
    pair: Pair,
    table: EventTable,
    placebo: PlaceboResult | None,
    params: MinerParams,
    scope: Scope,
) -> CausalEdge:
    tested, removal = pair.tested, pair.removal
    rate = None
    if placebo is not None and placebo.runs:
        rate = placebo.found.get((pair.cause, pair.effect), 0) / placebo.runs
    lag = None if tested is None else tested.kernel.mean_s
    return CausalEdge(
        span=_span(pair, table, lag, scope),
        scope=scope,
        cause_type=pair.cause,
        effect_type=pair.effect,
        lag_s=lag,
        cooccurrences=pair.cooccurrences,
        strength=None if tested is None else tested.kernel.weight,
        p_value=pair.p_value if pair.p_value is not None else pair.p_scan,
        q_value=pair.q_value,
        test="scan" if tested is None else f"scan+{tested.test}",
        effective_n=pair.effective_n,
        counterfactual_delta=None if removal is None else removal.delta,
        delta_low=None if removal is None else removal.low,
        delta_high=None if removal is None else removal.high,
        confidence=edge_confidence(pair, rate),
        placebo_rate=rate,
        verdict=pair.verdict,
        reason=pair.reason,
    )


def _span(pair: Pair, table: EventTable, lag: float | None, scope: Scope) -> TimeSpan:
    if scope == "corpus":
        return TimeSpan.from_seconds(0.0, lag or 0.0, rate_hz=EDGE_RATE_HZ)
    kinds = (table.names.index(pair.cause), table.names.index(pair.effect))
    times = table.time[np.isin(table.kind, kinds)] - table.offset[0]
    return TimeSpan.from_seconds(float(times[0]), float(times[-1]), rate_hz=EDGE_RATE_HZ)


def _instances(
    pair: Pair, edge: CausalEdge, table: EventTable, events: Sequence[Event]
) -> list[CausalEdge]:
    """For each effect the occurrence of the cause that most of its attention goes to."""
    tested = pair.tested
    if tested is None:
        return []
    cause_ordinals = table.ordinal[table.kind == tested.kind]
    effect_ordinals = table.ordinal[table.kind == table.names.index(pair.effect)]
    found = []
    for m in np.flatnonzero(tested.shares > CLEAR_SHARE):
        cause = int(cause_ordinals[tested.links.source[m]])
        effect = int(effect_ordinals[tested.links.target[m]])
        span = TimeSpan.from_seconds(
            events[cause].span.start_s,
            max(events[effect].span.end_s, events[effect].span.start_s),
            rate_hz=EDGE_RATE_HZ,
        )
        share = float(tested.shares[m])
        found.append(
            edge.model_copy(
                update={
                    "span": span,
                    "cause_event": f"event:{cause}",
                    "effect_event": f"event:{effect}",
                    "lag_s": float(tested.links.lag_s[m]),
                    "strength": share,
                    "confidence": None if edge.confidence is None else edge.confidence * share,
                    "reason": f"attention {share:.2f} of this occurrence; {edge.reason}",
                }
            )
        )
    return found
