"""Randomised conditional independence test: KCI on random Fourier features, for large n.

Strobl, Zhang and Visweswaran (2019), Approximate kernel-based conditional independence tests.
The null is a weighted sum of chi-squares; its tail comes from the first three cumulants
(Liu, Tang and Zhang 2009), or from permutations of the residuals on request.
"""

import numpy as np
from scipy import linalg, stats
from scipy.spatial.distance import pdist

from engines.causal.kci import standardise
from engines.causal.series import Floats

NUM_FEATURES_Z = 100
NUM_FEATURES_XY = 5
MEDIAN_ROWS = 500
RIDGE = 1e-10


def _width(data: Floats) -> float:
    """Median distance between different rows among the first ones."""
    distances = pdist(data[:MEDIAN_ROWS])
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0


def _features(data: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Standardised random Fourier features of a Gaussian kernel: [n, number]."""
    weights = rng.normal(size=(data.shape[1], number)) / _width(data)
    phase = rng.uniform(0.0, 2.0 * np.pi, size=number)
    return standardise(np.cos(data @ weights + phase))


def weighted_chi2_tail(weights: Floats, value: float) -> float:
    """P(sum of weights * chi2_1 > value) from three cumulants."""
    first, second = float(weights.sum()), float((weights**2).sum())
    third = float((weights**3).sum())
    if first <= 0 or second <= 0:
        return 1.0
    freedom = second**3 / third**2
    scaled = (value - first) / np.sqrt(2.0 * second)
    return float(stats.chi2.sf(scaled * np.sqrt(2.0 * freedom) + freedom, freedom))


def rcit(
    x: Floats, y: Floats, z: Floats | None = None, *, seed: int = 0, permutations: int = 0
) -> float:
    """P-value of x independent of y (given z).

    Args:
        x: [n] or [n, d].
        y: [n] or [n, d].
        z: [n] or [n, d], or None for the unconditional test.
        seed: of the random features (and of the permutations).
        permutations: 0 for the analytic null; otherwise residuals are permuted this many times
            and the larger of the two p-values is returned.

    Returns:
        P-value in [0, 1]; 1.0 where x or y does not vary.
    """
    rng = np.random.default_rng(seed)
    x, y = standardise(x), standardise(y)
    n = len(x)
    if not x.any() or not y.any():
        return 1.0
    if z is None or z.size == 0:
        left = _features(x, NUM_FEATURES_XY, rng)
        right = _features(y, NUM_FEATURES_XY, rng)
    else:
        z = standardise(z)
        number = int(min(NUM_FEATURES_Z, max(10, n // 5)))
        given = _features(z, number, rng)
        both = np.hstack(
            [
                _features(x, NUM_FEATURES_XY, rng),
                _features(np.hstack([y, z]), NUM_FEATURES_XY, rng),
            ]
        )
        inner = given.T @ given
        inner[np.diag_indices(number)] += RIDGE * n + 1e-8 * np.trace(inner) / number
        both = both - given @ linalg.solve(inner, given.T @ both, assume_a="pos")
        left, right = both[:, :NUM_FEATURES_XY], both[:, NUM_FEATURES_XY:]
    statistic = n * float(((left.T @ right / (n - 1)) ** 2).sum())
    products = (left[:, :, None] * right[:, None, :]).reshape(n, -1)
    weights = np.linalg.eigvalsh(products.T @ products / n)
    analytic = weighted_chi2_tail(np.asarray(weights[weights > 0], dtype=np.float64), statistic)
    if not permutations:
        return analytic
    drawn = np.empty(permutations)
    for p in range(permutations):
        drawn[p] = n * float(((left[rng.permutation(n)].T @ right / (n - 1)) ** 2).sum())
    counted = (1.0 + float((drawn >= statistic).sum())) / (1.0 + permutations)
    floor_reached = counted <= 1.0 / (1.0 + permutations)
    return analytic if floor_reached else max(analytic, counted)
