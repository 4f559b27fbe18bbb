"""What ours has to beat on MECD: rules and models that use less than the meaning of the events."""

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from flows.bench.mecd_features import Array, PairTable

Bools = NDArray[np.bool_]
Fitted = Callable[[PairTable], Array]
"""Pairs in, probability of causing the last event out: float64 [m]."""

RULE_DISTANCE = 2
PLACE_AND_TIME = 21
"""The first columns of the features."""
VAR_LAGS = 4
VAR_DIMENSIONS = 5
ALPHA = 0.05


def rule(table: PairTable) -> Bools:
    """The last two events before the last one cause it, whatever they are."""
    return np.asarray(table.distance <= RULE_DISTANCE)


def fit_plain(train: PairTable) -> Fitted:
    """Logistic regression on place, time and TF-IDF similarity: the second rule to beat."""
    tfidf = TfidfVectorizer(sublinear_tf=True).fit([*train.earlier, *train.last])

    def columns(table: PairTable) -> Array:
        a, b = tfidf.transform(table.earlier), tfidf.transform(table.last)
        similar = np.asarray(a.multiply(b).sum(axis=1)).ravel()
        return np.column_stack([table.features[:, :PLACE_AND_TIME], similar])

    scaler = StandardScaler().fit(columns(train))
    model = LogisticRegression(C=0.1, max_iter=500).fit(
        scaler.transform(columns(train)), train.causes
    )
    return lambda table: np.asarray(model.predict_proba(scaler.transform(columns(table)))[:, 1])


def fit_autoregression(train: PairTable) -> Callable[[PairTable], Bools]:
    """A vector autoregression of the last event's meaning on the events before it.

    An event is called a cause if its lag has a coefficient that a t-test finds, by Bonferroni.
    Without meanings nothing is found.
    """
    if train.meanings.shape[2] == 0:
        return lambda table: np.zeros(len(table.causes), dtype=np.bool_)
    earlier, last = train.meanings[:, 0], train.meanings[:, -1]
    axes = np.linalg.svd(earlier - earlier.mean(axis=0), full_matrices=False)[2][:VAR_DIMENSIONS]
    num_videos = int(train.video.max()) + 1
    size = len(axes)
    past = np.zeros((num_videos, VAR_LAGS, size))
    now = np.zeros((num_videos, size))
    near = train.distance <= VAR_LAGS
    past[train.video[near], train.distance[near] - 1] = (earlier[near] - earlier.mean(0)) @ axes.T
    now[train.video] = (last - last.mean(axis=0)) @ axes.T
    seen = np.unique(train.video)
    design = np.column_stack([np.ones(len(seen)), past[seen].reshape(len(seen), -1)])
    inverse = np.linalg.pinv(design.T @ design)
    fitted = inverse @ design.T @ now[seen]
    freedom = max(1, len(seen) - design.shape[1])
    variance = ((now[seen] - design @ fitted) ** 2).sum(axis=0) / freedom
    error = np.sqrt(np.maximum(np.outer(np.diag(inverse), variance), 1e-30))
    p_values = 2.0 * stats.t.sf(np.abs(fitted / error)[1:], freedom).reshape(VAR_LAGS, -1)
    found = p_values.min(axis=1) * p_values.shape[1] < ALPHA
    return lambda table: (table.distance <= VAR_LAGS) & found[np.minimum(table.distance, 4) - 1]


def ask_model(table: PairTable, ask: Callable[[str], str], num_videos: int) -> tuple[Bools, Bools]:
    """What a language model says of the first videos: rows asked about, and what it calls causes.

    Args:
        table: pairs in the order of the videos' events.
        ask: prompt in, text out.
        num_videos: to ask about.
    """
    said = np.zeros(len(table.causes), dtype=np.bool_)
    videos = np.unique(table.video)[:num_videos]
    for video in videos:
        rows = np.flatnonzero(table.video == video)
        lines = [f"{number}. {table.earlier[row]}" for number, row in enumerate(rows, start=1)]
        prompt = (
            "These events happen in a video, in this order. Which of them cause the last event? "
            "Answer with the number of each cause on a line of its own.\n"
            + "\n".join(lines)
            + f"\nLast event: {table.last[rows[0]]}"
        )
        for number in re.findall(r"\d+", ask(prompt)):
            if 1 <= int(number) <= len(rows):
                said[rows[int(number) - 1]] = True
    return np.isin(table.video, videos), said
