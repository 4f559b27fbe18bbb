"""Direct causes among measured variables without time.

Two ways. The PC algorithm (Spirtes and Glymour; order-independent form by Colombo and Maathuis
2014) with any independence test. And a vote of score searches: on the logarithms and on normal
scores of the ranks, with the rests taken as normal or as they are, at three prices of an edge. No
reading of the data is right for all mechanisms; the share of the readings that have an edge is
its probability, and the answer is the set of directed edges with the largest expected F1.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy import stats

from engines.causal.kci import standardise
from engines.causal.kernel_search import KernelTests
from engines.causal.score_search import NUM_BENDS, GraphSearch, LocalScores
from engines.causal.series import Floats

EDGE_PRICES = (0.01, 0.02, 0.04)
"""In nats per row: with thousands of rows every edge is significant, few are worth having. With
few rows Schwarz's price for the bends of an edge is higher and counts instead."""


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
Separates = Callable[[int, int, tuple[int, ...]], bool]
"""Whether two variables are independent given others."""


def partial_correlation_test(data: Floats, *, alpha: float, smallest: float = 0.0) -> Separates:
    """Fisher's z test of the partial correlation; one below ``smallest`` counts as none.

    Args:
        data: [n, k].
        alpha: of each test.
        smallest: absolute partial correlation.
    """
    n = len(data)
    unit = standardise(data)
    correlation = unit.T @ unit / max(1, n - 1)

    def separates(i: int, j: int, given: tuple[int, ...]) -> bool:
        r = partial_correlation(correlation, i, j, given)
        freedom = max(1, n - len(given) - 3)
        z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)) * np.sqrt(freedom)
        return bool(abs(r) < smallest or 2 * stats.norm.sf(abs(z)) > alpha)

    return separates


def kernel_test(data: Floats, *, alpha: float) -> Separates:
    """KCI with shared factors on the columns of ``data`` [n, k]."""
    tests = KernelTests(data)
    return lambda i, j, given: tests.p_value(i, j, given) > alpha


def skeleton(
    num_variables: int, separates: Separates, *, max_order: int
) -> tuple[set[tuple[int, int]], Separators]:
    """Pairs (i, j), i < j, that no set of up to ``max_order`` neighbours separates.

    Beside them the set that separated each of the other pairs.
    """
    separators: Separators = {}
    near = {i: {j for j in range(num_variables) if j != i} for i in range(num_variables)}
    for order in range(max_order + 1):
        fixed = {i: sorted(near[i]) for i in near}
        for i, j in combinations(near, 2):
            if j not in near[i]:
                continue
            sets = {
                s
                for a, b in ((i, j), (j, i))
                for s in combinations([v for v in fixed[a] if v != b], order)
            }
            given = next((s for s in sorted(sets) if separates(i, j, s)), None)
            if given is not None:
                near[i].discard(j)
                near[j].discard(i)
                separators[i, j] = given
    return {(i, j) for i in near for j in near[i] if i < j}, separators


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


def pc_edges(
    num_variables: int, separates: Separates, *, max_order: int = 3
) -> set[tuple[int, int]]:
    """The plain PC algorithm; an undirected edge is given in both directions."""
    edges, separators = skeleton(num_variables, separates, max_order=max_order)
    forced = colliders(edges, separators)
    both = edges | {(j, i) for i, j in edges}
    return {(a, b) for a, b in both if (b, a) not in forced}


def edge_shares(data: Floats) -> Floats:
    """Share of the readings in which each directed edge is found: [k cause, k effect].

    Args:
        data: [n, k] positive or real measurements, rows independent.
    """
    logs = np.sign(data) * np.log1p(np.abs(data))
    shares = np.zeros((data.shape[1], data.shape[1]))
    schwarz = NUM_BENDS * np.log(len(data)) / (2.0 * len(data))
    for values in (logs, gaussianised(data)):
        for normal in (False, True):
            scores = LocalScores(values, normal=normal)
            for price in EDGE_PRICES:
                for edge in GraphSearch(scores, max(price, schwarz)).run():
                    shares[edge] += 1.0
    return shares / (4 * len(EDGE_PRICES))


def largest_expected_f1(probability: Floats) -> set[tuple[int, int]]:
    """The set of directed edges with the largest expected F1 (to first order).

    Args:
        probability: [k, k] of each edge; both directions of an open one may be in the set.
    """
    order = np.argsort(-probability, axis=None, kind="stable")
    sizes = np.arange(1, len(order) + 1)
    expected = 2.0 * np.cumsum(probability.ravel()[order]) / (sizes + probability.sum())
    if expected[0] <= 0:
        return set()
    chosen = order[: int(expected.argmax()) + 1]
    rows, columns = np.unravel_index(chosen, probability.shape)
    return set(zip(rows.tolist(), columns.tolist(), strict=True))


def directed_edges(data: Floats) -> set[tuple[int, int]]:
    """Directed edges (cause, effect) among the columns of ``data`` [n, k].

    An edge whose direction stays open may be given in both directions.

    Args:
        data: positive or real measurements, rows independent.
    """
    return largest_expected_f1(edge_shares(data))
