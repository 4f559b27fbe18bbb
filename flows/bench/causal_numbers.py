"""Known-truth numbers: kernel tests against their reference, lagged systems, Sachs, speed.

The reference implementation (causal-learn) and the Sachs measurements (in the wheel of cdt) are
optional: rows that need them say when they are absent.
"""

import csv
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from engines.causal.kci import kci
from engines.causal.lagged import lagged_edges
from engines.causal.miner import mine_corpus
from engines.causal.rcit import rcit
from engines.causal.series import VideoEvents
from engines.causal.tabular import directed_edges, pc_edges
from engines.contracts.causal import Event, MinerParams
from engines.contracts.time import TimeSpan
from flows.bench import BenchReport, BenchRow
from flows.bench.causal_baselines import correlation_p_values, var_p_values

KCI_SPEEDUP = 20.0
P_TOLERANCE = 0.02
LAGGED_LENGTHS = (60, 200, 500)
LAGGED_SYSTEMS = 10
NUM_SERIES = 6
NUM_EDGES = 8
MAX_LAG = 3
ALPHA = 0.05
CORPUS_LIMIT_S = 600.0

Edges = set[tuple[int, int, int]]
Array = NDArray[np.float64]


class Test(Protocol):
    """A conditional independence test of the reference implementation."""

    def compute_pvalue(self, data_x: Array, data_y: Array, data_z: Array) -> tuple[float, float]:
        """P-value and statistic of columns [n, d]."""


def run(*, corpus_videos: int = 1000, kci_sizes: tuple[int, ...] = (200, 500, 2000)) -> BenchReport:
    """All rows; the corpus row mines ``corpus_videos`` videos of 200 events and 40 types."""
    rows = [*kernel_rows(kci_sizes), *lagged_rows(), *sachs_rows()]
    return BenchReport(rows=(*rows, *speed_rows(corpus_videos)))


def _conditional_sample(n: int, seed: int, strength: float) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng([n, seed])
    z = rng.normal(size=(n, 2))
    x = np.tanh(z[:, 0]) + 0.7 * rng.normal(size=n)
    y = np.sin(z[:, 0]) + strength * x * x + 0.7 * rng.normal(size=n)
    return x, y, z


def kernel_rows(sizes: tuple[int, ...]) -> list[BenchRow]:
    """Own KCI and RCIT beside the reference: CPU time and difference in p-value.

    On one thread: spinning threads of the matrix library would count as work of either side.
    """
    if find_spec("causallearn") is None:
        note: dict[str, float | int | str | None] = {"note": "causal-learn is not installed"}
        return [BenchRow(name="kci against causal-learn", figures=note, must=None, holds=None)]
    from causallearn.utils.KCI.KCI import KCI_CInd
    from causallearn.utils.RCIT.RCIT import RCIT

    with threadpool_limits(1):
        return [_kernel_row(n, KCI_CInd, RCIT) for n in sizes]


def _kernel_row(
    n: int, oracle_kci: Callable[[], Test], oracle_rcit: Callable[[], Test]
) -> BenchRow:
    """One sample size."""
    kci(*_conditional_sample(100, 0, 0.0))
    own_s, reference_s, rcit_s, gap = 0.0, 0.0, [0.0, 0.0], 0.0
    for seed in range(1 if n > 1000 else 3):
        x, y, z = _conditional_sample(n, seed, 0.04 * seed)
        begin = time.process_time()
        own = kci(x, y, z)
        middle = time.process_time()
        reference = float(oracle_kci().compute_pvalue(x[:, None], y[:, None], z)[0])
        end = time.process_time()
        own_s, reference_s = own_s + middle - begin, reference_s + end - middle
        gap = max(gap, abs(own - reference))
        begin = time.process_time()
        rcit(x, y, z, seed=seed)
        middle = time.process_time()
        oracle_rcit().compute_pvalue(x[:, None], y[:, None], z)
        rcit_s[0] += middle - begin
        rcit_s[1] += time.process_time() - middle
    faster = reference_s / max(own_s, 1e-9)
    figures: dict[str, float | int | str | None] = {
        "times_faster": round(faster, 1),
        "largest_p_difference": round(gap, 5),
        "rcit_times_faster": round(rcit_s[1] / max(rcit_s[0], 1e-9), 1),
    }
    return BenchRow(
        name=f"kci, n = {n}",
        figures=figures,
        must=f"{KCI_SPEEDUP:g} times faster, p within {P_TOLERANCE}",
        holds=faster >= KCI_SPEEDUP and gap <= P_TOLERANCE,
    )


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


def lagged_rows() -> list[BenchRow]:
    """F1 of exact (cause, effect, lag) on linear and bent systems of several lengths."""
    rows = []
    for bent in (False, True):
        for length in LAGGED_LENGTHS:
            counts = {name: [0, 0] for name in ("ours", "VAR t-test", "lagged correlation")}
            for seed in range(LAGGED_SYSTEMS):
                series, truth = lagged_system(length, seed, bent=bent)
                found = {
                    "ours": {
                        (e.cause, e.effect, e.lag) for e in lagged_edges(series, max_lag=MAX_LAG)
                    },
                    "VAR t-test": _below(var_p_values(series, MAX_LAG)),
                    "lagged correlation": _below(correlation_p_values(series, MAX_LAG)),
                }
                for name, edges in found.items():
                    counts[name][0] += len(edges & truth)
                    counts[name][1] += len(edges)
            true = LAGGED_SYSTEMS * NUM_EDGES
            figures: dict[str, float | int | str | None] = {
                name: round(_f1(hit, total, true), 3) for name, (hit, total) in counts.items()
            }
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


def _sachs() -> tuple[Array, list[str], set[tuple[str, str]]] | None:
    """Measurements float64 [n, 11], names and true edges, read without importing cdt."""
    spec = find_spec("cdt")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "data" / "resources"
    with (folder / "cyto_full_data.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    with (folder / "cyto_full_target.csv").open(newline="") as file:
        edges = {(r[0], r[1]) for r in list(csv.reader(file))[1:]}
    return np.array(rows[1:], dtype=np.float64), rows[0], edges


def sachs_rows() -> list[BenchRow]:
    """F1 of edges and of directed edges on the protein measurements of Sachs et al. (2005)."""
    loaded = _sachs()
    if loaded is None:
        note: dict[str, float | int | str | None] = {"note": "cdt is not installed"}
        return [BenchRow(name="Sachs", figures=note, must=None, holds=None)]
    data, names, truth = loaded
    order = np.random.default_rng(0).permutation(len(names))
    data, names = data[:, order], [names[i] for i in order]
    own = {(names[a], names[b]) for a, b in directed_edges(data)}
    pc = {(names[a], names[b]) for a, b in pc_edges(data)}
    found = {"ours": own, "PC (Fisher-Z)": pc}
    figures: dict[str, float | int | str | None] = {}
    for name, edges in found.items():
        undirected = {frozenset(e) for e in edges}
        true = {frozenset(e) for e in truth}
        figures[f"{name}, directed F1"] = round(_f1(len(edges & truth), len(edges), len(truth)), 3)
        figures[f"{name}, skeleton F1"] = round(
            _f1(len(undirected & true), len(undirected), len(true)), 3
        )
    scores = {name: _f1(len(e & truth), len(e), len(truth)) for name, e in found.items()}
    holds = scores["ours"] >= max(scores.values())
    return [BenchRow(name="Sachs", figures=figures, must="no worse than PC", holds=holds)]


def synthetic_corpus(
    num_videos: int, events_each: int, num_types: int, seed: int
) -> list[VideoEvents]:
    """Videos of ten minutes in which every fourth type causes the next one."""
    rng = np.random.default_rng(seed)
    videos = []
    for number in range(num_videos):
        kinds = rng.integers(num_types, size=events_each * 3 // 4)
        times = rng.uniform(0.0, 595.0, len(kinds))
        rows = list(zip(times.tolist(), kinds.tolist(), strict=True))
        rows += [
            (t + 0.8 + 0.1 * float(rng.normal()), kind + 1)
            for t, kind in rows
            if kind % 4 == 0 and kind + 1 < num_types
        ]
        events = [
            Event(
                span=TimeSpan.from_seconds(t, t),
                type=f"motion:{kind}",
                subject=None,
                description="",
                source="motion",
                evidence=(),
            )
            for t, kind in rows[:events_each]
        ]
        videos.append(VideoEvents(f"video{number:05d}", events, [(0.0, 600.0)]))
    return videos


def speed_rows(num_videos: int) -> list[BenchRow]:
    """CPU seconds of mining corpora that grow in videos and in types, one placebo run each kind."""
    params = MinerParams(permutations=200, placebo_runs=3)
    rows = []
    shapes = [(num_videos // 4, 200, 40), (num_videos // 4, 200, 10), (num_videos, 200, 40)]
    for videos, each, types in shapes:
        corpus = synthetic_corpus(videos, each, types, seed=1)
        begin, cpu = time.monotonic(), time.process_time()
        document = mine_corpus(corpus, params)
        seconds, used = time.monotonic() - begin, time.process_time() - cpu
        found = {(e.cause_type, e.effect_type) for e in document.edges if e.verdict == "causal"}
        truth = {(f"motion:{k}", f"motion:{k + 1}") for k in range(0, types - 1, 4)}
        full = videos == num_videos
        rows.append(
            BenchRow(
                name=f"corpus of {videos} videos x {each} events x {types} types",
                figures={
                    "seconds": round(seconds, 1),
                    "cpu_seconds": round(used, 1),
                    "f1": round(_f1(len(found & truth), len(found), len(truth)), 3),
                    "placebo_rate": document.placebo_rate,
                },
                must=f"at most {CORPUS_LIMIT_S:g} s of CPU" if full else None,
                holds=used <= CORPUS_LIMIT_S if full else None,
            )
        )
    return rows
