"""One door to the conditional independence tests: the strictest that the size affords."""

import numpy as np
from scipy import stats

from engines.causal.kci import kci, standardise
from engines.causal.rcit import rcit
from engines.causal.series import Floats

KCI_MAX_N = 400


def fisher_z(x: Floats, y: Floats, z: Floats | None = None) -> float:
    """P-value of zero partial correlation of x and y given z (Fisher's z transform).

    Args:
        x: [n].
        y: [n].
        z: [n] or [n, d], or None.
    """
    x, y = standardise(x)[:, 0], standardise(y)[:, 0]
    n, given = len(x), 0
    if z is not None and z.size:
        design = np.hstack([np.ones((n, 1)), standardise(z)])
        given = design.shape[1] - 1
        fitted, *_ = np.linalg.lstsq(design, np.column_stack([x, y]), rcond=None)
        x, y = (np.column_stack([x, y]) - design @ fitted).T
    scale = float(np.sqrt((x @ x) * (y @ y)))
    freedom = n - given - 3
    if scale < 1e-9 * n or freedom < 1:
        return 1.0
    r = float(np.clip(x @ y / scale, -1 + 1e-12, 1 - 1e-12))
    return float(2.0 * stats.norm.sf(abs(np.arctanh(r)) * np.sqrt(freedom)))


def permuted_partial(x: Floats, y: Floats, z: Floats | None = None) -> float:
    """Two-sided p-value of the partial correlation under permutation of the residuals.

    The permutation distribution of a sum of products has closed moments; its tail is taken
    from the Pearson III curve with the same mean, variance and skewness, which holds for the
    rare 0/1 columns where Fisher's z is far too sure.

    Args:
        x: [n].
        y: [n].
        z: [n] or [n, d], or None.
    """
    x, y = standardise(x)[:, 0], standardise(y)[:, 0]
    n = len(x)
    if z is not None and z.size:
        design = np.hstack([np.ones((n, 1)), standardise(z)])
        fitted, *_ = np.linalg.lstsq(design, np.column_stack([x, y]), rcond=None)
        x, y = (np.column_stack([x, y]) - design @ fitted).T
    square_x, square_y = float(x @ x), float(y @ y)
    if n < 4 or min(square_x, square_y) < 1e-9 * n:  # noqa: PLR2004
        return 1.0
    variance = square_x * square_y / (n - 1)
    third = float((x**3).sum() * (y**3).sum()) * n / ((n - 1) * (n - 2))
    skew = float(np.clip(third / variance**1.5, -8.0, 8.0))
    value = float(x @ y) / np.sqrt(variance)
    tail = stats.pearson3.sf(value, skew) if value > 0 else stats.pearson3.cdf(value, skew)
    return float(min(1.0, 2.0 * tail))


def combine(p_values: list[float]) -> float:
    """Cauchy combination (Liu and Xie 2020): valid whatever the dependence of the tests."""
    p = np.clip(np.asarray(p_values), 1e-15, 1 - 1e-15)
    smallest = float(p.min())
    if smallest < 1e-12:  # noqa: PLR2004
        return min(1.0, len(p) * float(min(p_values)))
    return float(stats.cauchy.sf(np.tan((0.5 - p) * np.pi).mean()))


def conditional_p_value(x: Floats, y: Floats, z: Floats | None, *, seed: int) -> tuple[float, str]:
    """P-value and the name of the test.

    A kernel test for dependence of any form (KCI up to 400 rows, RCIT beyond) and the permuted
    partial correlation, stronger where the relation is a plain one, are combined.
    """
    plain = permuted_partial(x, y, z)
    if len(x) <= KCI_MAX_N:
        return combine([kci(x, y, z), plain]), "kci+partial"
    return combine([rcit(x, y, z, seed=seed), plain]), "rcit+partial"
