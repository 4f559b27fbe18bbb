"""What a described event and the last one have to do with each other, as numbers.

For every earlier event of a video against the last: where it stands, when it happens, what words
and meanings the two share, and how that compares with the video's other events.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.errors import UsageError

Array = NDArray[np.float64]
Embed = Callable[[Sequence[str]], Array]
"""Sentences in, float64 [n, d] of unit length out."""

FUNCTION_WORDS = (
    "a an and are as at be by down for from he her him his in into is it its off on one or out "
    "over she that the their them then they this to two up was were which while who with"
)
STEM_LETTERS = 5
PRONOUN = re.compile(r"\b(he|she|they|it|his|her|their|him|them|its)\b")
CUES = {
    "framing": re.compile(r"\b(intro|title|logo|screen|text|words|credits|shown|appears|seen)\b"),
    "ending": re.compile(r"\b(end|ends|ending|close|closes|finish|finishes|finally|last)\b"),
    "going on": re.compile(r"\b(continue|continues|again|still|more)\b"),
    "sequence": re.compile(r"\b(then|next|after|finally|once)\b"),
    "while": re.compile(r"\b(while|as|during)\b"),
    "talk": re.compile(r"\b(talk|talks|talking|speak|speaks|speaking|explain|explains|camera)\b"),
}


@dataclass(frozen=True)
class Described:
    """One video of the data set.

    Attributes:
        name: its id.
        sentences: one per event, in order.
        times_s: float64 [n, 2], start and end.
        duration_s: of the video.
        causes: bool [n - 1], whether each earlier event causes the last.
    """

    name: str
    sentences: tuple[str, ...]
    times_s: Array
    duration_s: float
    causes: NDArray[np.bool_]


@dataclass(frozen=True)
class PairTable:
    """All (earlier event, last event) pairs.

    Attributes:
        features: float64 [m, f].
        earlier: text of the earlier event of each pair.
        last: text of the last event.
        causes: bool [m].
        distance: int64 [m], 1 for the event just before the last.
        num_earlier: int64 [m], earlier events of the video.
        video: int64 [m].
        meanings: float64 [m, 4, d], embeddings: of the earlier event, of the event after it, of the
            earlier one less the mean of the video, and of the last; d is 0 without an embedding
            model.
    """

    features: Array
    earlier: list[str]
    last: list[str]
    causes: NDArray[np.bool_]
    distance: NDArray[np.int64]
    num_earlier: NDArray[np.int64]
    video: NDArray[np.int64]
    meanings: Array


def _described(name: str, record: dict[str, Any]) -> Described:
    sentences = tuple(str(s).strip() for s in record["sentences"])
    relation = str(record["relation"][-1])
    if len(relation) != len(sentences) - 1 or set(relation) - {"0", "1"}:
        msg = f"{name}: relation {relation!r} does not fit {len(sentences)} sentences"
        raise UsageError(msg)
    return Described(
        name=name,
        sentences=sentences,
        times_s=np.asarray(record["timestamps"], dtype=np.float64).reshape(-1, 2),
        duration_s=max(float(record["duration"]), 1e-3),
        causes=np.array([c == "1" for c in relation]),
    )


def read_videos(path: Path) -> list[Described]:
    """The videos of one file: a list of {id: record} or one such mapping.

    Raises:
        UsageError: the file is not there or has another form.
    """
    try:
        loaded = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        msg = f"cannot read {path}: {error}"
        raise UsageError(msg) from error
    try:
        groups = [loaded] if isinstance(loaded, dict) else list(loaded)
        items = [pair for group in groups for pair in group.items()]
        return [_described(str(name), record) for name, record in items]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        msg = f"{path} is not of the expected form: {error!r}"
        raise UsageError(msg) from error


def words(text: str) -> list[str]:
    """Lower-case words."""
    return re.findall(r"[a-z]+", text.lower())


def stems(text: str, common: frozenset[str]) -> frozenset[str]:
    """First letters of the content words."""
    return frozenset(w[:STEM_LETTERS] for w in words(text) if w not in common)


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / max(1, len(a | b))


def _time_features(video: Described, i: int) -> list[float]:
    last = len(video.sentences) - 1
    (start, end), (last_start, last_end) = video.times_s[i], video.times_s[last]
    whole = video.duration_s
    return [
        (last_start - end) / whole,
        (last_start - start) / whole,
        last_start - end,
        end - start,
        (end - start) / whole,
        (last_end - last_start) / whole,
        start / whole,
        float(np.log(whole)),
        max(0.0, min(end, last_end) - max(start, last_start)),
        float(start > last_start - 1e-6),
        last_start / whole,
        last_end / whole,
    ]


def _similarity_features(similarity: Array, i: int) -> list[float]:
    last = len(similarity) - 1
    to_last = similarity[:last, last]
    others = np.delete(similarity[i, :last], i)
    between = similarity[i, i + 1 : last]
    through = np.minimum(between, similarity[i + 1 : last, last])
    return [
        float(similarity[i, last]),
        float(similarity[i, last] - to_last.mean()),
        float((to_last > similarity[i, last]).sum()) / last,
        float(to_last.max()),
        float(to_last.mean()),
        float(to_last.min()),
        float(similarity[i, i + 1]),
        float(similarity[last - 1, last]),
        float(others.mean()) if len(others) else 0.0,
        float(others.max()) if len(others) else 0.0,
        float(between.max()) if len(between) else 0.0,
        float(through.max()) if len(through) else 0.0,
    ]


def _text_features(video: Described, i: int) -> list[float]:
    a, b = video.sentences[i].lower(), video.sentences[-1].lower()
    return [
        float(len(words(a))),
        float(len(words(b))),
        float(len(PRONOUN.findall(a))),
        float(len(PRONOUN.findall(b))),
        float(PRONOUN.match(b) is not None),
        *(float(cue.search(text) is not None) for text in (a, b) for cue in CUES.values()),
    ]


def _place_features(video: Described, i: int) -> list[float]:
    last = len(video.sentences) - 1
    distance = last - i
    near = [float(distance == d) for d in (1, 2, 3, 4)]
    return [float(distance), float(i), float(last), i / max(1, last - 1), *near, float(i == 0)]


def pair_table(videos: Sequence[Described], embed: Embed | None) -> PairTable:
    """Features of every pair.

    Args:
        videos: at least one.
        embed: sentence embeddings; without it meanings are left out and similarity is that
            of word stems alone.
    """
    common = frozenset(FUNCTION_WORDS.split())
    flat = [s for v in videos for s in v.sentences]
    meaning = embed(flat) if embed is not None else np.zeros((len(flat), 0))
    rows: list[list[float]] = []
    meanings: list[Array] = []
    position = 0
    for video in videos:
        n = len(video.sentences)
        own = meaning[position : position + n]
        position += n
        bags = [stems(s, common) for s in video.sentences]
        shared = np.array([[_overlap(a, b) for b in bags] for a in bags])
        close = own @ own.T if own.shape[1] else shared
        for i in range(n - 1):
            covered = len(bags[i] & bags[-1])
            rows.append(
                [
                    *_place_features(video, i),
                    *_time_features(video, i),
                    *_similarity_features(close, i),
                    *_similarity_features(shared, i),
                    covered / max(1, len(bags[-1])),
                    covered / max(1, len(bags[i])),
                    *_text_features(video, i),
                ]
            )
            meanings.append(np.stack([own[i], own[i + 1], own[i] - own.mean(axis=0), own[-1]]))
    lengths = [len(v.sentences) - 1 for v in videos]
    return PairTable(
        features=np.array(rows, dtype=np.float64),
        earlier=[s for v in videos for s in v.sentences[:-1]],
        last=[v.sentences[-1] for v in videos for _ in v.sentences[:-1]],
        causes=np.concatenate([v.causes for v in videos]),
        distance=np.concatenate([np.arange(n, 0, -1) for n in lengths]),
        num_earlier=np.repeat(lengths, lengths),
        video=np.repeat(np.arange(len(videos)), lengths),
        meanings=np.array(meanings, dtype=np.float64),
    )
