"""Kernel-based conditional independence test, fast.

The test of Zhang, Peters, Janzing and Schoelkopf (UAI 2011) with the gamma null. Three things
make it quick without changing the p-value:

* The null needs only the trace of U'U and of its square, where the columns of U are all
  products of eigenfunctions. U U' is the elementwise product of the two residual Gram matrices,
  so both traces are sums over that product and no eigenvalues are computed at all.
* Gram matrices are replaced by pivoted incomplete Cholesky factors as long as their rank is
  small; the residual maker then costs O(n r^2).
* Residuals of x and y given the same z share one factorisation.

Kernel widths and ridge are those of the authors' code, so that results can be compared.
"""

import numpy as np
from scipy import linalg, stats
from scipy.spatial.distance import cdist

from engines.causal.series import Floats

RIDGE = 1e-3
FACTOR_TOLERANCE = 1e-6
"""Trace of what a factor leaves out, per sample: two orders below the ridge."""
DENSE_MAX_N = 700
"""Up to here one inverse of the full matrix is cheaper than building a factor in Python."""
DENSE_SHARE = 3
"""A factor with more than n / 3 columns saves nothing over the full matrix."""


def standardise(data: Floats) -> Floats:
    """Columns to mean 0 and deviation 1; constant columns become 0. [n] becomes [n, 1]."""
    data = data.reshape(len(data), -1)
    spread = data.std(axis=0, ddof=1)
    centred = data - data.mean(axis=0)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0))


def gaussian_gram(data: Floats, precision: float) -> Floats:
    """exp(-precision / 2 * squared distance) for all rows of [n, d]: float64 [n, n]."""
    return np.asarray(np.exp(-0.5 * precision * cdist(data, data, "sqeuclidean")))


def _centred(gram: Floats) -> Floats:
    means = gram.mean(axis=0)
    return np.asarray(gram - means[None, :] - means[:, None] + means.mean())


def _inverse(positive: Floats) -> Floats:
    """Inverse of a positive definite matrix; half the work of solving for the identity."""
    factor, _ = linalg.lapack.dpotrf(positive, lower=1, overwrite_a=1)
    lower, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(lower)
    return np.asarray(lower + np.tril(lower, -1).T)


def _conditional_precision(n: int, dimensions: int) -> float:
    width = 1.2 if n < 200 else 0.7 if n < 1200 else 0.4  # noqa: PLR2004
    return 1.0 / width**2 / dimensions


def _marginal_precision(n: int, dimensions: int) -> float:
    width = 0.8 if n < 200 else 0.5 if n < 1200 else 0.3  # noqa: PLR2004
    return 1.0 / width**2 * dimensions


def incomplete_cholesky(data: Floats, precision: float, max_rank: int) -> Floats | None:
    """G [n, r] with G G' close to the Gram matrix, or None when ``max_rank`` does not suffice."""
    n = len(data)
    rows = np.zeros((max_rank, n))
    left = np.ones(n)
    half_squares = 0.5 * precision * (data * data).sum(axis=1)
    scaled = precision * data
    for r in range(max_rank):
        if left.sum() < FACTOR_TOLERANCE * n:
            return np.ascontiguousarray(rows[:r].T)
        pivot = int(left.argmax())
        row = np.exp(scaled @ data[pivot] - half_squares - half_squares[pivot])
        row -= rows[:r, pivot] @ rows[:r]
        row /= np.sqrt(left[pivot])
        rows[r] = row
        left = np.maximum(left - row * row, 0.0)
    return None if left.sum() >= FACTOR_TOLERANCE * n else np.ascontiguousarray(rows.T)


def _root(data: Floats, precision: float) -> Floats:
    """A centred square root of the Gram matrix: [n, r], r as small as the kernel allows."""
    n = len(data)
    factor = incomplete_cholesky(data, precision, max(20, n // DENSE_SHARE))
    if factor is None:
        gram = gaussian_gram(data, precision)
        gram[np.diag_indices(n)] += FACTOR_TOLERANCE
        factor = linalg.cholesky(gram, lower=True, check_finite=False)
    return np.asarray(factor - factor.mean(axis=0))


def _gamma_tail(statistic: float, mean: float, variance: float) -> float:
    if mean <= 0 or variance <= 0:
        return 1.0
    return float(stats.gamma.sf(statistic, mean**2 / variance, scale=variance / mean))


class Residuals:
    """Takes out of functions of x what ridge regression on functions of z explains."""

    def __init__(self, z: Floats) -> None:
        """Factorise once for all that will be residualised.

        Args:
            z: [n, d] standardised conditions.
        """
        n, dimensions = z.shape
        precision = _conditional_precision(n, dimensions)
        self._maker: Floats | None = None
        if n <= DENSE_MAX_N:
            gram = _centred(gaussian_gram(z, precision))
            gram[np.diag_indices(n)] += RIDGE
            self._maker = RIDGE * _inverse(gram)
            return
        root = _root(z, precision)
        self._root = root
        inner = root.T @ root
        inner[np.diag_indices(len(inner))] += RIDGE
        self._inner = linalg.cho_factor(inner, check_finite=False)

    def of_root(self, root: Floats) -> Floats:
        """R G for G [n, r], where R = ridge * (K_z + ridge)^-1."""
        if self._maker is not None:
            return np.asarray(self._maker @ root)
        solved = linalg.cho_solve(self._inner, self._root.T @ root, check_finite=False)
        return np.asarray(root - self._root @ solved)

    def gram(self, data: Floats, precision: float) -> Floats:
        """R K R of the centred Gram matrix K of ``data`` [n, d]: [n, n].

        In single precision for the dense products: the statistic needs three digits.
        """
        if self._maker is None or data.shape[1] == 1:
            root = self.of_root(_root(data, precision)).astype(np.float32)
            return np.asarray(root @ root.T)
        maker = self._maker.astype(np.float32)
        kernel = _centred(gaussian_gram(data, precision)).astype(np.float32)
        return np.asarray(maker @ kernel @ maker)


def kci(x: Floats, y: Floats, z: Floats | None = None) -> float:
    """P-value of x independent of y (given z).

    Args:
        x: [n] or [n, d].
        y: [n] or [n, d].
        z: [n] or [n, d], or None for the unconditional test.

    Returns:
        P-value in [0, 1]; 1.0 where x or y does not vary.
    """
    x, y = standardise(x), standardise(y)
    n = len(x)
    if not x.any() or not y.any():
        return 1.0
    if z is None or z.size == 0:
        root_x = _root(x, _marginal_precision(n, x.shape[1]))
        root_y = _root(y, _marginal_precision(n, y.shape[1]))
        return _unconditional(root_x, root_y)
    z = standardise(z)
    precision = _conditional_precision(n, z.shape[1])
    remove = Residuals(z)
    product = remove.gram(np.hstack([x, 0.5 * z]), precision)
    product *= remove.gram(y, precision)
    statistic = float(product.sum(dtype=np.float64))
    mean = float(np.trace(product, dtype=np.float64))
    variance = 2.0 * float(np.vdot(product, product))
    return _gamma_tail(statistic, mean, variance)


def _unconditional(root_x: Floats, root_y: Floats) -> float:
    n = len(root_x)
    statistic = float(((root_x.T @ root_y) ** 2).sum())
    mean = float((root_x**2).sum() * (root_y**2).sum()) / n
    variance = 2.0 * float(((root_x.T @ root_x) ** 2).sum() * ((root_y.T @ root_y) ** 2).sum())
    return _gamma_tail(statistic, mean, variance / n / n)
