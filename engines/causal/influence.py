"""Temporal attention: how much of each effect is owed to which earlier event, and at what lag.

The rate of an effect is a base rate plus, for every parent type, its occurrences weighted by a
lag kernel (a Hawkes process with a normal kernel per pair, cut at zero and at the longest lag).
Expectation maximisation shares every occurrence of the effect out among the base rate and the
earlier events (the attention weights sum to one) and re-estimates weight, mean lag and spread
from the shares (Veen and Schoenberg 2008; Marsan and Lengline 2008).
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from engines.causal.candidates import pairs_within
from engines.causal.series import SIMULTANEOUS_S, Floats, Ints

MIN_SPREAD_S = 0.015
"""Times from pictures are rounded to frames, which alone spreads them this much."""


CORE_SPREADS = 1.5
MIN_CORE_S = 0.06


@dataclass(frozen=True)
class Kernel:
    """Lag kernel of one parent.

    Attributes:
        weight: expected effects per occurrence of the parent.
        mean_s: mean lag.
        spread_s: standard deviation of the lag.
    """

    weight: float
    mean_s: float
    spread_s: float

    def density(self, lag_s: Floats, max_lag_s: float) -> Floats:
        """Probability density over (0, max_lag_s]."""
        z = (lag_s - self.mean_s) / self.spread_s
        root = np.sqrt(2.0)
        low = special.erf((0.0 - self.mean_s) / self.spread_s / root)
        high = special.erf((max_lag_s - self.mean_s) / self.spread_s / root)
        inside = max(0.5 * float(high - low), 1e-6)
        return np.asarray(np.exp(-0.5 * z * z) / (self.spread_s * np.sqrt(2.0 * np.pi) * inside))


@dataclass(frozen=True)
class Links:
    """Every (parent occurrence, effect occurrence) pair within the longest lag.

    Attributes:
        source: int64 [m], index among the parent's occurrences.
        target: int64 [m], index among the effect's occurrences.
        lag_s: float64 [m].
        num_sources: occurrences of the parent.
    """

    source: Ints
    target: Ints
    lag_s: Floats
    num_sources: int


def link(cause: Floats, effect: Floats, *, max_lag_s: float, error_s: float) -> Links:
    """Pairs whose order is beyond doubt: the lag exceeds the effect's time error."""
    i, j = pairs_within(cause, effect, max_lag_s)
    lag = effect[j] - cause[i]
    sure = lag > error_s + SIMULTANEOUS_S
    return Links(i[sure], j[sure], lag[sure], len(cause))


@dataclass(frozen=True)
class Attention:
    """A fitted model of one effect.

    Attributes:
        base_rate: events per second owed to nothing known.
        kernels: one per parent, in the order given.
        shares: per parent float64 [m], attention of each link; the shares of one effect
            occurrence and its base share sum to one.
        log_likelihood: of the effect's times given the parents.
    """

    base_rate: float
    kernels: tuple[Kernel, ...]
    shares: tuple[Floats, ...]
    log_likelihood: float


def attend(
    links: tuple[Links, ...],
    initial: tuple[Kernel, ...],
    *,
    num_effects: int,
    total_s: float,
    max_lag_s: float,
    iterations: int = 25,
) -> Attention:
    """Fit base rate and kernels by expectation maximisation.

    Args:
        links: of each parent to the effect.
        initial: starting kernel of each parent.
        num_effects: occurrences of the effect, at least 1.
        total_s: observed seconds.
        max_lag_s: end of the kernels.
        iterations: fixed, so that the result does not depend on a stopping rule.
    """
    kernels = list(initial)
    base = num_effects / total_s
    shares: list[Floats] = []
    likelihood = num_effects * float(np.log(base)) - num_effects
    for _ in range(iterations if links else 0):
        parts = [
            k.weight * k.density(x.lag_s, max_lag_s) for k, x in zip(kernels, links, strict=True)
        ]
        rate = np.full(num_effects, base)
        for x, part in zip(links, parts, strict=True):
            rate += np.bincount(x.target, weights=part, minlength=num_effects)
        mass = base * total_s + sum(
            k.weight * x.num_sources for k, x in zip(kernels, links, strict=True)
        )
        likelihood = float(np.log(rate).sum()) - mass
        shares = [part / rate[x.target] for x, part in zip(links, parts, strict=True)]
        base = max(float((base / rate).sum()) / total_s, 1e-6 / total_s)
        kernels = [_refit(k, x, share) for k, x, share in zip(kernels, links, shares, strict=True)]
    return Attention(base, tuple(kernels), tuple(shares), likelihood)


def _refit(old: Kernel, links: Links, share: Floats) -> Kernel:
    mass = float(share.sum())
    if mass < 1e-6 or links.num_sources == 0:  # noqa: PLR2004
        return Kernel(1e-6, old.mean_s, old.spread_s)
    mean = float(share @ links.lag_s) / mass
    variance = float(share @ (links.lag_s - mean) ** 2) / mass
    spread = max(MIN_SPREAD_S, float(np.sqrt(variance)))
    return Kernel(mass / links.num_sources, mean, spread)


def felt(cause: Floats, at: Floats, kernel: Kernel, max_lag_s: float) -> Floats:
    """How strongly the past of a cause is felt at the times ``at``: float64 [n].

    About 1 near the mean lag: flat over the kernel's core, falling off outside, so that an
    occurrence either counts or does not; several occurrences add up. Both inputs are sorted.
    """
    i, j = pairs_within(cause, at, max_lag_s)
    spread = max(kernel.spread_s, MIN_CORE_S)
    z = np.abs(at[j] - cause[i] - kernel.mean_s) / spread
    z = np.maximum(z - CORE_SPREADS, 0.0)
    return np.bincount(j, weights=np.exp(-2.0 * z * z), minlength=len(at)).astype(np.float64)
