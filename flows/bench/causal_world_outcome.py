"""How one world is judged, and how the judgements of many add up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engines.contracts.causal import CausesDocument, MinerParams
from flows.bench import BenchRow
from flows.bench.causal_baselines import Pairs
from flows.bench.causal_world_simulation import LEVELS

PLACEBO_LIMIT = 0.05
CALIBRATION_LIMIT = 0.1
CALIBRATION_BINS = 10
BOOTSTRAPS = 1000
PARAMS = MinerParams(permutations=200, placebo_runs=3)
Figures = dict[str, float | int | str | None]


@dataclass
class Tally:
    """Edges found against edges there are."""

    hit: int = 0
    false: int = 0
    missed: int = 0

    def add(self, found: Pairs, truth: Pairs) -> None:
        """Count one world."""
        self.hit += len(found & truth)
        self.false += len(found - truth)
        self.missed += len(truth - found)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None without any edge."""
        both = 2 * self.hit + self.false + self.missed
        return 2 * self.hit / both if both else None

    def figures(self) -> Figures:
        """Precision, recall and F1."""
        found, true = self.hit + self.false, self.hit + self.missed
        return {
            "f1": None if self.f1 is None else round(self.f1, 4),
            "precision": round(self.hit / found, 4) if found else None,
            "recall": round(self.hit / true, 4) if true else None,
        }


@dataclass(frozen=True)
class Outcome:
    """One world: edges by method, the truth, and what the confidence said."""

    level: int
    truth: Pairs
    total: Pairs
    found: dict[str, Pairs]
    placebo_false: int
    placebo_rate: float | None
    confidence: tuple[tuple[float, bool], ...] = ()


def type_edges(document: CausesDocument) -> Pairs:
    """The accepted edges between types."""
    return frozenset(
        (e.cause_type, e.effect_type)
        for e in document.edges
        if e.verdict == "causal" and e.cause_event is None
    )


def confidences(
    document: CausesDocument, truth: Pairs, names: Mapping[str, str]
) -> tuple[tuple[float, bool], ...]:
    """What was said of every tested pair, and whether it was so."""
    return tuple(
        (
            e.confidence,
            (names.get(e.cause_type, e.cause_type), names.get(e.effect_type, e.effect_type))
            in truth,
        )
        for e in document.edges
        if e.cause_event is None and e.confidence is not None
    )


def calibration_error(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """Expected calibration error over equal bins of confidence; None without any edge."""
    if not pairs:
        return None
    said = np.array([p for p, _ in pairs])
    true = np.array([t for _, t in pairs], dtype=np.float64)
    at = np.minimum((said * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    gaps = [
        abs(float(said[at == b].mean() - true[at == b].mean())) * float((at == b).mean())
        for b in np.unique(at)
    ]
    return sum(gaps)


def _tally(outcomes: Sequence[Outcome], method: str) -> Tally:
    tally = Tally()
    for outcome in outcomes:
        tally.add(outcome.found[method], outcome.truth)
    return tally


def _spread(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """95 % interval of F1 over worlds drawn again."""
    rng = np.random.default_rng(0)
    counts = np.array(
        [(len(o.found["ours"] & o.truth), len(o.found["ours"]), len(o.truth)) for o in outcomes],
        dtype=np.float64,
    )
    drawn = counts[rng.integers(len(counts), size=(BOOTSTRAPS, len(counts)))].sum(axis=1)
    f1 = 2 * drawn[:, 0] / np.maximum(drawn[:, 1] + drawn[:, 2], 1.0)
    low, high = np.quantile(f1, [0.025, 0.975])
    return float(low), float(high)


def method_rows(outcomes: Sequence[Outcome], source: str, least: float) -> list[BenchRow]:
    """Every method over all worlds, then ours by level.

    Args:
        outcomes: of all worlds.
        source: ``events`` or ``pixels``.
        least: F1 that ours must reach.
    """
    rows = []
    for name in outcomes[0].found:
        tally = _tally(outcomes, name)
        figures: Figures = {**tally.figures(), "worlds": len(outcomes)}
        ours = name == "ours"
        if ours:
            low, high = _spread(outcomes)
            figures |= {"f1_low": round(low, 4), "f1_high": round(high, 4)}
        rows.append(
            BenchRow(
                name=f"{name}, from {source}",
                figures=figures,
                must=f"f1 >= {least}" if ours else None,
                holds=tally.f1 >= least if ours and tally.f1 is not None else None,
            )
        )
    for level, label in enumerate(LEVELS):
        of_level = [o for o in outcomes if o.level == level]
        if of_level:
            figures = {**_tally(of_level, "ours").figures(), "worlds": len(of_level)}
            name = f"ours, from {source}, level {level} {label}"
            rows.append(BenchRow(name=name, figures=figures, must=None, holds=None))
    return rows


def own_rows(outcomes: Sequence[Outcome], source: str) -> list[BenchRow]:
    """Placebo, calibration, and chains against total causes."""
    rates = [o.placebo_rate for o in outcomes if o.placebo_rate is not None]
    rate = float(np.mean(rates)) if rates else None
    edges = sum(len(o.found["ours"]) for o in outcomes)
    per_edge = sum(o.placebo_false for o in outcomes) / max(1, edges * PARAMS.placebo_runs)
    error = calibration_error([pair for o in outcomes for pair in o.confidence])
    indirect = Tally()
    for outcome in outcomes:
        indirect.add(closure(outcome.found["ours"]), outcome.total)
    return [
        BenchRow(
            name=f"placebo, from {source}",
            figures={
                "false_edges_per_tested_pair": None if rate is None else round(rate, 5),
                "false_edges_per_real_edge": round(per_edge, 5),
            },
            must=f"both <= {PLACEBO_LIMIT}",
            holds=None if rate is None else max(rate, per_edge) <= PLACEBO_LIMIT,
        ),
        BenchRow(
            name=f"confidence, from {source}",
            figures={
                "calibration_error": None if error is None else round(error, 4),
                "pairs": sum(len(o.confidence) for o in outcomes),
            },
            must=f"calibration error <= {CALIBRATION_LIMIT}",
            holds=None if error is None else error <= CALIBRATION_LIMIT,
        ),
        BenchRow(
            name=f"ours, chains against total causes, from {source}",
            figures=indirect.figures(),
            must=None,
            holds=None,
        ),
    ]


def closure(edges: Pairs) -> Pairs:
    """Pairs that a chain of edges joins."""
    reach = set(edges)
    while True:
        more = {(a, d) for a, b in reach for c, d in edges if b == c and a != d} - reach
        if not more:
            return frozenset(reach)
        reach |= more
