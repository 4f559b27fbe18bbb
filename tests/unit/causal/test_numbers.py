"""The known-truth benches: their systems are what they say, and their baselines work."""

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from flows.bench import causal_tabular
from flows.bench.causal_baselines import pc_lagged
from flows.bench.causal_kernels import conditional_sample, kernel_rows
from flows.bench.causal_numbers import lagged_system
from flows.bench.causal_tabular import (
    NUM_EDGES,
    NUM_VARIABLES,
    asked,
    correlated,
    made_system,
    sachs,
)


def test_pc_over_the_past_finds_a_direct_edge_and_no_indirect_one():
    rng = np.random.default_rng(0)
    series = rng.normal(size=(600, 3))
    for t in range(2, 600):
        series[t, 1] += 0.8 * series[t - 1, 0]
        series[t, 2] += 0.8 * series[t - 2, 1]
    assert pc_lagged(series, 3, alpha=0.01) == {(0, 1, 1), (1, 2, 2)}


def test_a_constant_series_does_not_stop_pc():
    series = np.random.default_rng(1).normal(size=(100, 3))
    series[:, 1] = 8.0
    assert not any(1 in edge[:2] for edge in pc_lagged(series, 2, alpha=0.05))


@pytest.mark.parametrize("bent", [False, True])
def test_lagged_systems_are_bounded_and_repeat_themselves(bent):
    series, edges = lagged_system(120, 3, bent=bent)
    again, same = lagged_system(120, 3, bent=bent)
    np.testing.assert_array_equal(series, again)
    assert edges == same
    assert series.shape == (120, 6)
    assert np.abs(series).max() <= 8.0


def test_made_tables_are_positive_acyclic_and_dependent_along_their_edges():
    data, edges = made_system(0, 0.15, 0.0)
    assert (data > 0).all()
    assert len(edges) == NUM_EDGES
    left = set(range(data.shape[1]))
    while left:
        first = {v for v in left if not any(b == v and a in left for a, b in edges)}
        assert first
        left -= first
    assert len(edges & correlated(np.log(data))) > NUM_EDGES // 2


def test_the_sachs_table_is_the_published_one():
    folder = Path(causal_tabular.__file__).parent
    record = json.loads((folder / "causal_sachs.json").read_text())
    raw = gzip.decompress((folder / record["table"]).read_bytes())
    assert hashlib.sha256(raw).hexdigest() == record["sha256_of_the_csv"]
    data, names, edges = sachs()
    assert data.shape == (7466, NUM_VARIABLES)
    assert (data > 0).all()
    assert len(edges) == NUM_EDGES
    assert {name for edge in edges for name in edge} == set(names)


def test_what_a_language_model_says_is_read_line_by_line():
    answer = "PKA -> Raf\n- `PKC -> Raf`\nno edge here\nRaf -> something else"
    assert asked(["PKA", "PKC", "Raf"], lambda prompt: answer) == {("PKA", "Raf"), ("PKC", "Raf")}


def test_samples_for_the_kernel_tests_have_the_conditions_asked_for():
    x, y, z = conditional_sample(50, 0, 0, 0.1)
    assert z is None
    assert x.shape == y.shape == (50,)
    assert conditional_sample(50, 3, 0, 0.1)[2].shape == (50, 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_kernel_row_has_its_reference_beside_it():
    pytest.importorskip("causallearn", exc_type=ImportError)
    rows = kernel_rows((60,))
    for row in rows[:3]:
        assert row.figures["largest_p_difference"] <= 0.02
        assert row.figures["reference_ms"] > 0
    search = next(row for row in rows if row.name.startswith("PC with kci"))
    assert search.figures["edges_that_differ"] == 0
