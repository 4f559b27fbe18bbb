"""Frame vectors that know of their neighbours: attention within a window of time.

Each vector attends to those at most ``reach`` places away, itself included, by scaled dot product
(Vaswani et al., 2017) without learnt projections: there are no weights to fetch, and what comes
out is a mean of similar neighbours (Buades et al., "A non-local algorithm", 2005). Memory grows
with the length times the window, not with the square of the length.
"""

import numpy as np
import numpy.typing as npt

from engines.errors import UsageError

Vectors = npt.NDArray[np.float32]
_TINY = 1e-12
_SHARPNESS = 20.0
"""Cosines are multiplied by this before the softmax: a neighbour whose cosine is 0.1 lower counts
for a seventh."""


def attend(vectors: Vectors, reach: int) -> Vectors:
    """Windowed temporal attention.

    Args:
        vectors: float32 [t, d] in order of time.
        reach: neighbours on either side, at least 1.

    Returns:
        float32 [t, d], unit length.

    Raises:
        UsageError: a reach below 1.
    """
    if reach < 1:
        msg = f"reach {reach}: it must be at least 1"
        raise UsageError(msg)
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _TINY)
    mixed = np.empty_like(units)
    for start in range(0, len(units), reach):
        stop = min(start + reach, len(units))
        low, high = max(0, start - reach), min(len(units), stop + reach)
        logits = _SHARPNESS * units[start:stop] @ units[low:high].T
        distance = np.abs(np.arange(start, stop)[:, None] - np.arange(low, high))
        logits[distance > reach] = -np.inf
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        mixed[start:stop] = (weights / weights.sum(axis=1, keepdims=True)) @ units[low:high]
    lengths = np.linalg.norm(mixed, axis=1, keepdims=True)
    result: Vectors = (mixed / np.maximum(lengths, _TINY)).astype(np.float32, copy=False)
    return result
