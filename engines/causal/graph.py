"""From tested pairs to an acyclic graph; correction for many tests."""

import numpy as np

from engines.causal.series import Floats


def benjamini_hochberg(p_values: Floats, num_tests: int | None = None) -> Floats:
    """Adjusted p-values (Benjamini and Hochberg 1995) in the order given.

    Args:
        p_values: float64 [m].
        num_tests: tests in the family when some, with p = 1, are not listed; default m.
    """
    m = len(p_values)
    family = max(num_tests or m, m)
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * family / np.arange(1, m + 1)
    monotone = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(monotone, 1.0)
    return adjusted


def acyclic(edges: list[tuple[str, str]]) -> list[bool]:
    """Which edges stay when they are added in this order and none may close a cycle."""
    below: dict[str, set[str]] = {}
    kept = []
    for cause, effect in edges:
        reach = below.get(effect, set())
        fits = cause != effect and cause not in reach
        kept.append(fits)
        if not fits:
            continue
        gained = reach | {effect}
        below.setdefault(cause, set()).update(gained)
        for node, descendants in below.items():
            if cause in descendants and node != cause:
                descendants.update(gained)
    return kept
