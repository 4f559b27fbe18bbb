"""Causal mining in worlds whose truth is known by taking things away and running them again.

Rows: position prior, lagged correlation, a plain vector autoregression, a language model alone
(where one is configured) and ours, over many worlds of five levels; then the false edges of
placebo runs, the calibration of the confidence, and the same from rendered pixels.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

import numpy as np

from engines.causal.miner import mine
from engines.contracts.causal import CausesDocument, MinerParams
from engines.contracts.time import TimeSpan
from flows.bench import BenchReport, BenchRow
from flows.bench.causal_baselines import (
    AskModel,
    Pairs,
    lagged_correlation,
    language_model_only,
    position_prior,
    var_test,
)
from flows.bench.causal_world_simulation import (
    LEVELS,
    World,
    make_world,
    simulate,
    to_events,
    true_edges,
)

SEEDS = 5
WORLDS_PER_LEVEL_AND_SEED = 8
EVENTS_F1 = 0.9
PIXELS_F1 = 0.8
PLACEBO_LIMIT = 0.05
CALIBRATION_LIMIT = 0.1
CALIBRATION_BINS = 10
PARAMS = MinerParams(permutations=200, placebo_runs=3)


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

    def figures(self) -> dict[str, float | int | str | None]:
        """Precision, recall and F1."""
        found, true = self.hit + self.false, self.hit + self.missed
        both = found + true
        return {
            "f1": round(2 * self.hit / both, 4) if both else None,
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
    confidence: tuple[tuple[float, bool], ...] = field(default=())


def type_edges(document: CausesDocument) -> Pairs:
    """The accepted edges between types."""
    return frozenset(
        (e.cause_type, e.effect_type)
        for e in document.edges
        if e.verdict == "causal" and e.cause_event is None
    )


def world_of(index: int) -> World:
    """World number ``index``: levels in turn, then worlds, then seeds."""
    level = index % len(LEVELS)
    number = index // len(LEVELS) % WORLDS_PER_LEVEL_AND_SEED
    seed = index // (len(LEVELS) * WORLDS_PER_LEVEL_AND_SEED)
    return make_world(level, 1000 * (seed + 1) + number)


def judge_world(index: int) -> Outcome:
    """Mine one world from its true events and hold every method against re-simulation."""
    world = world_of(index)
    truth, total = true_edges(world)
    events = to_events(world, simulate(world))
    span = TimeSpan.from_seconds(0.0, world.duration_s)
    document = mine(events, [span], PARAMS)
    limits = {"max_lag_s": PARAMS.max_lag_s, "alpha": PARAMS.alpha}
    edges = [e for e in document.edges if e.cause_event is None]
    return Outcome(
        level=world.level,
        truth=truth,
        total=total,
        found={
            "position prior": position_prior(events),
            "lagged correlation": lagged_correlation(events, world.duration_s, **limits),
            "VAR t-test": var_test(events, world.duration_s, **limits),
            "ours": type_edges(document),
        },
        placebo_false=document.placebo_edges or 0,
        placebo_rate=document.placebo_rate,
        confidence=tuple(
            (e.confidence, (e.cause_type, e.effect_type) in truth)
            for e in edges
            if e.confidence is not None
        ),
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


def run(
    *,
    num_worlds: int = SEEDS * WORLDS_PER_LEVEL_AND_SEED * len(LEVELS),
    pixel_worlds: int = 6,
    ask: AskModel | None = None,
) -> BenchReport:
    """Judge the miner on ``num_worlds`` worlds from events and on some from pixels.

    Args:
        num_worlds: at most a few minutes on two cores for 200.
        pixel_worlds: worlds rendered to video and read back by the pipeline's own engines.
        ask: a language model for the row that has nothing else.
    """
    context = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=context) as pool:
        outcomes = list(pool.map(judge_world, range(num_worlds), chunksize=4))
    rows = _method_rows(outcomes)
    rows.append(_model_row(num_worlds, ask))
    rows += _own_rows(outcomes)
    if pixel_worlds:
        from flows.bench.causal_world_pixels import judge_pixels

        figures = {**judge_pixels(pixel_worlds).figures(), "worlds": pixel_worlds}
        score = figures["f1"]
        holds = None if score is None else float(score) >= PIXELS_F1
        rows.append(
            BenchRow(
                name="ours, from pixels", figures=figures, must=f"f1 >= {PIXELS_F1}", holds=holds
            )
        )
    return BenchReport(rows=tuple(rows))


def _method_rows(outcomes: Sequence[Outcome]) -> list[BenchRow]:
    rows = []
    for name in outcomes[0].found:
        tally = Tally()
        for outcome in outcomes:
            tally.add(outcome.found[name], outcome.truth)
        figures = {**tally.figures(), "worlds": len(outcomes)}
        must = f"f1 >= {EVENTS_F1}" if name == "ours" else None
        score = figures["f1"]
        holds = None if must is None or score is None else float(score) >= EVENTS_F1
        rows.append(BenchRow(name=f"{name}, from events", figures=figures, must=must, holds=holds))
    for level, label in enumerate(LEVELS):
        tally = Tally()
        for outcome in outcomes:
            if outcome.level == level:
                tally.add(outcome.found["ours"], outcome.truth)
        rows.append(
            BenchRow(
                name=f"ours, level {level} {label}", figures=tally.figures(), must=None, holds=None
            )
        )
    return rows


def _model_row(num_worlds: int, ask: AskModel | None) -> BenchRow:
    if ask is None:
        note: dict[str, float | int | str | None] = {"note": "no language model configured"}
        return BenchRow(name="language model only", figures=note, must=None, holds=None)
    tally = Tally()
    sample = min(num_worlds, len(LEVELS) * 4)
    for index in range(sample):
        world = world_of(index)
        tally.add(language_model_only(to_events(world, simulate(world)), ask), true_edges(world)[0])
    figures = {**tally.figures(), "worlds": sample}
    return BenchRow(name="language model only", figures=figures, must=None, holds=None)


def _own_rows(outcomes: Sequence[Outcome]) -> list[BenchRow]:
    rates = [o.placebo_rate for o in outcomes if o.placebo_rate is not None]
    rate = float(np.mean(rates)) if rates else None
    edges = sum(len(o.found["ours"]) for o in outcomes)
    per_edge = sum(o.placebo_false for o in outcomes) / max(1, edges * PARAMS.placebo_runs)
    error = calibration_error([pair for o in outcomes for pair in o.confidence])
    indirect = Tally()
    for outcome in outcomes:
        indirect.add(_closure(outcome.found["ours"]), outcome.total)
    return [
        BenchRow(
            name="placebo",
            figures={
                "false_edges_per_tested_pair": None if rate is None else round(rate, 5),
                "false_edges_per_real_edge": round(per_edge, 5),
            },
            must=f"both <= {PLACEBO_LIMIT}",
            holds=None if rate is None else max(rate, per_edge) <= PLACEBO_LIMIT,
        ),
        BenchRow(
            name="confidence",
            figures={"calibration_error": None if error is None else round(error, 4)},
            must=f"calibration error <= {CALIBRATION_LIMIT}",
            holds=None if error is None else error <= CALIBRATION_LIMIT,
        ),
        BenchRow(
            name="ours, chains against total causes",
            figures=indirect.figures(),
            must=None,
            holds=None,
        ),
    ]


def _closure(edges: Pairs) -> Pairs:
    reach = set(edges)
    while True:
        more = {(a, d) for a, b in reach for c, d in edges if b == c and a != d} - reach
        if not more:
            return frozenset(reach)
        reach |= more
