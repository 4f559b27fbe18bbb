"""What would be lost without the cause: intervention in the fitted model, with an interval.

For every occurrence of the cause it is known whether the effect followed within the lag band,
and the fitted model says how probable that was from everything else (base rate, other parents,
the effect's own past). The mean difference is the number of effects lost per removed cause;
resampling whole videos, or occurrences when there are few videos, gives its interval.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from engines.causal.influence import Kernel
from engines.causal.parents import EffectModel, Tested
from engines.causal.series import EventTable, Floats, Ints
from engines.contracts.causal import MinerParams

BAND_SPREADS = 2.0
MIN_HALF_BAND_S = 0.08
MIN_VIDEOS_TO_RESAMPLE = 8
CHUNK = 4_000_000


@dataclass(frozen=True)
class Removal:
    """Effects lost per removed cause.

    Attributes:
        delta: mean.
        low: lower end of the bootstrap interval.
        high: upper end.
        followed: occurrences of the cause that were followed by the effect within the band.
        occurrences: occurrences whose band was observed.
        per_video: float64 [videos with the cause], mean difference of each, and
        video_weight: how many occurrences each has.
    """

    delta: float
    low: float
    high: float
    followed: int
    occurrences: int
    per_video: Floats
    video_weight: Floats


def kernel_mass(kernel: Kernel, low: Floats, high: Floats, max_lag_s: float) -> Floats:
    """Integral of weight * density over [low, high], cut to (0, max_lag_s]."""
    root = np.sqrt(2.0) * kernel.spread_s

    def phi(x: Floats) -> Floats:
        return np.asarray(special.erf((np.clip(x, 0.0, max_lag_s) - kernel.mean_s) / root))

    whole = float(phi(np.array([max_lag_s]))[0] - phi(np.array([0.0]))[0])
    return kernel.weight * (phi(high) - phi(low)) / max(whole, 1e-9)


def _pairs(at: Floats, other: Floats, before_s: float, after_s: float) -> tuple[Ints, Ints]:
    low = np.searchsorted(other, at - before_s, side="left")
    high = np.searchsorted(other, at + after_s, side="left")
    number = high - low
    i = np.repeat(np.arange(len(at)), number)
    begin = np.repeat(low - np.concatenate([[0], np.cumsum(number)[:-1]]), number)
    return i, begin + np.arange(len(i))


def band_of(kernel: Kernel, max_lag_s: float) -> tuple[float, float]:
    """The lags that count as followed: two spreads around the mean."""
    half = max(BAND_SPREADS * kernel.spread_s, MIN_HALF_BAND_S)
    return max(1e-3, kernel.mean_s - half), min(max_lag_s, kernel.mean_s + half)


def remove(
    table: EventTable,
    model: EffectModel,
    tested: Tested,
    params: MinerParams,
    rng: np.random.Generator,
) -> Removal:
    """Take one cause away in the fitted model of its effect.

    Args:
        table: all events.
        model: base rate and parents of the effect.
        tested: the cause with its kernel; it need not be among the parents.
        params: longest lag, resamples, and alpha: the interval covers 1 - alpha.
        rng: for resampling.
    """
    max_lag_s = params.max_lag_s
    low, high = band_of(tested.kernel, max_lag_s)
    cause = table.of_type(tested.kind)
    seen = table.covered(cause + high) - table.covered(cause) > high - 1e-6
    cause = cause[seen]
    effect = table.of_type(model.kind)
    first = np.searchsorted(effect, cause + low, side="left")
    last = np.searchsorted(effect, cause + high, side="right")
    followed = (last > first).astype(np.float64)
    anyway = np.full(len(cause), model.attention.base_rate * (high - low))
    for parent, other in zip(model.parents, model.attention.kernels, strict=True):
        if parent.kind == tested.kind:
            continue
        i, j = _pairs(cause, parent.times, max_lag_s - low, high)
        since = cause[i] - parent.times[j]
        mass = kernel_mass(other, since + low, since + high, max_lag_s)
        anyway += np.bincount(i, weights=mass, minlength=len(cause))
    gain = followed + np.expm1(-anyway)
    return _summarise(table, cause, gain, int(followed.sum()), params, rng)


def _summarise(
    table: EventTable,
    cause: Floats,
    gain: Floats,
    followed: int,
    params: MinerParams,
    rng: np.random.Generator,
) -> Removal:
    bootstraps, alpha = params.bootstraps, params.alpha
    n = len(cause)
    if n == 0:
        empty = np.zeros(0)
        return Removal(0.0, 0.0, 0.0, 0, 0, empty, empty)
    seg = np.maximum(np.searchsorted(table.seg_start, cause, side="right") - 1, 0)
    _, video = np.unique(table.seg_video[seg], return_inverse=True)
    weight: Floats = np.bincount(video).astype(np.float64)
    total: Floats = np.bincount(video, weights=gain).astype(np.float64)
    if len(weight) < MIN_VIDEOS_TO_RESAMPLE:
        sums, sizes = gain, np.ones(n, dtype=np.float64)
    else:
        sums, sizes = total, weight
    units = len(sums)
    means: list[Floats] = []
    step = max(1, CHUNK // units)
    for begin in range(0, bootstraps, step):
        drawn = rng.integers(units, size=(min(step, bootstraps - begin), units))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [alpha / 2, 1 - alpha / 2])
    return Removal(float(gain.mean()), float(low), float(high), followed, n, total / weight, weight)
