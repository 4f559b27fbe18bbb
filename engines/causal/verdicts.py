"""One verdict per ordered pair of types, each with the number that decided it."""

from dataclasses import dataclass, replace

import numpy as np

from engines.causal.agreement import Agreement, agreement
from engines.causal.candidates import Scan, make_bands, scan_pairs
from engines.causal.counterfactual import Removal, remove
from engines.causal.graph import acyclic, benjamini_hochberg
from engines.causal.null import PooledNull
from engines.causal.parents import EffectModel, EffectSearch, Tested
from engines.causal.series import EventTable, Floats
from engines.contracts.causal import EdgeVerdict, MinerParams

SCREEN_ALPHA = 0.05
CONTRADICTION_SHARE = 0.4
"""A reverse edge this strong beside an edge leaves the direction open."""
WIDE_DELTA = 0.3
"""An interval that holds zero but also this much is no proof of absence."""


@dataclass(frozen=True)
class Pair:
    """Everything known about one ordered pair of types."""

    cause: str
    effect: str
    cooccurrences: int
    effective_n: float
    lift: float
    p_scan: float
    verdict: EdgeVerdict
    reason: str
    p_value: float | None = None
    q_value: float | None = None
    tested: Tested | None = None
    removal: Removal | None = None
    agreement: Agreement | None = None


@dataclass(frozen=True)
class Mined:
    """Pairs with a verdict, and the models behind them."""

    table: EventTable
    scan: Scan
    pairs: tuple[Pair, ...]
    models: dict[str, EffectModel]
    num_eligible: int


def separate_occurrences(time: Floats, width_s: float) -> int:
    """Occurrences that are further apart than ``width_s`` from the one counted before."""
    following = np.searchsorted(time, time + width_s, side="right").tolist()
    count, at = 0, 0
    while at < len(following):
        count, at = count + 1, following[at]
    return count


class _Counter:
    """Separate occurrences by type and width, counted once for all pairs that ask."""

    def __init__(self, table: EventTable) -> None:
        self._times = [table.of_type(kind) for kind in range(table.num_types)]
        self._known: dict[tuple[int, int], int] = {}

    def __call__(self, kind: int, width_s: float) -> int:
        key = (kind, round(width_s * 1e6))
        if key not in self._known:
            self._known[key] = separate_occurrences(self._times[kind], width_s)
        return self._known[key]


def judge(table: EventTable, params: MinerParams, null: PooledNull) -> Mined:
    """Scan, select parents, test, intervene, and decide, for all pairs of types.

    Args:
        table: all events.
        params: of the miner.
        null: what chance does in these videos.
    """
    bands = make_bands(params.max_lag_s, params.lag_bins)
    scan = scan_pairs(table, bands, null.score, null.frequent)
    nuisance = tuple(f"{source}:" for source in params.nuisance_sources)
    separate = _Counter(table)
    open_pairs: list[Pair] = []
    models: dict[str, EffectModel] = {}
    for e, effect in enumerate(table.names):
        if effect.startswith(nuisance):
            continue
        found = [
            _screen(table, scan, (c, e), separate, params)
            for c, cause in enumerate(table.names)
            if c != e and not cause.startswith(nuisance)
        ]
        kinds = [
            table.names.index(p.cause)
            for p in found
            if p.verdict != "insufficient_evidence" and p.p_scan <= SCREEN_ALPHA
        ]
        if kinds:
            helpers = [
                c
                for c, name in enumerate(table.names)
                if (c == e or name.startswith(nuisance)) and scan.p_value[c, e] <= SCREEN_ALPHA
            ]
            models[effect] = EffectSearch(table, scan, e, params).run(sorted(kinds + helpers))
            found = [_attach(p, models[effect], table) for p in found]
        open_pairs += found
    decided = _decide(table, open_pairs, models, params)
    eligible = sum(p.verdict != "insufficient_evidence" for p in open_pairs)
    return Mined(table, scan, tuple(decided), models, eligible)


def _screen(
    table: EventTable, scan: Scan, types: tuple[int, int], separate: _Counter, params: MinerParams
) -> Pair:
    c, e = types
    low, high = scan.bands.seconds(int(scan.band[c, e]))
    n_cause, n_effect = separate(c, high - low), separate(e, high - low)
    together = int(min(scan.count[c, e], n_cause, n_effect))
    p = float(scan.p_value[c, e])
    pair = Pair(
        cause=table.names[c],
        effect=table.names[e],
        cooccurrences=together,
        effective_n=float(min(n_cause, n_effect)),
        lift=float(scan.lift[c, e]),
        p_scan=p,
        verdict="not_causal",
        reason=(
            f"follows within {params.max_lag_s:g} s no more often than chance: "
            f"{together} co-occurrences, p = {p:.2g}"
        ),
    )
    if min(n_cause, n_effect) < params.min_effective_n:
        reason = (
            f"effective n is {min(n_cause, n_effect)} separate occurrences, "
            f"at least {params.min_effective_n:g} needed"
        )
        return replace(pair, verdict="insufficient_evidence", reason=reason)
    if together < params.min_cooccurrences and p <= SCREEN_ALPHA:
        reason = f"{together} co-occurrences, at least {params.min_cooccurrences} needed"
        return replace(pair, verdict="insufficient_evidence", reason=reason)
    return pair


def _attach(pair: Pair, model: EffectModel, table: EventTable) -> Pair:
    for tested in model.tested:
        if table.names[tested.kind] == pair.cause:
            joint = max(pair.p_scan, tested.p_value)
            return replace(pair, tested=tested, p_value=joint)
    return pair


def _decide(
    table: EventTable, pairs: list[Pair], models: dict[str, EffectModel], params: MinerParams
) -> list[Pair]:
    eligible = [p for p in pairs if p.verdict != "insufficient_evidence"]
    listed = np.array([p.p_value if p.p_value is not None else 1.0 for p in eligible])
    q_values = benjamini_hochberg(listed) if len(listed) else listed
    q_of = {(p.cause, p.effect): float(q) for p, q in zip(eligible, q_values, strict=True)}
    judged = [_judge_one(table, p, q_of.get((p.cause, p.effect)), models, params) for p in pairs]
    judged = _withdraw_contradictions(judged)
    accepted = sorted((p for p in judged if p.verdict == "causal"), key=_strength)
    kept = acyclic([(p.cause, p.effect) for p in accepted])
    dropped = {(p.cause, p.effect) for p, keep in zip(accepted, kept, strict=True) if not keep}
    return [_break_cycle(p) if (p.cause, p.effect) in dropped else p for p in judged]


def _strength(pair: Pair) -> tuple[float, float, str, str]:
    gain = pair.tested.gain_nats if pair.tested else 0.0
    return pair.p_value or 0.0, -gain, pair.cause, pair.effect


def _withdraw_contradictions(pairs: list[Pair]) -> list[Pair]:
    """Where both directions hold and neither is far stronger, neither is claimed."""
    accepted = {(p.cause, p.effect): p for p in pairs if p.verdict == "causal"}
    return [
        _contradicted(p, accepted[p.effect, p.cause])
        if p.verdict == "causal" and (p.effect, p.cause) in accepted
        else p
        for p in pairs
    ]


def _contradicted(pair: Pair, reverse: Pair) -> Pair:
    own, other = pair.removal, reverse.removal
    if own is None or other is None or other.delta < CONTRADICTION_SHARE * own.delta:
        return pair
    reason = (
        f"the occurrences contradict each other: {pair.effect} followed {own.followed} times, "
        f"{pair.cause} followed {other.followed} times"
    )
    return replace(pair, verdict="insufficient_evidence", reason=reason)


def _break_cycle(pair: Pair) -> Pair:
    reason = f"would close a cycle with edges of stronger evidence; p = {pair.p_value or 1.0:.2g}"
    return replace(pair, verdict="insufficient_evidence", reason=reason)


def _judge_one(
    table: EventTable,
    pair: Pair,
    q_value: float | None,
    models: dict[str, EffectModel],
    params: MinerParams,
) -> Pair:
    tested = pair.tested
    if tested is None or q_value is None or pair.verdict == "insufficient_evidence":
        return pair
    model = models[pair.effect]
    rng = np.random.default_rng([params.seed, model.kind, tested.kind])
    removal = remove(table, model, tested, params, rng)
    agreed = agreement(removal, params.alpha)
    pair = replace(pair, q_value=q_value, removal=removal, agreement=agreed)
    interval = f"[{removal.low:.2f}, {removal.high:.2f}]"
    if not tested.selected or q_value > params.alpha:
        return replace(pair, reason=_explained(table, tested, q_value, params))
    if removal.low <= 0.0:
        verdict: EdgeVerdict = (
            "insufficient_evidence" if removal.high > WIDE_DELTA else "not_causal"
        )
        reason = f"removing it changes {removal.delta:.2f} per occurrence, {interval} holds zero"
        return replace(pair, verdict=verdict, reason=reason)
    if agreed is not None and agreed.is_contradiction:
        return replace(pair, verdict="insufficient_evidence", reason=agreed.describe())
    reason = (
        f"{removal.followed} of {removal.occurrences} followed, {removal.delta:.2f} {interval} "
        f"lost per removed cause, q = {q_value:.2g}"
    )
    if agreed is not None and agreed.differ:
        reason += f"; {agreed.describe()}"
    return replace(pair, verdict="causal", reason=reason)


def _explained(table: EventTable, tested: Tested, q_value: float, params: MinerParams) -> str:
    rivals = ", ".join(table.names[r] for r in tested.rivals)
    if rivals and not tested.selected:
        return (
            f"adds {tested.gain_nats:.1f} nats to what {rivals} explains; "
            f"p = {tested.p_value:.2g} given that"
        )
    return f"q = {q_value:.2g} is not below {params.alpha:g} ({tested.test})"
