"""Causal mining in worlds whose truth is known by taking things away and running them again.

Rows: position prior, lagged correlation, a plain vector autoregression, a language model alone
(where one is configured) and ours, over many worlds of five levels; the false edges of placebo
runs, and the calibration of the confidence. Once from the true events, once from pixels and sound
through the engines of the whole flow.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from engines.causal.miner import mine
from engines.contracts.time import TimeSpan
from flows.bench import BenchReport, BenchRow
from flows.bench.causal_ask import configured_model
from flows.bench.causal_baselines import (
    AskModel,
    lagged_correlation,
    language_model_only,
    position_prior,
    var_test,
)
from flows.bench.causal_world_outcome import (
    PARAMS,
    Figures,
    Outcome,
    Tally,
    confidences,
    method_rows,
    own_rows,
    type_edges,
)
from flows.bench.causal_world_pixels import judge_pixels
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
PIXEL_WORLDS = 200
ASKED_PER_LEVEL = 4


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
        confidence=confidences(document, truth, {}),
    )


def run(
    *,
    num_worlds: int = SEEDS * WORLDS_PER_LEVEL_AND_SEED * len(LEVELS),
    pixel_worlds: int = PIXEL_WORLDS,
) -> BenchReport:
    """Judge the miner on ``num_worlds`` worlds from events and ``pixel_worlds`` from pixels.

    About ten minutes on two cores, most of it rendering and reading video.
    """
    context = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=context) as pool:
        outcomes = list(pool.map(judge_world, range(num_worlds), chunksize=4))
        seen = list(pool.map(judge_pixels, range(pixel_worlds), chunksize=2))
    rows = method_rows(outcomes, "events", EVENTS_F1)
    rows.append(_model_row(num_worlds, configured_model()))
    rows += own_rows(outcomes, "events")
    if seen:
        rows += method_rows(seen, "pixels", PIXELS_F1) + own_rows(seen, "pixels")
    return BenchReport(rows=tuple(rows))


def _model_row(num_worlds: int, ask: AskModel | None) -> BenchRow:
    if ask is None:
        note: Figures = {"note": "no language model configured"}
        return BenchRow(name="language model only", figures=note, must=None, holds=None)
    tally = Tally()
    sample = min(num_worlds, len(LEVELS) * ASKED_PER_LEVEL)
    for index in range(sample):
        world = world_of(index)
        tally.add(language_model_only(to_events(world, simulate(world)), ask), true_edges(world)[0])
    figures: Figures = {**tally.figures(), "worlds": sample}
    return BenchRow(name="language model only", figures=figures, must=None, holds=None)
