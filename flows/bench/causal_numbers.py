"""Known-truth numbers: kernel tests against their reference, lagged systems, tables without time.

The reference implementation (causal-learn) is an optional extra: rows that need it say when it is
absent.
"""

import numpy as np
from numpy.typing import NDArray

from engines.causal.lagged import lagged_edges
from flows.bench import BenchReport, BenchRow
from flows.bench.causal_baselines import correlation_p_values, pc_lagged, var_p_values
from flows.bench.causal_kernels import kernel_rows
from flows.bench.causal_tabular import made_rows, sachs_rows

LAGGED_LENGTHS = (60, 200, 500)
LAGGED_SYSTEMS = 10
NUM_SERIES = 6
NUM_EDGES = 8
MAX_LAG = 3
ALPHA = 0.05

Edges = set[tuple[int, int, int]]
Array = NDArray[np.float64]


def run(*, kci_sizes: tuple[int, ...] = (200, 500, 2000)) -> BenchReport:
    """All rows; KCI and RCIT are compared at the given numbers of rows."""
    rows = [*kernel_rows(kci_sizes), *lagged_rows(), *made_rows(), *sachs_rows()]
    return BenchReport(rows=tuple(rows))


def lagged_system(length: int, seed: int, *, bent: bool) -> tuple[Array, Edges]:
    """A random autoregressive system: series float64 [length, k] and its (cause, effect, lag)."""
    rng = np.random.default_rng([length, seed, int(bent)])
    edges: list[tuple[int, int, int, float, int]] = []
    while len(edges) < NUM_EDGES:
        cause, effect = (int(v) for v in rng.choice(NUM_SERIES, 2, replace=False))
        if any((cause, effect) == e[:2] for e in edges):
            continue
        weight = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 0.6))
        form = int(rng.integers(3)) if bent else 0
        edges.append((cause, effect, int(rng.integers(1, MAX_LAG + 1)), weight, form))
    own = rng.uniform(0.2, 0.6, NUM_SERIES)
    warm = 100
    series = np.zeros((length + warm, NUM_SERIES))
    for t in range(MAX_LAG, length + warm):
        series[t] = own * series[t - 1] + rng.normal(size=NUM_SERIES)
        for cause, effect, lag, weight, form in edges:
            past = series[t - lag, cause]
            shapes = (past, 1.2 * np.tanh(1.5 * past), min(past * past, 6.0) - 1.0)
            series[t, effect] += weight * shapes[form]
        series[t] = np.clip(series[t], -8.0, 8.0)
    return series[warm:], {e[:3] for e in edges}


def _below(p_values: Array) -> Edges:
    return {(int(i), int(j), int(lag) + 1) for lag, i, j in np.argwhere(p_values < ALPHA) if i != j}


def _f1(hit: int, found: int, true: int) -> float:
    return 2.0 * hit / max(1, found + true)


def _nearest() -> Edges:
    """The position prior: what just happened, anywhere, causes what happens now."""
    pairs = [(i, j) for i in range(NUM_SERIES) for j in range(NUM_SERIES) if i != j]
    return {(i, j, 1) for i, j in pairs}


def lagged_rows() -> list[BenchRow]:
    """F1 of exact (cause, effect, lag) on linear and bent systems of several lengths."""
    rows = []
    for bent in (False, True):
        for length in LAGGED_LENGTHS:
            counts: dict[str, list[int]] = {}
            for seed in range(LAGGED_SYSTEMS):
                series, truth = lagged_system(length, seed, bent=bent)
                found = {
                    "ours": {
                        (e.cause, e.effect, e.lag) for e in lagged_edges(series, max_lag=MAX_LAG)
                    },
                    "position prior": _nearest(),
                    "VAR t-test": _below(var_p_values(series, MAX_LAG)),
                    "PC": pc_lagged(series, MAX_LAG, alpha=ALPHA),
                    "lagged correlation": _below(correlation_p_values(series, MAX_LAG)),
                }
                for name, edges in found.items():
                    count = counts.setdefault(name, [0, 0])
                    count[0] += len(edges & truth)
                    count[1] += len(edges)
            true = LAGGED_SYSTEMS * NUM_EDGES
            figures: dict[str, float | int | str | None] = {
                name: round(_f1(hit, total, true), 3) for name, (hit, total) in counts.items()
            }
            figures["language model only"] = "does not apply: numbers without names"
            scores = {name: _f1(hit, total, true) for name, (hit, total) in counts.items()}
            kind = "bent" if bent else "linear"
            rows.append(
                BenchRow(
                    name=f"lagged system, {kind}, T = {length}, F1",
                    figures=figures,
                    must="ours no worse than the best other",
                    holds=scores["ours"] >= max(scores.values()) - 1e-9,
                )
            )
    return rows
