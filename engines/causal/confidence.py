"""Calibrated probability that an edge is a direct cause.

Logistic regression on 264 accepted and 287 rejected edges of 70 simulated worlds (five levels,
50 to 150 s, seeds 50000 to 50069, none of which the benchmark uses): 261 of the accepted ones
were direct causes, 3 of the rejected ones were causes after all. It says what to expect where
nothing important went unseen; a cause that leaves no event cannot be allowed for.
"""

import numpy as np

from engines.causal.verdicts import Pair

INTERCEPT = 0.04
PER_LOG_MARGIN = 0.23
PER_DELTA_LOW = 2.23
PER_DIGIT = 0.35
MOST_DIGITS = 12.0
CONFIDENCE_IF_ENTERED = 0.33
"""Rejected although it entered the model: two of six were causes."""
CONFIDENCE_IF_EXPLAINED = 0.01


def edge_confidence(pair: Pair, placebo_rate: float | None) -> float | None:
    """Probability that the pair is a direct cause; None where nothing could be tested.

    Args:
        pair: with its test and its removal.
        placebo_rate: share of placebo runs in which the same edge came out.
    """
    tested, removal = pair.tested, pair.removal
    if tested is None or removal is None or pair.q_value is None:
        return None
    if pair.verdict != "causal":
        return CONFIDENCE_IF_ENTERED if tested.selected else CONFIDENCE_IF_EXPLAINED
    digits = min(-np.log10(max(pair.q_value, 1e-12)), MOST_DIGITS)
    logit = (
        INTERCEPT
        + PER_LOG_MARGIN * np.log(max(tested.margin_nats, 0.1))
        + PER_DELTA_LOW * removal.low
        + PER_DIGIT * digits
    )
    return float((1.0 - (placebo_rate or 0.0)) / (1.0 + np.exp(-logit)))
