"""Kernel tests among the columns of one table; what tests have in common is computed once.

A search over graphs asks for thousands of tests on a few columns: kernel factors of columns, the
factorised conditions and the residuals of a column given a set return again and again.
"""

from functools import lru_cache

import numpy as np

from engines.causal.kci import (
    Residuals,
    Singles,
    conditional_precision,
    conditional_tail,
    kernel_factor,
    marginal_precision,
    marginal_tail,
    standardise,
)
from engines.causal.series import Floats

KEPT_BYTES = 256 * 2**20
"""Memory for residual factors; what was not used for longest goes first."""


class KernelTests:
    """KCI for pairs of columns given others, with shared factors."""

    def __init__(self, data: Floats) -> None:
        """Standardise; nothing is tested yet.

        Args:
            data: [n, k] measurements.
        """
        self._data = standardise(data)
        self._varies = [bool(column.any()) for column in self._data.T]
        n = len(data)
        kept = max(64, KEPT_BYTES // (4 * n * 128))
        self._plain = lru_cache(maxsize=None)(self._plain_factor)
        self._maker = lru_cache(maxsize=16)(self._residual_maker)
        self._left = lru_cache(maxsize=kept)(self._left_residual)
        self._right = lru_cache(maxsize=kept)(self._right_residual)

    def p_value(self, i: int, j: int, given: tuple[int, ...] = ()) -> float:
        """P-value of column i independent of column j given others; 1.0 where one is constant.

        The conditions are joined to the lower of i and j, as in the reference implementation.
        """
        if not (self._varies[i] and self._varies[j]):
            return 1.0
        i, j = min(i, j), max(i, j)
        given = tuple(sorted(given))
        if given:
            return conditional_tail(self._left(i, given), self._right(j, given))
        left, right = self._plain(i), self._plain(j)
        return marginal_tail(np.hstack([left, right]), left.shape[1])

    def _plain_factor(self, i: int) -> Singles:
        precision = marginal_precision(len(self._data), 1)
        return kernel_factor(self._data[:, [i]], precision)

    def _residual_maker(self, given: tuple[int, ...]) -> Residuals:
        return Residuals(self._data[:, given])

    def _left_residual(self, i: int, given: tuple[int, ...]) -> Singles:
        joined = np.hstack([self._data[:, [i]], 0.5 * self._data[:, given]])
        precision = conditional_precision(len(joined), len(given))
        return self._maker(given).of(kernel_factor(joined, precision))

    def _right_residual(self, j: int, given: tuple[int, ...]) -> Singles:
        precision = conditional_precision(len(self._data), len(given))
        return self._maker(given).of(kernel_factor(self._data[:, [j]], precision))
