"""A Gaussian process over pairs of events, for some thousand pairs and noisy labels.

Regression on labels of -1 and 1 with a sum of kernels: place in the video; the numbers of the
pair; what the event means, by itself and beside the rest of its video, and what the event after
it means. Each but the first comes twice, once for all distances alike and once for near distances
only, so that what a feature says may differ by distance without a model for each. Predictions of
several strengths of the meaning kernels are averaged: their order on the training file is within
noise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from flows.bench.mecd_features import Array, PairTable

Singles = NDArray[np.float32]

PLACE = 0.3
NUMBERS = 0.1
NUMBERS_BY_PLACE = 0.15
MEANING_STRENGTHS = (0.005, 0.01, 0.02, 0.04)
"""Weights beside noise of variance 1."""
NUMBERS_LENGTH = 1.5
"""Of the kernel over the numbers, in root mean square deviations."""
FAR = 4
ROLES = 3
"""Of the meanings those of the event, of the next, and of the event beside its video."""
CERTAIN = 0.02


def _squares(a: Array, b: Array) -> Array:
    left, right = (a * a).sum(axis=1), (b * b).sum(axis=1)
    return np.asarray(left[:, None] + right - 2.0 * (a @ b.T))


def _place(a: PairTable, b: PairTable) -> tuple[Singles, Singles]:
    """Same distance (4 and more are one), and nearness of distance and of number of events."""
    same = np.minimum(a.distance, FAR)[:, None] == np.minimum(b.distance, FAR)
    distance = np.minimum(a.distance, FAR + 2)[:, None] - np.minimum(b.distance, FAR + 2)
    events = np.minimum(a.num_earlier, FAR + 3)[:, None] - np.minimum(b.num_earlier, FAR + 3)
    near = np.exp(-0.5 * distance**2 - 0.125 * events**2)
    return same.astype(np.float32), near.astype(np.float32)


@dataclass(frozen=True)
class _Scales:
    """What centres and scales the kernels, from the training pairs alone."""

    mean: Array
    spread: Array
    meaning_mean: Array
    meaning_size: Array

    @classmethod
    def of(cls, table: PairTable) -> "_Scales":
        meanings = table.meanings[:, :ROLES]
        centred = meanings - meanings.mean(axis=0)
        return cls(
            mean=table.features.mean(axis=0),
            spread=np.maximum(table.features.std(axis=0), 1e-9),
            meaning_mean=meanings.mean(axis=0),
            meaning_size=np.maximum((centred**2).sum(axis=2).mean(axis=0), 1e-9),
        )

    def kernels(self, a: PairTable, b: PairTable) -> tuple[Singles, Singles]:
        """What does not depend on the meanings, and what does: float32 [pairs a, pairs b]."""
        same, near = _place(a, b)
        left = (a.features - self.mean) / self.spread
        right = (b.features - self.mean) / self.spread
        width = 2.0 * NUMBERS_LENGTH**2 * left.shape[1]
        numbers = np.exp(-_squares(left, right) / width).astype(np.float32)
        plain = same + PLACE * (1.0 + near) + numbers * (NUMBERS + NUMBERS_BY_PLACE * near)
        first = (a.meanings[:, :ROLES] - self.meaning_mean).astype(np.float32)
        second = (b.meanings[:, :ROLES] - self.meaning_mean).astype(np.float32)
        meaning = np.zeros_like(plain, dtype=np.float32)
        for role, size in enumerate(self.meaning_size):
            meaning += first[:, role] @ second[:, role].T / np.float32(size)
        return plain.astype(np.float32), meaning * (1.0 + near)


class PairProcess:
    """The fitted process."""

    def __init__(self, train: PairTable) -> None:
        """Fit for every strength."""
        self._train = train
        self._scales = _Scales.of(train)
        plain, meaning = self._scales.kernels(train, train)
        target = np.where(train.causes, 1.0, -1.0).astype(np.float32)
        self._weights = []
        for strength in MEANING_STRENGTHS:
            inner = plain + np.float32(strength) * meaning
            inner.ravel()[:: len(inner) + 1] += 1.0
            factor = linalg.cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)
            self._weights.append(linalg.cho_solve(factor, target, check_finite=False))

    def predict(self, table: PairTable) -> Array:
        """Probability of causing the last event: float64 [m] in (0, 1)."""
        plain, meaning = self._scales.kernels(table, self._train)
        drawn = [
            plain @ weights + np.float32(strength) * (meaning @ weights)
            for strength, weights in zip(MEANING_STRENGTHS, self._weights, strict=True)
        ]
        mean = (np.mean(drawn, axis=0).astype(np.float64) + 1.0) / 2.0
        return np.asarray(np.clip(mean, CERTAIN, 1.0 - CERTAIN))
