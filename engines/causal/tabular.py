"""Direct causes among measured variables without time: a skeleton, then a direction per edge.

Skeleton as in the PC algorithm (Spirtes and Glymour; order-independent form by Colombo and
Maathuis 2014) on Gaussianised ranks, with a floor on the size of a partial correlation: with
thousands of rows everything is significant. Directions come from the regression error of cause
and effect (Bloebaum et al. 2018): effects are the easier to predict from their causes.
"""

from itertools import combinations

import numpy as np
from scipy import stats

from engines.causal.kci import standardise
from engines.causal.series import Floats

DEGREE = 3
UNCLEAR_SHARE = 0.1
"""Errors closer than this say nothing about the direction."""


def gaussianised(data: Floats) -> Floats:
    """Columns to normal scores of their ranks: [n, k]."""
    ranks = stats.rankdata(data, axis=0)
    return np.asarray(stats.norm.ppf(ranks / (len(data) + 1)))


def partial_correlation(correlation: Floats, i: int, j: int, given: tuple[int, ...]) -> float:
    """Of variables i and j given others, from the correlation matrix [k, k]."""
    chosen = [i, j, *given]
    inverse = np.linalg.pinv(correlation[np.ix_(chosen, chosen)])
    scale = np.sqrt(max(inverse[0, 0] * inverse[1, 1], 1e-12))
    return float(-inverse[0, 1] / scale)


Separators = dict[tuple[int, int], tuple[int, ...]]


def skeleton(
    data: Floats, *, alpha: float, smallest: float, max_order: int
) -> tuple[set[tuple[int, int]], Separators]:
    """Pairs (i, j), i < j, that no set of up to ``max_order`` neighbours separates.

    Beside them the set that separated each of the other pairs.
    """
    separators: Separators = {}
    n, k = data.shape
    correlation = np.asarray(np.corrcoef(data, rowvar=False), dtype=np.float64).reshape(k, k)
    near = {i: {j for j in range(k) if j != i} for i in range(k)}
    for order in range(max_order + 1):
        fixed = {i: sorted(near[i]) for i in range(k)}
        for i, j in combinations(range(k), 2):
            if j not in near[i]:
                continue
            sets = {
                s
                for a, b in ((i, j), (j, i))
                for s in combinations([v for v in fixed[a] if v != b], order)
            }
            for given in sorted(sets):
                r = partial_correlation(correlation, i, j, given)
                z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)) * np.sqrt(max(1, n - order - 3))
                if abs(r) < smallest or 2 * stats.norm.sf(abs(z)) > alpha:
                    near[i].discard(j)
                    near[j].discard(i)
                    separators[i, j] = given
                    break
    return {(i, j) for i in range(k) for j in near[i] if i < j}, separators


def colliders(edges: set[tuple[int, int]], separators: Separators) -> set[tuple[int, int]]:
    """Directions (cause, effect) forced where two unlinked neighbours of a node need no node.

    A direction that two such triples contradict is left out.
    """
    linked = edges | {(j, i) for i, j in edges}
    forced = set()
    for (i, j), given in separators.items():
        middle = {m for a, m in linked if a == i} & {m for a, m in linked if a == j}
        for m in middle - set(given):
            forced |= {(i, m), (j, m)}
    return {(a, b) for a, b in forced if (b, a) not in forced}


def regression_error(cause: Floats, effect: Floats) -> float:
    """Mean squared error of a cubic from ``cause`` to ``effect``, both on unit scale."""
    x, y = standardise(cause)[:, 0], standardise(effect)[:, 0]
    design = np.vander(np.clip(x, -4, 4), DEGREE + 1)
    fitted, *_ = np.linalg.lstsq(design, y, rcond=None)
    return float(((y - design @ fitted) ** 2).mean())


def pc_edges(data: Floats, *, alpha: float = 0.05, max_order: int = 3) -> set[tuple[int, int]]:
    """The plain PC algorithm with Fisher's z; an undirected edge is given in both directions."""
    edges, separators = skeleton(data, alpha=alpha, smallest=0.0, max_order=max_order)
    forced = colliders(edges, separators)
    both = edges | {(j, i) for i, j in edges}
    return {(a, b) for a, b in both if (b, a) not in forced}


def directed_edges(
    data: Floats, *, alpha: float = 0.01, smallest: float = 0.03, max_order: int = 3
) -> set[tuple[int, int]]:
    """Directed edges (cause, effect) among the columns of ``data`` [n, k].

    An edge whose direction stays open is given in both directions.

    Args:
        data: positive or real measurements, rows independent.
        alpha: of each test of the skeleton.
        smallest: partial correlation below which an edge is not worth having.
        max_order: largest separating set.
    """
    signed = np.sign(data) * np.log1p(np.abs(data))
    edges, separators = skeleton(
        gaussianised(data), alpha=alpha, smallest=smallest, max_order=max_order
    )
    found = colliders(edges, separators)
    for i, j in sorted(edges):
        if (i, j) in found or (j, i) in found:
            continue
        forward = regression_error(signed[:, i], signed[:, j])
        backward = regression_error(signed[:, j], signed[:, i])
        if forward <= backward * (1.0 + UNCLEAR_SHARE):
            found.add((i, j))
        if backward <= forward * (1.0 + UNCLEAR_SHARE):
            found.add((j, i))
    return found
