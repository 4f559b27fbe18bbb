"""What is kept under a budget: key pictures always, short moments before long sameness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import UsageError
from engines.vision.compress import keep_evenly, keep_salient


def scenes(lengths: list[int], seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of scenes that each stay nearly the same, and the scene of each."""
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(len(lengths)), lengths)
    vectors = rng.normal(size=(len(lengths), 32))[which] + rng.normal(size=(len(which), 32)) * 0.1
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), which


def test_short_moments_are_kept_that_a_fixed_rate_misses() -> None:
    vectors, which = scenes([200, 2, 150, 1, 300, 3])
    kept = keep_salient(vectors, 12)
    assert set(which[list(kept)]) == set(range(6))
    assert len(set(which[list(keep_evenly(len(vectors), 12))])) < 6


def test_where_nothing_changes_what_is_kept_lies_evenly() -> None:
    vectors = np.tile(np.array([[1, 0]], np.float32), (101, 1))
    kept = keep_salient(vectors, 5, always=(0, 100))
    np.testing.assert_allclose(kept, (0, 25, 50, 75, 100), atol=1)


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=9),
    budget=st.integers(1, 40),
    data=st.data(),
)
def test_budget_and_key_pictures_hold(lengths: list[int], budget: int, data: st.DataObject) -> None:
    vectors, _ = scenes(lengths)
    always = data.draw(st.sets(st.integers(0, len(vectors) - 1), max_size=8))
    kept = keep_salient(vectors, budget, always)
    assert always <= set(kept)
    assert list(kept) == sorted(set(kept))
    assert len(kept) == max(len(always), min(budget, len(vectors)))
    assert len(keep_evenly(len(vectors), budget)) == min(budget, len(vectors))


def test_what_cannot_be_is_refused() -> None:
    vectors, _ = scenes([3])
    with pytest.raises(UsageError, match="budget 0"):
        keep_salient(vectors, 0)
    with pytest.raises(UsageError, match="there are 3 pictures"):
        keep_salient(vectors, 1, always=(3,))
    assert keep_salient(vectors[:0], 4) == ()
