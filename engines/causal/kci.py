"""Kernel-based conditional independence test, fast.

The test of Zhang, Peters, Janzing and Schoelkopf (UAI 2011) with the gamma null. What makes it
quick without changing the p-value by more than a few thousandths:

* The null needs only the trace of U'U and of its square, where the columns of U are all
  products of eigenfunctions. U U' is the elementwise product of the two residual Gram matrices,
  so both traces are sums over that product and no eigenvalues are computed at all.
* Gram matrices are replaced by thin factors: of one column, by interpolation from an even grid
  (its root depends on the number of points alone and is kept); of more, by LAPACK's pivoted
  Cholesky factorisation, which stops at the rank it needs.
* Only the factors are freed of what z explains, in one solve for x and y together.
* Single precision where three digits are enough.

Kernel widths and ridge are those of the authors' code, so that results can be compared.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from engines.causal.series import Floats

Singles = NDArray[np.float32]

RIDGE = 1e-3
RANK_TOLERANCE = 1e-2
"""Largest squared distance of a row from the span of the factor, for x and y, at 200 rows."""
CONDITION_TOLERANCE = 1e-6
"""The same for z: what it leaves out must stay well below the ridge."""
GRID_STEP = 0.8
CONDITION_GRID_STEP = 0.5
"""Spacing of the grid in kernel widths."""
MAX_GRID = 64
BLOCK_ROWS = 100
"""Of half a Gram matrix at a time."""
CONSTANT = 1e-12
"""A deviation this small beside the values is rounding."""
DENSE_MAX_N = 700
"""Up to here z of several columns is cheaper as a full matrix than as a factor."""


@lru_cache(maxsize=64)
def _ones(n: int) -> tuple[Floats, Singles]:
    """Ones in either precision: sums by the matrix library, several times faster for few rows."""
    return np.ones(n), np.ones(n, dtype=np.float32)


def standardise(data: Floats) -> Floats:
    """Columns to mean 0 and deviation 1; constant columns become 0. [n] becomes [n, 1]."""
    return _standardised(data.reshape(len(data), -1))[0]


def _standardised(data: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The same for [n, d], and which columns vary: bool [d]."""
    n = len(data)
    ones = _ones(n)[0]
    centred = data - ones @ data / n
    spread = (ones @ (centred * centred) / max(1, n - 1)) ** 0.5
    varies = spread > CONSTANT * (1.0 + np.abs(data[0]))
    centred *= np.where(varies, 1.0, 0.0) / np.where(varies, spread, 1.0)
    return centred, varies


def conditional_precision(n: int, dimensions: int) -> float:
    """Inverse squared kernel width of the conditional test, from the columns of z."""
    width = 1.2 if n < 200 else 0.7 if n < 1200 else 0.4  # noqa: PLR2004
    return 1.0 / width**2 / dimensions


def marginal_precision(n: int, dimensions: int) -> float:
    """Inverse squared kernel width of the unconditional test."""
    width = 0.8 if n < 200 else 0.5 if n < 1200 else 0.3  # noqa: PLR2004
    return 1.0 / width**2 * dimensions


def _exponents(data: Floats, precision: float) -> Singles:
    """-precision / 2 * squared distance for all rows of [n, d]: float32 [n, n].

    It comes from one matrix product: the squared lengths ride along as rows.
    """
    n, dimensions = data.shape
    left = np.empty((dimensions + 2, n), dtype=np.float32)
    np.multiply(data.T, precision**0.5, out=left[:-2], casting="same_kind")
    left[-2] = 1.0
    np.einsum("ij,ij->j", left[:-2], left[:-2], out=left[-1])
    left[-1] *= np.float32(-0.5)
    right = left.copy()
    right[-2:] = left[:-3:-1]
    return np.asarray(left.T @ right)


def gaussian_gram(data: Floats, precision: float) -> Singles:
    """exp(-precision / 2 * squared distance) for all rows of [n, d]: float32 [n, n]."""
    gram = _exponents(data, precision)
    return np.asarray(np.exp(gram, out=gram))


def _half_gram(data: Floats, precision: float) -> Singles:
    """The same on and above the diagonal alone, transposed: what LAPACK reads of a symmetric one.

    Above the diagonal of the transposed one some exponents are left.
    """
    gram = _exponents(data, precision)
    for begin in range(0, len(gram), BLOCK_ROWS):
        part = gram[begin : begin + BLOCK_ROWS, begin:]
        np.exp(part, out=part)
    return gram.T


@lru_cache(maxsize=512)
def _grid_root(points: int, step: float, smallest: float = 1e-9) -> Floats:
    """K^-1/2 of the kernel between grid points, less what is smaller than ``smallest``."""
    at = step * np.arange(points)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * np.subtract.outer(at, at) ** 2))
    keep = values > smallest
    return np.ascontiguousarray(vectors[:, keep] / np.sqrt(values[keep]))


@lru_cache(maxsize=512)
def _single_grid_root(points: int, step: float) -> Singles:
    """The same in single precision, which small eigenvalues would drown."""
    return _grid_root(points, step, 1e-5).astype(np.float32)


@lru_cache(maxsize=512)
def _grid_points(points: int, step: float) -> Floats:
    """An even grid about 0 as the second factor of ``_grid``'s exponents: [3, points]."""
    at = step * (np.arange(points) - (points - 1) / 2)
    return np.stack([np.full(points, -0.5), at, -0.5 * at * at])


@lru_cache(maxsize=512)
def _single_grid_points(points: int, step: float) -> Singles:
    return _grid_points(points, step).astype(np.float32)


def _grid(
    scaled: NDArray[np.floating], step: float, *, single: bool
) -> tuple[NDArray[np.floating], int] | None:
    """Kernel [n, points] between values [n] (in widths) and an even grid over them.

    The exponent -(a - b)^2 / 2 comes from one matrix product. ``scaled`` is written over.
    """
    low, high = float(scaled[scaled.argmin()]), float(scaled[scaled.argmax()])
    points = int((high - low) / step) + 3
    if points > MAX_GRID:
        return None
    left = np.empty((3, len(scaled)), dtype=np.float32 if single else np.float64)
    at = np.subtract(scaled, scaled.dtype.type((low + high) / 2), out=left[1])
    np.multiply(at, at, out=left[0])
    left[2] = 1.0
    kernel = left.T @ (_single_grid_points if single else _grid_points)(points, step)
    return np.exp(kernel, out=kernel), points


def grid_factor(column: Floats, precision: float) -> Singles | None:
    """G [n, r] with G G' close to the Gram matrix of [n, 1]; None where the range is too wide."""
    scaled = np.empty(len(column), dtype=np.float32)
    scaled[:] = column[:, 0] * precision**0.5
    found = _grid(scaled, GRID_STEP, single=True)
    return None if found is None else np.asarray(found[0] @ _single_grid_root(found[1], GRID_STEP))


@lru_cache(maxsize=4)
def _lower_half(n: int) -> Singles:
    return np.asfortranarray(np.tri(n, dtype=np.float32))


def _pivoted(
    data: Floats, precision: float, tolerance: float
) -> tuple[Singles, NDArray[np.integer]]:
    """G [n, r] in Fortran order and the rows of ``data`` that its rows stand for."""
    gram = _half_gram(data, precision)
    lower, pivots, rank, _ = linalg.lapack.spstrf(gram, tol=tolerance, lower=1, overwrite_a=1)
    lower = lower[:, :rank]
    # Kept by powers of two: ranks differ from test to test.
    lower[:rank] *= _lower_half(1 << rank.bit_length())[:rank, :rank]
    return lower, pivots - 1


def pivoted_factor(data: Floats, precision: float, tolerance: float) -> Singles:
    """G [n, r] with G G' close to the Gram matrix of [n, d], r as small as the kernel allows."""
    lower, order = _pivoted(data, precision, tolerance)
    factor = np.empty(lower.shape, dtype=np.float32)
    factor[order] = lower
    return factor


def _tolerance(n: int) -> float:
    """Finer for few rows."""
    return RANK_TOLERANCE * min(1.0, (n / 200) ** 2)


def kernel_factor(data: Floats, precision: float) -> Singles:
    """G [n, r] with G G' close to the Gram matrix of ``data`` [n, d]."""
    if data.shape[1] == 1:
        factor = grid_factor(data, precision)
        if factor is not None:
            return factor
    return pivoted_factor(data, precision, _tolerance(len(data)))


def _condition_factor(z: Floats, precision: float) -> Floats:
    """The same for conditions, in double precision: what it leaves out must stay below the ridge.

    The column of a single condition lies on a finer grid.
    """
    if z.shape[1] == 1:
        found = _grid(z[:, 0] * precision**0.5, CONDITION_GRID_STEP, single=False)
        if found is not None:
            return np.asarray(found[0] @ _grid_root(found[1], CONDITION_GRID_STEP))
    return pivoted_factor(z, precision, CONDITION_TOLERANCE).astype(np.float64)


def _centred(factor: NDArray[np.floating]) -> NDArray[np.floating]:
    n = len(factor)
    ones = _ones(n)[1 if factor.dtype == np.float32 else 0]
    return np.asarray(factor - ones @ factor / factor.dtype.type(n))


def gamma_tail(statistic: float, mean: float, variance: float) -> float:
    """P(a gamma variable of this mean and variance > statistic); 1.0 where it is degenerate."""
    if mean <= 0 or variance <= 0:
        return 1.0
    scale = mean / variance
    return float(special.gammaincc(mean * scale, max(0.0, statistic * scale)))


class Residuals:
    """Takes out of functions of x what ridge regression on functions of z explains.

    R = ridge * (H K_z H + ridge)^-1, applied to factors; H centres.
    """

    def __init__(self, z: Floats) -> None:
        """Factorise once for all that will be residualised.

        Args:
            z: [n, d] standardised conditions.
        """
        n, dimensions = z.shape
        precision = conditional_precision(n, dimensions)
        self._dense: Singles | None = None
        if dimensions > 1 and n <= DENSE_MAX_N:
            gram = _half_gram(z, precision)
            gram.T.ravel()[:: n + 1] += np.float32(RIDGE)
            factor, failed = linalg.lapack.spotrf(gram, lower=1, overwrite_a=1, clean=0)
            if not failed:
                self._dense = factor
                return
        self._root = _centred(_condition_factor(z, precision))
        inner = self._root.T @ self._root
        inner.ravel()[:: len(inner) + 1] += RIDGE
        self._inner, _ = linalg.lapack.dpotrf(inner, lower=1, overwrite_a=1)

    def of(self, *factors: Singles) -> Singles:
        """R H G for all G float32 [n, r] side by side: float32 [n, sum of r], Fortran order."""
        n, ranks = len(factors[0]), [factor.shape[1] for factor in factors]
        both = np.empty((n, sum(ranks) + 1), dtype=np.float32, order="F")
        np.concatenate(factors, axis=1, out=both[:, :-1])
        if self._dense is None:
            across = _centred(both[:, :-1]).T.astype(np.float64)
            solved, _ = linalg.lapack.dpotrs(self._inner, (across @ self._root).T, lower=1)
            return np.asarray((across - solved.T @ self._root.T).astype(np.float32).T)
        both[:, -1] = 1.0
        solved, _ = linalg.lapack.spotrs(self._dense, both, lower=1, overwrite_b=1)
        solved *= np.float32(RIDGE)
        # The centred system from the plain one: the solution must sum to zero.
        total = _ones(n)[1] @ solved
        shift, solved, ones = total[:-1] / -total[-1], solved[:, :-1], solved[:, -1]
        return np.asarray(linalg.blas.sger(1.0, ones, shift, a=solved, overwrite_a=1))


def conditional_tail(left: Singles, right: Singles) -> float:
    """P-value from the residual factors [n, p] and [n, q]."""
    cross = left.T @ right
    # Half of each symmetric matrix is enough; the other half is left at zero.
    product = linalg.blas.ssyrk(1.0, left, lower=1).T
    product *= linalg.blas.ssyrk(1.0, right, lower=1).T
    diagonal = product.ravel()[:: len(product) + 1]
    squares = 2.0 * float(np.vdot(product, product)) - float(np.vdot(diagonal, diagonal))
    return gamma_tail(float(np.vdot(cross, cross)), float(diagonal.sum()), 2.0 * squares)


@lru_cache(maxsize=512)
def _halves(cut: int, columns: int) -> Singles:
    """Which columns are of x and which of y: [columns, 2]."""
    halves = np.zeros((columns, 2), dtype=np.float32)
    halves[:cut, 0] = halves[cut:, 1] = 1.0
    return halves


def marginal_tail(both: Singles, cut: int) -> float:
    """P-value from the factors [n, p + q] side by side; x has the first ``cut`` columns."""
    n, columns = both.shape
    total = _ones(n)[1] @ both
    gram = both.T @ both
    linalg.blas.sger(-1.0 / n, total, total, a=gram.T, overwrite_a=1)
    halves = _halves(cut, columns)
    of_x, of_y = (gram.ravel()[:: columns + 1] @ halves).tolist()
    gram *= gram
    (squares_x, cross), (_, squares_y) = (halves.T @ (gram @ halves)).tolist()
    return gamma_tail(cross, of_x * of_y / n, 2.0 * squares_x * squares_y / n / n)


def _scaled_pair(x: Floats, y: Floats) -> Singles | None:
    """Two columns in kernel widths, in turn, float32 [2 n]; None where one does not vary."""
    n = len(x)
    ones = _ones(n)[0]
    pair = np.empty(2 * n, dtype=np.float32)
    root = (marginal_precision(n, 1) * max(1, n - 1)) ** 0.5
    for at, column in enumerate((x.ravel(), y.ravel())):
        centred = column - float(column.dot(ones)) / n
        length = float(centred.dot(centred)) ** 0.5
        if length <= CONSTANT * (1.0 + abs(float(column[0]))) * n**0.5:
            return None
        centred *= root / length
        pair[at::2] = centred
    return pair


def _marginal(x: Floats, y: Floats) -> float:
    """Unconditional test."""
    n = len(x)
    if x.size == y.size == n:
        pair = _scaled_pair(x, y)
        if pair is None:
            return 1.0
        found = _grid(pair, GRID_STEP, single=True)
        if found is not None:
            kernel, points = found
            root = _single_grid_root(points, GRID_STEP)
            both = np.asarray(kernel @ root, dtype=np.float32).reshape(n, -1)
            return marginal_tail(both, root.shape[1])
    x, y = standardise(x), standardise(y)
    if not x.any() or not y.any():
        return 1.0
    left = kernel_factor(x, marginal_precision(n, x.shape[1]))
    right = kernel_factor(y, marginal_precision(n, y.shape[1]))
    return marginal_tail(np.hstack([left, right]), left.shape[1])


def kci(x: Floats, y: Floats, z: Floats | None = None) -> float:
    """P-value of x independent of y (given z).

    Time and memory grow with n^2: meant for up to some thousand rows.

    Args:
        x: [n] or [n, d].
        y: [n] or [n, d].
        z: [n] or [n, d], or None for the unconditional test.

    Returns:
        P-value in [0, 1]; 1.0 where x or y does not vary.
    """
    if z is None or z.size == 0:
        return _marginal(x, y)
    n = len(x)
    parts = [part.reshape(n, -1) for part in (y, x, z)]
    table, varies = _standardised(np.concatenate(parts, axis=1))
    of_y, end_of_x = parts[0].shape[1], parts[0].shape[1] + parts[1].shape[1]
    if not (varies[:of_y].any() and varies[of_y:end_of_x].any()):
        return 1.0
    precision = conditional_precision(n, parts[2].shape[1])
    joined = table[:, of_y:].copy()
    joined[:, end_of_x - of_y :] *= 0.5
    # The order of the rows is free: that of the pivots saves sorting the larger factor.
    left, order = _pivoted(joined, precision, _tolerance(n))
    table = table[order]
    right = kernel_factor(table[:, :of_y], precision)
    both, cut = Residuals(table[:, end_of_x:]).of(left, right), left.shape[1]
    return conditional_tail(both[:, :cut], both[:, cut:])
