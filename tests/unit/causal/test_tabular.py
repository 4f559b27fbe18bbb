"""Causal graphs over measured variables: independence tests, score search, and the vote."""

import numpy as np
import pytest

from engines.causal.score_search import GraphSearch, LocalScores, entropy
from engines.causal.tabular import (
    directed_edges,
    kernel_test,
    largest_expected_f1,
    partial_correlation_test,
    pc_edges,
)


def bent_chain(n: int = 800, seed: int = 0) -> np.ndarray:
    """0 -> 1 -> 2 through bends, 3 apart, all positive like concentrations."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 1.5 * np.tanh(1.5 * a) + 0.5 * rng.normal(size=n)
    c = np.log1p(np.exp(2.0 * b)) + 0.5 * rng.normal(size=n)
    return np.exp(np.column_stack([a, b, c, rng.normal(size=n)]))


def collider(n: int = 400) -> np.ndarray:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, n))
    return np.column_stack([a, b, a + b + 0.5 * rng.normal(size=n)])


@pytest.mark.parametrize("kind", ["partial correlation", "kernel"])
def test_pc_directs_a_collider_whatever_the_test(kind):
    data = collider()
    test = (
        kernel_test(data, alpha=0.05)
        if kind == "kernel"
        else partial_correlation_test(data, alpha=0.05)
    )
    assert pc_edges(3, test) == {(0, 2), (1, 2)}


def test_pc_leaves_a_chain_undirected_and_without_a_shortcut():
    rng = np.random.default_rng(2)
    a = rng.normal(size=500)
    b = a + rng.normal(size=500)
    data = np.column_stack([a, b, b + rng.normal(size=500)])
    found = pc_edges(3, partial_correlation_test(data, alpha=0.01))
    assert found == {(0, 1), (1, 0), (1, 2), (2, 1)}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_bends_tell_cause_from_effect_in_any_order_of_columns(order):
    found = directed_edges(bent_chain()[:, order])
    place = {variable: column for column, variable in enumerate(order)}
    assert (place[0], place[1]) in found
    assert (place[1], place[2]) in found
    assert not {e for e in found if place[3] in e or {place[0], place[2]} == set(e)}


def test_skewed_rests_tell_cause_from_effect_where_all_is_straight():
    rng = np.random.default_rng(3)
    cause = rng.exponential(size=1500)
    data = np.column_stack([cause + rng.exponential(size=1500), cause])
    assert GraphSearch(LocalScores(data, normal=False), 0.02).run() == {(1, 0)}


@pytest.mark.parametrize("n", [60, 600])
def test_unrelated_columns_seldom_get_an_edge(n):
    found = [
        directed_edges(np.exp(np.random.default_rng([seed, n]).normal(size=(n, 4))))
        for seed in range(10)
    ]
    assert sum(bool(edges) for edges in found) <= 3


def test_the_search_ends_in_a_graph_without_cycles():
    rng = np.random.default_rng(5)
    data = rng.normal(size=(300, 6)).cumsum(axis=1) + 0.3 * rng.normal(size=(300, 6))
    edges = GraphSearch(LocalScores(data, normal=True), 0.001).run()
    left = set(range(6))
    while left:
        free = {v for v in left if not any(b == v and a in left for a, b in edges)}
        assert free
        left -= free


def test_entropy_is_largest_for_the_normal():
    rng = np.random.default_rng(6)
    normal = rng.normal(size=20_000)
    assert entropy(normal, normal=True) == pytest.approx(1.419, abs=0.02)
    assert entropy(normal, normal=False) == pytest.approx(1.419, abs=0.02)
    for rest in (rng.exponential(size=20_000) - 1.0, rng.laplace(size=20_000) / np.sqrt(2.0)):
        assert entropy(rest, normal=False) < entropy(rest, normal=True) - 0.02


def test_the_chosen_set_has_the_largest_expected_f1():
    probability = np.array([[0.0, 1.0, 0.5], [0.0, 0.0, 0.1], [0.45, 0.0, 0.0]])
    assert largest_expected_f1(probability) == {(0, 1), (0, 2), (2, 0)}
    assert largest_expected_f1(np.zeros((3, 3))) == set()
