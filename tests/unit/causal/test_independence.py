"""Own KCI and RCIT against causal-learn, and the level of the tests."""

import numpy as np
import pytest

from engines.causal.independence import (
    combine,
    conditional_p_value,
    fisher_z,
    permuted_partial,
)
from engines.causal.kci import gaussian_gram, grid_factor, kci, pivoted_factor, standardise
from engines.causal.kernel_search import KernelTests
from engines.causal.rcit import rcit, weighted_chi2_tail


def system(n: int, seed: int, strength: float, dimensions: int = 2):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, dimensions))
    x = np.tanh(z[:, 0]) + 0.7 * rng.normal(size=n)
    y = np.sin(z[:, 0]) + strength * x**2 + 0.7 * rng.normal(size=n)
    return x, y, z


def oracle_kci(x, y, z):
    module = pytest.importorskip("causallearn.utils.KCI.KCI", exc_type=ImportError)
    return module.KCI_CInd().compute_pvalue(x[:, None], y[:, None], z)[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "dimensions"), [(60, 1), (200, 2), (200, 4)])
def test_kci_gives_the_oracles_p_value(n, dimensions, seed):
    x, y, z = system(n, seed, 0.1 * seed, dimensions)
    assert kci(x, y, z) == pytest.approx(oracle_kci(x, y, z), abs=0.02)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_unconditional_kci_gives_the_oracles_p_value(seed):
    module = pytest.importorskip("causallearn.utils.KCI.KCI", exc_type=ImportError)
    x, y, _ = system(250, seed, 0.05 * seed)
    expected = module.KCI_UInd().compute_pvalue(x[:, None], y[:, None])[0]
    assert kci(x, y) == pytest.approx(expected, abs=0.02)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_kci_gives_the_oracles_p_value_on_rare_and_heavy_tailed_columns(seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_t(2, size=(150, 2))
    x = (rng.random(150) < 0.1) + 0.05 * seed * np.tanh(z[:, 0])
    y = np.tanh(z[:, 0]) + rng.standard_t(2, size=150)
    assert kci(x, y, z) == pytest.approx(oracle_kci(x, y, z), abs=0.02)


@pytest.mark.parametrize("given", [(), (3,), (1, 2), (1, 2, 4)])
def test_a_search_gives_the_p_value_of_the_single_test(given):
    table = np.random.default_rng(0).normal(size=(120, 6)).cumsum(axis=1)
    tests = KernelTests(table)
    z = table[:, given] if given else None
    for _ in range(2):
        # The single test takes the rows in another order, and rounds to single precision.
        assert tests.p_value(5, 0, given) == pytest.approx(
            kci(table[:, 0], table[:, 5], z), abs=3e-3
        )


@pytest.mark.filterwarnings("ignore")
def test_rcit_agrees_with_the_oracle_on_average():
    module = pytest.importorskip("causallearn.utils.RCIT.RCIT", exc_type=ImportError)
    own, theirs = [], []
    for seed in range(8):
        x, y, z = system(300, seed, 0.12)
        own.append(rcit(x, y, z, seed=seed) < 0.05)
        theirs.append(module.RCIT().compute_pvalue(x[:, None], y[:, None], z)[0] < 0.05)
    assert abs(np.mean(own) - np.mean(theirs)) <= 0.4


@pytest.mark.parametrize("test", [kci, rcit, fisher_z, permuted_partial])
def test_false_alarms_stay_near_the_level(test):
    alarms = [test(*system(100, 1000 + seed, 0.0, 1)) < 0.05 for seed in range(50)]
    assert np.mean(alarms) < 0.2


@pytest.mark.parametrize("n", [120, 900])
def test_dependence_beyond_the_line_is_found(n):
    x, y, z = system(n, 3, 0.8)
    p_value, name = conditional_p_value(x, y, z, seed=0)
    assert p_value < 0.01
    assert name == ("kci+partial" if n <= 400 else "rcit+partial")


def test_permuted_partial_holds_its_level_on_rare_events():
    rng = np.random.default_rng(0)
    own = []
    for _ in range(300):
        x = (rng.random(130) < 0.03).astype(float)
        y = np.zeros(130)
        y[:12] = 1.0
        own.append(permuted_partial(x, y))
    assert np.mean(np.array(own) < 0.01) < 0.03
    assert np.mean(np.array(own) < 0.05) < 0.08


def test_constant_columns_are_independent_of_everything():
    x, y, z = system(80, 0, 1.0)
    flat = np.full(80, 3.0)
    for test in (kci, rcit, fisher_z, permuted_partial):
        assert test(flat, y, z) == 1.0
        assert test(x, flat, None) == 1.0


def test_factors_rebuild_the_gram_matrix():
    data = standardise(np.random.default_rng(1).normal(size=(300, 1)))
    exact = np.exp(-((data - data.T) ** 2))
    np.testing.assert_allclose(gaussian_gram(data, 2.0), exact, atol=1e-5)
    for factor in (grid_factor(data, 2.0), pivoted_factor(data, 2.0, 1e-3)):
        assert factor is not None
        assert factor.shape[1] < 40
        np.testing.assert_allclose(factor @ factor.T, exact, atol=5e-3)


def test_a_range_too_wide_for_the_grid_is_left_to_pivots():
    assert grid_factor(np.array([[0.0], [1.0], [500.0]]), 1.0) is None
    x, y, _ = system(100, 0, 1.0)
    x[0] = 1e6
    assert 0.0 <= kci(x, y) <= 1.0


def test_weighted_chi2_tail_matches_simulation():
    weights = np.array([3.0, 1.0, 0.5, 0.1])
    cumulants = (float(weights.sum()), float((weights**2).sum()), float((weights**3).sum()))
    drawn = np.random.default_rng(2).chisquare(1, size=(200_000, 4)) @ weights
    for value in (5.0, 12.0, 25.0):
        tail = weighted_chi2_tail(cumulants, value)
        assert tail == pytest.approx((drawn > value).mean(), abs=0.01)


def test_combination_keeps_the_evidence_of_either():
    assert combine([1e-9, 0.9]) < 1e-8
    assert combine([0.5, 0.5]) == pytest.approx(0.5)
    assert combine([1e-40, 1.0]) < 1e-39
