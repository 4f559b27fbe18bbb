"""Direct lagged causes in measured series: select by description length, then test each.

Where the timeline has signals instead of events. For every effect the past of all series enters
as a line and as a smooth bend; groups are added while they pay for themselves (Schwarz), removed
when they no longer do, and each that is left is tested given the others' past.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.causal.graph import benjamini_hochberg
from engines.causal.independence import conditional_p_value
from engines.causal.kci import standardise
from engines.causal.series import Floats

MAX_PARENTS = 8


@dataclass(frozen=True)
class LaggedEdge:
    """Series ``cause`` at ``lag`` steps before drives series ``effect``."""

    cause: int
    effect: int
    lag: int
    p_value: float
    q_value: float


def _past(series: Floats, max_lag: int) -> Floats:
    """float64 [n - max_lag, max_lag, k]: lag 1 first."""
    n = len(series)
    return np.stack([series[max_lag - g : n - g] for g in range(1, max_lag + 1)], axis=1)


def _bends(column: Floats) -> Floats:
    """A line, and what of its even and odd bend the line does not say: [n, 3]."""
    x = np.clip(standardise(column)[:, 0], -3.0, 3.0)
    return standardise(np.column_stack([x, x * x, np.tanh(2.0 * x) - x / 1.5]))


def _description(target: Floats, groups: list[Floats]) -> float:
    """Schwarz criterion of a least-squares fit."""
    n = len(target)
    design = np.column_stack([np.ones(n), *groups])
    fitted, *_ = np.linalg.lstsq(design, target, rcond=None)
    error = float(((target - design @ fitted) ** 2).sum())
    return float(n * np.log(max(error, 1e-12) / n) + design.shape[1] * np.log(n))


def _select(
    target: Floats, options: dict[tuple[int, int, bool], Floats]
) -> list[tuple[int, int, bool]]:
    chosen: list[tuple[int, int, bool]] = []
    best = _description(target, [])
    while len(chosen) < MAX_PARENTS:
        scores = {
            key: _description(target, [*(options[c] for c in chosen), options[key]])
            for key in options
            if key not in chosen
        }
        key = min(scores, key=lambda item: (scores[item], item))
        if scores[key] >= best:
            break
        best = scores[key]
        chosen.append(key)
        for old in list(chosen[:-1]):
            rest = [c for c in chosen if c != old]
            score = _description(target, [options[c] for c in rest])
            if score < best:
                best, chosen = score, rest
    return chosen


def lagged_edges(
    series: NDArray[np.float64], *, max_lag: int, alpha: float = 0.05, seed: int = 0
) -> list[LaggedEdge]:
    """Direct lagged causes among the columns of ``series`` [n, k], own past left out.

    Args:
        series: equally spaced measurements.
        max_lag: in steps.
        alpha: bound on the adjusted p-value of each edge.
        seed: of the randomised tests.

    Returns:
        Edges with an adjusted p-value of at most ``alpha``, by effect, cause and lag.
    """
    k = series.shape[1]
    past = _past(series, max_lag)
    found: list[tuple[int, int, int, float]] = []
    for effect in range(k):
        target = series[max_lag:, effect]
        options: dict[tuple[int, int, bool], Floats] = {}
        for cause in range(k):
            for lag in range(1, max_lag + 1):
                bends = _bends(past[:, lag - 1, cause])
                options[cause, lag, False] = bends[:, :1]
                options[cause, lag, True] = bends[:, 1:]
        chosen = _select(target, options)
        pairs = sorted({(cause, lag) for cause, lag, _ in chosen})
        for cause, lag in pairs:
            if cause == effect:
                continue
            others = [options[c] for c in chosen if c[:2] != (cause, lag)]
            given = np.column_stack(others) if others else None
            p_value = _best_test(options, (cause, lag), target, given, seed)
            found.append((cause, effect, lag, p_value))
    # The search looked at every pair and lag, so all of them count, not the selected alone.
    family = k * (k - 1) * max_lag
    p_values = np.array([f[3] for f in found])
    q_values = benjamini_hochberg(p_values, family) if found else p_values
    edges = [
        LaggedEdge(c, e, g, p, float(q)) for (c, e, g, p), q in zip(found, q_values, strict=True)
    ]
    return [edge for edge in edges if edge.q_value <= alpha]


def _best_test(
    options: dict[tuple[int, int, bool], Floats],
    cause: tuple[int, int],
    target: Floats,
    given: Floats | None,
    seed: int,
) -> float:
    line = options[(*cause, False)][:, 0]
    even = options[(*cause, True)][:, 0]
    straight, _ = conditional_p_value(line, target, given, seed=seed)
    bent, _ = conditional_p_value(even, target, given, seed=seed)
    return min(1.0, 2.0 * min(straight, bent))
