"""The same miner on data in which nothing causes anything: what it finds there is false."""

from dataclasses import dataclass

import numpy as np

from engines.causal.null import PooledNull
from engines.causal.series import shuffled, substituted, time_reversed
from engines.causal.verdicts import Mined, judge
from engines.contracts.causal import MinerParams

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


def run_placebos(real: Mined, null: PooledNull, params: MinerParams) -> PlaceboResult:
    """Mine ``params.placebo_runs`` placebo copies, kinds in turn.

    The copies have the rhythms of the videos themselves, so what chance does in them is known
    already: the null of the true run, with cause and effect changed round for reversed time.
    """
    table = real.table
    accepted = {(p.cause, p.effect) for p in real.pairs if p.verdict == "causal"}
    found: dict[tuple[str, str], int] = {}
    false, tested = 0, 0
    for run in range(params.placebo_runs):
        kind = KINDS[run % len(KINDS)]
        rng = np.random.default_rng([params.seed, 7919, run])
        if kind == "shuffled":
            copy = shuffled(table, 2 * params.max_lag_s, rng)
        elif kind == "substituted":
            copy = substituted(table, rng)
        else:
            copy = time_reversed(table)
        chance = null.reversed_in_time() if kind == "reversed" else null
        mined = judge(copy, params.model_copy(update={"seed": params.seed + run}), chance)
        edges = {(p.cause, p.effect) for p in mined.pairs if p.verdict == "causal"}
        if kind == "reversed":
            edges &= accepted
        for edge in edges:
            found[edge] = found.get(edge, 0) + 1
        false += len(edges)
        tested += mined.num_eligible
    rate = false / tested if tested else None
    return PlaceboResult(rate, params.placebo_runs, found)
