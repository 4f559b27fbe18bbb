"""Randomised conditional independence test: KCI on random Fourier features, for large n.

Strobl, Zhang and Visweswaran (2019), Approximate kernel-based conditional independence tests.
The null is a weighted sum of chi-squares; its tail comes from the first three cumulants
(Liu, Tang and Zhang 2009), which are traces of powers and need no eigenvalues, or from
permutations of the residuals on request.
"""

import numpy as np
from scipy import linalg, special

from engines.causal.kci import Singles, standardise
from engines.causal.series import Floats

NUM_FEATURES_Z = 100
NUM_FEATURES_XY = 5
MEDIAN_ROWS = 500
MEDIAN_PAIRS = 2000
RIDGE = 1e-10


def _width(data: Floats) -> float:
    """Median distance between different rows, of some thousand pairs among the first rows.

    Rows 1, 2, 3 ... further on are paired, around the end: every row takes part equally often,
    and the median is within some per cent of that over all pairs.
    """
    head = data[:MEDIAN_ROWS]
    n = len(head)
    shifts = np.unique(np.linspace(1, max(1, n // 2), max(1, MEDIAN_PAIRS // n), dtype=np.int64))
    twice = np.vstack([head, head])
    pairs = np.stack([twice[s : s + n] for s in shifts])
    pairs -= head
    squares = np.einsum("sij,sij->si", pairs, pairs).ravel()
    squares = squares[squares > 0]
    if not len(squares):
        return 1.0
    middle = len(squares) // 2
    return float(np.sqrt(np.partition(squares, middle)[middle]))


def _features(data: Floats, number: int, rng: np.random.Generator) -> Singles:
    """Random Fourier features of a Gaussian kernel: float32 [n, number]."""
    weights = rng.normal(size=(data.shape[1], number)) / _width(data)
    phase = rng.uniform(0.0, 2.0 * np.pi, size=number)
    angles = data.astype(np.float32) @ weights.astype(np.float32)
    angles += phase.astype(np.float32)
    return np.asarray(np.cos(angles, out=angles))


def weighted_chi2_tail(cumulants: tuple[float, float, float], value: float) -> float:
    """P(Q > value) for a weighted sum Q of chi-squares.

    Args:
        cumulants: sums of the weights, of their squares and of their cubes.
        value: observed.
    """
    first, second, third = cumulants
    if first <= 0 or second <= 0:
        return 1.0
    freedom = second**3 / third**2
    scaled = (value - first) / np.sqrt(2.0 * second)
    return float(special.chdtrc(freedom, max(0.0, scaled * np.sqrt(2.0 * freedom) + freedom)))


def _freed(both: Floats, z: Floats, rng: np.random.Generator) -> Floats:
    """What random features of z leave of the columns of ``both`` [n, m] by least squares."""
    n = len(z)
    number = int(min(NUM_FEATURES_Z, max(10, n // 5)))
    given = _features(z, number, rng)
    # Their scale does not matter to least squares; their mean has to go.
    given = (given - np.add.reduce(given, axis=0) / np.float32(n)).astype(np.float64)
    inner = linalg.blas.dsyrk(1.0, given.T, lower=1)
    inner.T.ravel()[:: number + 1] += RIDGE * n + 1e-8 * np.trace(inner) / number
    factor, _ = linalg.lapack.dpotrf(inner, lower=1, overwrite_a=1)
    solved, _ = linalg.lapack.dpotrs(factor, given.T @ both, lower=1)
    return np.asarray(both - given @ solved)


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
    if z is not None and z.size:
        z = standardise(z)
        y = np.hstack([y, z])
    both = standardise(
        np.hstack([_features(x, NUM_FEATURES_XY, rng), _features(y, NUM_FEATURES_XY, rng)]).astype(
            np.float64
        )
    )
    if z is not None and z.size:
        both = _freed(both, z, rng)
    left, right = both[:, :NUM_FEATURES_XY], both[:, NUM_FEATURES_XY:]
    statistic = n * float(((left.T @ right / (n - 1)) ** 2).sum())
    products = (left[:, :, None] * right[:, None, :]).reshape(n, -1)
    spread = products.T @ products / n
    square = spread @ spread
    cumulants = float(spread.trace()), float(square.trace()), float(np.vdot(square, spread))
    analytic = weighted_chi2_tail(cumulants, statistic)
    if not permutations:
        return analytic
    drawn = np.empty(permutations)
    for p in range(permutations):
        drawn[p] = n * float(((left[rng.permutation(n)].T @ right / (n - 1)) ** 2).sum())
    counted = (1.0 + float((drawn >= statistic).sum())) / (1.0 + permutations)
    floor_reached = counted <= 1.0 / (1.0 + permutations)
    return analytic if floor_reached else max(analytic, counted)
