"""Events in, causal edges with evidence out; or an abstention with the number that was missing.

Steps: candidates by lagged co-occurrence against chance, attention over the history, selection
of direct causes, conditional independence, correction for the number of tests, removal of the
cause in the fitted model, an acyclic graph, placebo runs. See docs on each module.
"""

from collections.abc import Sequence

import numpy as np

from engines.causal.candidates import make_bands
from engines.causal.confidence import edge_confidence
from engines.causal.null import PooledNull, draw_null, pool_null
from engines.causal.placebo import PlaceboResult, run_placebos
from engines.causal.series import EventTable, VideoEvents, event_times, join, most_frequent
from engines.causal.verdicts import Mined, Pair, judge
from engines.contracts.base import Coverage
from engines.contracts.causal import (
    CausalEdge,
    CausesDocument,
    EdgeExample,
    Event,
    MinerParams,
    Scope,
)
from engines.contracts.time import TimeSpan

VERDICT_ORDER = {"causal": 0, "insufficient_evidence": 1, "not_causal": 2}
CLEAR_SHARE = 0.5
"""Attention above which one occurrence is said to have caused another."""
EDGE_RATE_HZ = 16_000
MAX_EXAMPLES = 5
"""Occurrences that an edge of a corpus points to, of different videos as far as there are."""


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
    spans = [(s.start_s, s.end_s) for s in observed] or own_span(events)
    [times], num_rare = most_frequent(
        [event_times(VideoEvents("video", events, spans))], params.max_types
    )
    table = join([times], gap_s=2 * params.max_lag_s + 1.0)
    bands = make_bands(params.max_lag_s, params.lag_bins)
    rng = np.random.default_rng(params.seed)
    own = draw_null(table, bands, permutations=params.permutations, rng=rng)
    null = pool_null(
        table,
        bands,
        [times.names],
        lambda: [own],
        permutations=own.copies,
        min_count=params.min_effective_n,
    )
    return mine_table(table, null, params, events=events, num_rare=num_rare)


def own_span(events: Sequence[Event]) -> list[tuple[float, float]]:
    """From the first event to the last: what was observed, when nobody says so."""
    if not events:
        return []
    start = min(e.span.start_s for e in events)
    end = max(e.span.end_s for e in events)
    return [(start, end + 1e-3)]


def mine_table(
    table: EventTable,
    null: PooledNull,
    params: MinerParams,
    *,
    scope: Scope = "video",
    events: Sequence[Event] = (),
    videos: Sequence[str] = (),
    skipped_s: float = 0.0,
    num_rare: int = 0,
) -> CausesDocument:
    """Mine what was laid out on one clock.

    Args:
        table: all usable events.
        null: what chance does in them.
        params: of the miner.
        scope: ``video`` has instances of its edges, ``corpus`` examples from its videos.
        events: the timeline, for scope ``video``.
        videos: names of the table's videos, for scope ``corpus``.
        skipped_s: seconds that were not decoded.
        num_rare: types that were left out.
    """
    coverage = Coverage(covered_s=table.total_s, skipped_s=skipped_s)
    missing = _missing(table)
    if missing is not None:
        empty = nothing_to_mine(missing, scope)
        return empty.model_copy(
            update={
                "coverage": coverage,
                "num_events": len(table.time),
                "num_videos": table.num_videos,
            }
        )
    mined = judge(table, params, null)
    placebo = run_placebos(mined, null, params) if mined.num_eligible else None
    ranked = sorted(mined.pairs, key=_rank)
    causal = [p for p in ranked if p.verdict == "causal"]
    rest = [p for p in ranked if p.verdict != "causal" and p.cooccurrences > 0]
    edges = [
        _edge(p, table, placebo, params, scope) for p in causal + rest[: params.max_rejected_edges]
    ]
    if scope == "corpus":
        found = [_examples(p, table, videos) for p in causal]
        edges[: len(causal)] = [
            e.model_copy(update={"examples": x}) for e, x in zip(edges, found, strict=False)
        ]
    else:
        for pair, edge in zip(causal, list(edges), strict=False):
            edges += _instances(pair, edge, table, events)
    return CausesDocument(
        coverage=coverage,
        edges=tuple(edges),
        verdict=_verdict(mined, causal),
        reason=_reason(mined, causal, len(rest), params) + _left_out(num_rare),
        num_events=len(table.time),
        effective_n=max((p.effective_n for p in mined.pairs), default=0.0),
        placebo_rate=placebo.rate if placebo else None,
        placebo_edges=sum(placebo.found.values()) if placebo else None,
        placebo_runs=placebo.runs if placebo else 0,
        scope=scope,
        num_videos=table.num_videos,
    )


def nothing_to_mine(reason: str, scope: Scope) -> CausesDocument:
    """The abstention for want of anything to look at."""
    return CausesDocument(
        coverage=Coverage(covered_s=0.0, skipped_s=0.0),
        edges=(),
        verdict="insufficient_evidence",
        reason=reason,
        num_events=0,
        effective_n=0.0,
        placebo_rate=None,
        scope=scope,
        num_videos=0,
    )


def _missing(table: EventTable) -> str | None:
    if len(table.time) == 0:
        return "0 usable events in the observed spans"
    if table.num_types < 2:  # noqa: PLR2004
        return f"{len(table.time)} events of 1 type, at least 2 types needed"
    return None


def _rank(pair: Pair) -> tuple[int, float, int, str, str]:
    p_value = pair.p_value if pair.p_value is not None else 1.0 + pair.p_scan
    return VERDICT_ORDER[pair.verdict], p_value, -pair.cooccurrences, pair.cause, pair.effect


def _left_out(num_rare: int) -> str:
    return f"; {num_rare} rarer types were left out" if num_rare else ""


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
        num_videos=pair.agreement.num_videos if pair.agreement else None,
        heterogeneity=pair.agreement.i_squared if pair.agreement else None,
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


def _examples(pair: Pair, table: EventTable, videos: Sequence[str]) -> tuple[EdgeExample, ...]:
    """Occurrences that show the edge best: one of each video first, the clearest first."""
    tested = pair.tested
    if tested is None:
        return ()
    causes = np.flatnonzero(table.kind == tested.kind)[tested.links.source]
    effects = np.flatnonzero(table.kind == table.names.index(pair.effect))[tested.links.target]
    off = np.abs(tested.links.lag_s - tested.kernel.mean_s)
    order = np.lexsort((np.arange(len(off)), off, -np.round(tested.shares, 3)))
    order = order[tested.shares[order] > CLEAR_SHARE]
    _, first = np.unique(table.video[causes[order]], return_index=True)
    rest = np.setdiff1d(np.arange(len(order)), first)
    chosen = order[np.concatenate([np.sort(first), rest])[:MAX_EXAMPLES]]
    return tuple(
        EdgeExample(
            video=videos[int(table.video[causes[m]])],
            cause_event=f"event:{table.ordinal[causes[m]]}",
            effect_event=f"event:{table.ordinal[effects[m]]}",
            lag_s=float(tested.links.lag_s[m]),
        )
        for m in chosen
    )
