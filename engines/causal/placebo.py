"""The same miner on data in which nothing causes anything: what it finds there is false."""

from dataclasses import dataclass

import numpy as np

from engines.causal.series import EventTable, shuffled, substituted, time_reversed
from engines.causal.verdicts import Mined, judge
from engines.contracts.causal import MinerParams

PLACEBO_PERMUTATIONS = 200
KINDS = ("shuffled", "substituted", "reversed")


@dataclass(frozen=True)
class PlaceboResult:
    """False edges found where there are none.

    Attributes:
        rate: false edges per tested pair, over all runs; None when no pair could be tested.
        runs: how many runs were made.
        found: how often each (cause, effect) came out of a placebo run. A reversed run counts
            only edges that the true order gave too: an edge that time reversal leaves as it
            is rests on clustering, not on order.
    """

    rate: float | None
    runs: int
    found: dict[tuple[str, str], int]


def run_placebos(table: EventTable, real: Mined, params: MinerParams) -> PlaceboResult:
    """Mine ``params.placebo_runs`` placebo copies, kinds in turn."""
    accepted = {(p.cause, p.effect) for p in real.pairs if p.verdict == "causal"}
    found: dict[tuple[str, str], int] = {}
    false, tested = 0, 0
    fewer = min(params.permutations, PLACEBO_PERMUTATIONS)
    lean = params.model_copy(update={"permutations": fewer})
    for run in range(params.placebo_runs):
        kind = KINDS[run % len(KINDS)]
        rng = np.random.default_rng([params.seed, 7919, run])
        if kind == "shuffled":
            copy = shuffled(table, 2 * params.max_lag_s, rng)
        elif kind == "substituted":
            copy = substituted(table, rng)
        else:
            copy = time_reversed(table)
        mined = judge(copy, lean.model_copy(update={"seed": params.seed + run}))
        edges = {(p.cause, p.effect) for p in mined.pairs if p.verdict == "causal"}
        if kind == "reversed":
            edges &= accepted
        for edge in edges:
            found[edge] = found.get(edge, 0) + 1
        false += len(edges)
        tested += mined.num_eligible
    rate = false / tested if tested else None
    return PlaceboResult(rate, params.placebo_runs, found)
