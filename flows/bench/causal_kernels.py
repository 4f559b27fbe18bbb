"""Own kernel independence tests beside their reference implementation, causal-learn.

Same kernel widths, same ridge, same null on both sides. CPU time is that of the calling thread,
with the matrix library held to it: its spinning helpers would count as work of either side. The
two take turns on each draw, and of each draw the best round of either counts; the ratio in the
median round and the wall time with all threads stand beside it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from engines.causal.kci import kci
from engines.causal.rcit import rcit
from engines.causal.tabular import kernel_test, pc_edges
from flows.bench import BenchRow

SPEEDUP = 20.0
P_TOLERANCE = 0.02
CONDITIONS = (0, 1, 3)
SEARCH_VARIABLES = 11
SEARCH_N = 200
RCIT_DRAWS = 40
OWN_REPEATS = 16
"""Tests of the faster side in a row, beside one of the slower: their times are alike then, and
caches as warm as in a search."""
STRENGTHS = (0.0, 0.04, 0.08, 0.3)
"""Of the dependence, draw by draw: p-values from the whole of [0, 1]."""

Array = NDArray[np.float64]
Sample = tuple[Array, Array, Array | None]
PValue = Callable[[Sample], float]
Figures = dict[str, float | int | str | None]


def conditional_sample(n: int, dimensions: int, seed: int, strength: float) -> Sample:
    """Draw x and y [n] that share z [n, dimensions], and depend on each other by ``strength``."""
    rng = np.random.default_rng([n, dimensions, seed])
    z = rng.normal(size=(n, dimensions))
    shared = z[:, 0] if dimensions else np.zeros(n)
    x = np.tanh(shared) + 0.7 * rng.normal(size=n)
    y = np.sin(shared) + strength * x * x + 0.7 * rng.normal(size=n)
    return x, y, z if dimensions else None


def own_kci(sample: Sample) -> float:
    """The project's test."""
    return kci(*sample)


def reference_kci(sample: Sample, *, simulated_null: bool = False) -> float:
    """causal-learn's test, with its gamma null or with its simulated one."""
    from causallearn.utils.KCI.KCI import KCI_CInd, KCI_UInd

    x, y, z = sample
    gamma = not simulated_null
    if z is None:
        return float(KCI_UInd(approx=gamma).compute_pvalue(x[:, None], y[:, None])[0])
    return float(KCI_CInd(approx=gamma).compute_pvalue(x[:, None], y[:, None], z)[0])


def _reference_rcit(sample: Sample) -> float:
    from causallearn.utils.RCIT.RCIT import RCIT, RIT

    x, y, z = sample
    if z is None:
        return float(RIT().compute_pvalue(x[:, None], y[:, None])[0])
    return float(RCIT().compute_pvalue(x[:, None], y[:, None], z)[0])


def kernel_rows(sizes: tuple[int, ...]) -> list[BenchRow]:
    """KCI by size and number of conditions, KCI in one graph search, RCIT by size."""
    if find_spec("causallearn") is None:
        note: Figures = {"note": "causal-learn is not installed"}
        return [BenchRow(name="kci against causal-learn", figures=note, must=None, holds=None)]
    rows = [_kci_row(n, d) for n in sizes for d in CONDITIONS]
    return [*rows, _search_row(), *(_rcit_row(n) for n in sizes)]


@dataclass(frozen=True)
class _Timing:
    """Seconds per test of either side, round by round, and the p-values.

    Attributes:
        own_s: float64 [rounds, draws].
        reference_s: float64 [rounds, draws].
        own: float64 [draws], p-values.
        reference: float64 [draws], p-values.
    """

    own_s: Array
    reference_s: Array
    own: Array
    reference: Array

    def seconds(self) -> tuple[float, float]:
        """Per test, of each draw the best round: what else the machine did only adds to a time."""
        return float(self.own_s.min(axis=0).mean()), float(self.reference_s.min(axis=0).mean())

    def faster(self) -> float:
        """How many times."""
        own, reference = self.seconds()
        return reference / max(own, 1e-9)

    def faster_in_median_round(self) -> float:
        """The same without choosing rounds."""
        own, reference = self.own_s.sum(axis=1), self.reference_s.sum(axis=1)
        return float(np.median(reference / np.maximum(own, 1e-9)))


def _timed(clock: Callable[[], float], samples: list[Sample], rounds: int) -> _Timing:
    """Both sides in turn on each draw, so that what else the machine does falls on both."""
    shape = (rounds, len(samples))
    own_s, reference_s = np.zeros(shape), np.zeros(shape)
    own, reference = np.zeros(len(samples)), np.zeros(len(samples))
    for at in np.ndindex(shape):
        sample, draw = samples[at[1]], at[1]
        own_kci(sample)
        begin = clock()
        for _ in range(OWN_REPEATS):
            own[draw] = own_kci(sample)
        middle = clock()
        reference[draw] = reference_kci(sample)
        own_s[at], reference_s[at] = (middle - begin) / OWN_REPEATS, clock() - middle
    return _Timing(own_s, reference_s, own, reference)


def _kci_row(n: int, dimensions: int) -> BenchRow:
    """One sample size and number of conditions."""
    draws, rounds = (12, 15) if n <= 200 else (4, 5) if n <= 1000 else (1, 1)
    strengths = [STRENGTHS[(s + 1) % len(STRENGTHS)] for s in range(draws)]
    samples = [conditional_sample(n, dimensions, s, strengths[s]) for s in range(draws)]
    reference_kci(conditional_sample(50, dimensions, 0, 0.0))
    with threadpool_limits(1):
        timing = _timed(time.thread_time, samples, rounds)
    wall = _timed(time.monotonic, samples[:2], min(rounds, 3))
    gap = float(np.abs(timing.own - timing.reference).max())
    own_s, reference_s = timing.seconds()
    figures: Figures = {
        "times_faster": round(timing.faster(), 1),
        "times_faster_in_median_round": round(timing.faster_in_median_round(), 1),
        "largest_p_difference": round(gap, 5),
        "own_ms": round(1e3 * own_s, 3),
        "reference_ms": round(1e3 * reference_s, 1),
        "times_faster_wall_all_threads": round(wall.faster(), 1),
        "draws": draws,
    }
    if n <= 200:
        np.random.seed(0)
        simulated = [reference_kci(sample, simulated_null=True) for sample in samples]
        figures["largest_p_difference_to_simulated_null"] = round(
            float(np.abs(np.subtract(timing.own, simulated)).max()), 4
        )
    return BenchRow(
        name=f"kci, n = {n}, {dimensions} conditions",
        figures=figures,
        must=f"{SPEEDUP:g} times faster, p within {P_TOLERANCE}",
        holds=timing.faster() >= SPEEDUP and gap <= P_TOLERANCE,
    )


def _search_table() -> Array:
    """A random additive system of ``SEARCH_VARIABLES`` columns."""
    rng = np.random.default_rng(0)
    table = np.zeros((SEARCH_N, SEARCH_VARIABLES))
    for effect in range(SEARCH_VARIABLES):
        for cause in range(effect):
            if rng.random() < 2.0 / (SEARCH_VARIABLES - 1):
                form = (table[:, cause], np.tanh(2.0 * table[:, cause]), table[:, cause] ** 2)
                table[:, effect] += rng.uniform(0.6, 1.2) * form[int(rng.integers(3))]
        table[:, effect] += rng.normal(size=SEARCH_N)
        table[:, effect] /= table[:, effect].std()
    return table


def _search_row() -> BenchRow:
    """The PC algorithm with either test: what shared factors are worth."""
    table = _search_table()
    tests = 0

    def reference(i: int, j: int, given: tuple[int, ...]) -> bool:
        nonlocal tests
        tests += 1
        z = table[:, sorted(given)] if given else None
        return reference_kci((table[:, min(i, j)], table[:, max(i, j)], z)) > 0.05

    with threadpool_limits(1):
        begin = time.thread_time()
        own = pc_edges(SEARCH_VARIABLES, kernel_test(table, alpha=0.05))
        middle = time.thread_time()
        theirs = pc_edges(SEARCH_VARIABLES, reference)
        end = time.thread_time()
    faster = (end - middle) / max(middle - begin, 1e-9)
    return BenchRow(
        name=f"PC with kci, {SEARCH_VARIABLES} variables, n = {SEARCH_N}",
        figures={
            "times_faster": round(faster, 1),
            "own_s": round(middle - begin, 3),
            "reference_s": round(end - middle, 2),
            "tests": tests,
            "edges_that_differ": len(own ^ theirs),
        },
        must=f"{SPEEDUP:g} times faster, the same graph",
        holds=faster >= SPEEDUP and own == theirs,
    )


def _rcit_row(n: int) -> BenchRow:
    """RCIT with three conditions; both sides are random, so rejections are compared."""
    figures: Figures = {}
    own_s = reference_s = 0.0
    np.random.seed(0)
    for label, strength in (("independent", 0.0), ("dependent", 0.15)):
        samples = [conditional_sample(n, 3, s, strength) for s in range(RCIT_DRAWS)]
        with threadpool_limits(1):
            begin = time.thread_time()
            own = [rcit(*sample, seed=s) for s, sample in enumerate(samples)]
            middle = time.thread_time()
            reference = [_reference_rcit(sample) for sample in samples]
            reference_s += time.thread_time() - middle
        own_s += middle - begin
        figures[f"rejected_{label}"] = round(float(np.mean(np.array(own) < 0.05)), 3)
        figures[f"reference_rejected_{label}"] = round(
            float(np.mean(np.array(reference) < 0.05)),
            3,
        )
    figures["times_faster"] = round(reference_s / max(own_s, 1e-9), 1)
    figures["own_ms"] = round(1e3 * own_s / (2 * RCIT_DRAWS), 2)
    return BenchRow(name=f"rcit, n = {n}, 3 conditions", figures=figures, must=None, holds=None)
