"""Causal graphs over measured variables without time: made systems, and Sachs et al. (2005).

The made systems look like the Sachs measurements: concentrations of eleven substances, pooled over
experiments that each hold or shift one of them. The method was chosen on them.
"""

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from engines.causal.tabular import (
    directed_edges,
    gaussianised,
    partial_correlation_test,
    pc_edges,
)
from flows.bench import BenchRow
from flows.bench.causal_ask import configured_model

Array = NDArray[np.float64]
Edges = set[tuple[int, int]]
Figures = dict[str, float | int | str | None]

NUM_VARIABLES = 11
NUM_EDGES = 18
NUM_EXPERIMENTS = 9
OBSERVED_EXPERIMENTS = 2
"""In the first ones nothing is held or shifted."""
ROWS = 2000
SYSTEMS = 10
ALPHA = 0.05
TROUBLES = {
    "measured well": (0.15, 0.0),
    "noise": (0.5, 0.0),
    "noise and a common cause": (0.4, 0.3),
}
"""Deviations, on the scale of logarithms, of the measurement's own noise and of a shared one."""


def _random_edges(rng: np.random.Generator) -> tuple[NDArray[np.int64], Edges]:
    order = rng.permutation(NUM_VARIABLES)
    edges: Edges = set()
    while len(edges) < NUM_EDGES:
        a, b = sorted(rng.choice(NUM_VARIABLES, 2, replace=False))
        edges.add((int(order[a]), int(order[b])))
    return order, edges


def _shape(rng: np.random.Generator, cause: Array) -> Array:
    """A straight, saturating or threshold effect of a cause."""
    x = (cause - cause.mean()) / cause.std()
    shapes = (x, 1.2 * np.tanh(1.5 * x), np.log1p(np.exp(2.0 * x)) - 1.0)
    return np.asarray(shapes[int(rng.integers(3))])


def _rest(rng: np.random.Generator) -> Array:
    forms = (
        rng.normal(size=ROWS),
        rng.laplace(size=ROWS) / np.sqrt(2.0),
        (rng.gamma(2.0, size=ROWS) - 2.0) / np.sqrt(2.0),
    )
    return np.asarray(rng.uniform(0.5, 1.0) * forms[int(rng.integers(3))])


def made_system(seed: int, noise: float, shared: float) -> tuple[Array, Edges]:
    """Measurements float64 [ROWS, 11] of a random system, and its edges (cause, effect)."""
    rng = np.random.default_rng([seed, 11])
    order, edges = _random_edges(rng)
    experiment = rng.integers(NUM_EXPERIMENTS, size=ROWS)
    target = rng.integers(NUM_VARIABLES, size=NUM_EXPERIMENTS)
    level = np.zeros((ROWS, NUM_VARIABLES))
    for effect in order:
        value = _rest(rng)
        for cause in sorted(a for a, b in edges if b == effect):
            sign = rng.choice([-1.0, 1.0], p=[0.25, 0.75])
            value = value + sign * rng.uniform(0.3, 1.0) * _shape(rng, level[:, cause])
        for number in range(OBSERVED_EXPERIMENTS, NUM_EXPERIMENTS):
            if target[number] != effect:
                continue
            rows = experiment == number
            held = value.mean() + 0.5 * rng.normal(size=int(rows.sum()))
            value[rows] = (held if rng.random() < 0.5 else value[rows]) + rng.choice([-1.0, 1.0])
        level[:, effect] = value
    level = 0.9 * level + noise * rng.normal(size=level.shape) + shared * rng.normal(size=(ROWS, 1))
    return np.exp(level + 3.0) + rng.exponential(size=level.shape), edges


def correlated(data: Array) -> Edges:
    """Both directions of every pair whose correlation passes Bonferroni's bound."""
    n, k = data.shape
    r = np.clip(np.corrcoef(data, rowvar=False) - np.eye(k), -1 + 1e-12, 1 - 1e-12)
    p_values = 2.0 * stats.norm.sf(np.abs(np.arctanh(r)) * np.sqrt(n - 3))
    passed = (p_values < ALPHA / (k * (k - 1) / 2)) & ~np.eye(k, dtype=bool)
    return {(int(i), int(j)) for i, j in np.argwhere(passed)}


def _pc(values: Array) -> Edges:
    return pc_edges(values.shape[1], partial_correlation_test(values, alpha=ALPHA))


NO_ORDER: Figures = {
    "position prior": "does not apply: columns have no order",
    "VAR t-test": "does not apply: rows have no time",
}


def asked(names: list[str], ask: Callable[[str], str]) -> set[tuple[str, str]]:
    """The edges that a language model gives for names alone."""
    prompt = (
        "These proteins and lipids of human immune cells were measured together. Which of them "
        "changes which directly? Answer with one line `cause -> effect` for each edge.\n"
        + "\n".join(names)
    )
    lines = [line.partition("->") for line in ask(prompt).splitlines()]
    pairs = {(cause.strip(" `*-"), effect.strip(" `*")) for cause, _, effect in lines}
    return {(cause, effect) for cause, effect in pairs if {cause, effect} <= {*names}}


METHODS: dict[str, Callable[[Array], Edges]] = {
    "ours": directed_edges,
    "PC": _pc,
    "PC on logarithms": lambda data: _pc(np.log1p(data)),
    "PC on ranks": lambda data: _pc(gaussianised(data)),
    "correlation": correlated,
}


def _f1(hit: int, found: int, true: int) -> float:
    return 2.0 * hit / max(1, found + true)


def made_rows() -> list[BenchRow]:
    """F1 of directed edges over random systems, for each kind of trouble."""
    rows = []
    for trouble, (noise, shared) in TROUBLES.items():
        counts = {name: [0, 0] for name in METHODS}
        for seed in range(SYSTEMS):
            data, truth = made_system(seed, noise, shared)
            for name, method in METHODS.items():
                found = method(data)
                counts[name][0] += len(found & truth)
                counts[name][1] += len(found)
        true = SYSTEMS * NUM_EDGES
        scores = {name: _f1(hit, found, true) for name, (hit, found) in counts.items()}
        rows.append(
            BenchRow(
                name=f"made tables, {trouble}, directed F1",
                figures={
                    **{name: round(score, 3) for name, score in scores.items()},
                    **NO_ORDER,
                    "language model only": "does not apply: names mean nothing",
                },
                must="ours no worse than the best other",
                holds=scores["ours"] >= max(scores.values()) - 1e-9,
            )
        )
    return rows


def sachs() -> tuple[Array, list[str], set[tuple[str, str]]]:
    """Measurements float64 [7466, 11], names and true edges; ``causal_sachs.json`` says whence."""
    folder = Path(__file__).parent
    record = json.loads((folder / "causal_sachs.json").read_text())
    with gzip.open(folder / record["table"], "rt", newline="") as file:
        rows = list(csv.reader(file))
    edges = {(str(cause), str(effect)) for cause, effect in record["edges"]}
    return np.array(rows[1:], dtype=np.float64), rows[0], edges


def sachs_rows() -> list[BenchRow]:
    """F1 of edges and of directed edges on the protein measurements of Sachs et al. (2005)."""
    data, names, truth = sachs()
    order = np.random.default_rng(0).permutation(len(names))
    data, names = data[:, order], [names[i] for i in order]
    true = {frozenset(e) for e in truth}
    scores: dict[str, float] = {}
    figures: Figures = {}
    said = {
        name: {(names[a], names[b]) for a, b in method(data)} for name, method in METHODS.items()
    }
    model = configured_model()
    if model is not None:
        said["language model only"] = asked(names, model)
    for name, edges in said.items():
        pairs = {frozenset(e) for e in edges}
        scores[name] = _f1(len(edges & truth), len(edges), len(truth))
        figures[f"{name}, directed F1"] = round(scores[name], 3)
        figures[f"{name}, skeleton F1"] = round(_f1(len(pairs & true), len(pairs), len(true)), 3)
    figures |= NO_ORDER
    if model is None:
        figures["language model only"] = "none configured"
    return [
        BenchRow(
            name="Sachs",
            figures=figures,
            # A language model may have read the published graph: shown, and no bar.
            must="ours no worse than the best that learns from the data",
            holds=scores["ours"] >= max(scores[name] for name in METHODS) - 1e-9,
        )
    ]
