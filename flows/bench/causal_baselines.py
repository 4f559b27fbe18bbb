"""What a causal miner has to beat: position, lagged correlation, a plain autoregression."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from engines.causal.graph import benjamini_hochberg
from engines.causal.tabular import partial_correlation_test, skeleton
from engines.contracts.causal import Event

Pairs = frozenset[tuple[str, str]]
AskModel = Callable[[str], str]
"""Prompt in, text out: a language model, where one is configured."""

BIN_S = 0.25
MIN_OCCURRENCES = 5
PROMPT_EVENTS = 150
PC_ORDER = 2


def position_prior(events: Sequence[Event]) -> Pairs:
    """Each type is caused by the type that most often comes just before it."""
    before: dict[str, Counter[str]] = {}
    ordered = sorted(events, key=lambda e: (e.span.start_s, e.type))
    for first, second in pairwise(ordered):
        if first.type != second.type:
            before.setdefault(second.type, Counter())[first.type] += 1
    return frozenset(
        (counts.most_common(1)[0][0], effect)
        for effect, counts in before.items()
        if counts.total() >= MIN_OCCURRENCES
    )


def lagged_design(series: NDArray[np.float64], lags: int) -> NDArray[np.float64]:
    """Columns of the past: [t - lags, lags * k], lag 1 of all columns first."""
    n = len(series)
    return np.hstack([series[lags - lag : n - lag] for lag in range(1, lags + 1)])


def var_p_values(series: NDArray[np.float64], lags: int) -> NDArray[np.float64]:
    """P-values of a vector autoregression's t-tests: float64 [lags, k cause, k effect]."""
    k = series.shape[1]
    past = lagged_design(series, lags)
    design = np.column_stack([np.ones(len(past)), past])
    now = series[lags:]
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ design.T @ now
    freedom = max(1, len(design) - design.shape[1])
    variance = ((now - design @ coefficients) ** 2).sum(axis=0) / freedom
    error = np.sqrt(np.maximum(np.outer(np.diag(inverse), variance), 1e-30))
    p_values = 2.0 * stats.t.sf(np.abs(coefficients / error), freedom)
    return np.asarray(p_values[1:].reshape(lags, k, k), dtype=np.float64)


def pc_lagged(series: NDArray[np.float64], lags: int, *, alpha: float) -> set[tuple[int, int, int]]:
    """Edges (cause, effect, lag) of the PC algorithm over the present and the lagged past.

    Separating sets have up to two members; time directs what is left.
    """
    k = series.shape[1]
    table = np.hstack([series[lags:], lagged_design(series, lags)])
    test = partial_correlation_test(table, alpha=alpha)
    edges, _ = skeleton(table.shape[1], test, max_order=PC_ORDER)
    return {
        ((past - k) % k, now, (past - k) // k + 1)
        for now, past in edges
        if now < k <= past and (past - k) % k != now
    }


def binned(events: Sequence[Event], kinds: Sequence[str], duration_s: float) -> NDArray[np.float64]:
    """Counts in bins of ``BIN_S``: float64 [bins, k]."""
    series = np.zeros((int(np.ceil(duration_s / BIN_S)) + 1, len(kinds)))
    for event in events:
        series[int(event.span.start_s / BIN_S), kinds.index(event.type)] += 1.0
    return series


def var_test(
    events: Sequence[Event], duration_s: float, *, max_lag_s: float, alpha: float
) -> Pairs:
    """Edges of a vector autoregression on counts: best lag, Bonferroni over lags, then BH."""
    kinds = sorted({e.type for e in events})
    series = binned(events, kinds, duration_s)
    p_values = var_p_values(series, max(1, int(max_lag_s / BIN_S)))
    best = np.minimum(p_values.min(axis=0) * len(p_values), 1.0)
    return _accepted(best, kinds, alpha)


def lagged_correlation(
    events: Sequence[Event], duration_s: float, *, max_lag_s: float, alpha: float
) -> Pairs:
    """Edges of plain lagged correlation, corrected as in ``var_test``."""
    kinds = sorted({e.type for e in events})
    series = binned(events, kinds, duration_s)
    best = correlation_p_values(series, max(1, int(max_lag_s / BIN_S))).min(axis=0)
    lags = max(1, int(max_lag_s / BIN_S))
    return _accepted(np.minimum(best * lags, 1.0), kinds, alpha)


def correlation_p_values(series: NDArray[np.float64], lags: int) -> NDArray[np.float64]:
    """P-values of lagged correlations: float64 [lags, k cause, k effect]."""
    n, k = series.shape
    p_values = np.ones((lags, k, k))
    for lag in range(1, lags + 1):
        past, now = series[:-lag], series[lag:]
        spread = np.maximum(np.outer(past.std(axis=0), now.std(axis=0)), 1e-12)
        r = ((past - past.mean(axis=0)).T @ (now - now.mean(axis=0))) / len(past) / spread
        z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)) * np.sqrt(max(1, n - lag - 3))
        p_values[lag - 1] = 2.0 * stats.norm.sf(np.abs(z))
    return p_values


def _accepted(p_values: NDArray[np.float64], kinds: Sequence[str], alpha: float) -> Pairs:
    off = ~np.eye(len(kinds), dtype=bool)
    pairs = [(kinds[i], kinds[j]) for i, j in np.argwhere(off)]
    adjusted = benjamini_hochberg(p_values[off])
    return frozenset(p for p, q in zip(pairs, adjusted, strict=True) if q <= alpha)


def language_model_only(events: Sequence[Event], ask: AskModel) -> Pairs:
    """Edges that a language model names when it is shown the timeline and nothing else."""
    kinds = {e.type for e in events}
    lines = [f"{e.span.start_s:.2f} s {e.type}" for e in events[:PROMPT_EVENTS]]
    prompt = (
        "These things happened in a video. Which types of event directly cause which others? "
        "Answer with one line 'cause -> effect' for each, using the names given.\n"
        + "\n".join(lines)
    )
    found = set()
    for line in ask(prompt).splitlines():
        parts = [p.strip(" -*.`'\"") for p in line.split("->")]
        if len(parts) == 2 and set(parts) <= kinds and parts[0] != parts[1]:
            found.add((parts[0], parts[1]))
    return frozenset(found)
