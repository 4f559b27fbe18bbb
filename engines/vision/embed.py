"""Stage ``embed``: labels with spans and one vector per sampled picture."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import numpy.typing as npt

from engines.contracts.base import Coverage
from engines.contracts.media import Sample
from engines.contracts.vision import (
    Alignment,
    EmbeddedSample,
    EmbedDocument,
    EmbedParams,
    Label,
)
from engines.vision.alignment import Aligned
from engines.vision.compress import keep_salient
from engines.vision.label_engine import LabelEngine, Picture, Seen, open_label_engine
from engines.vision.spans import SampleClock
from engines.vision.temporal import attend

if TYPE_CHECKING:
    from engines.vision.clips import ClipEngine

T = TypeVar("T")

FLAT_DEVIATION = 4.0
"""Standard deviation of the luma, of 255, below which a picture shows nothing to name."""
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_TINY = 1e-12


def embed(
    pictures: Iterable[tuple[Sample, Picture]],
    time_base_num: int,
    time_base_den: int,
    params: EmbedParams,
    cache_dir: Path,
    *,
    end_pts: int | None = None,
    keyframes: Collection[str] | None = None,
    engine: "LabelEngine | ClipEngine | None" = None,
) -> tuple[EmbedDocument, npt.NDArray[np.float32]]:
    """Name what the samples show, and give each a vector.

    Pictures are read one batch, or one clip, at a time: memory for pictures does not grow with the
    length of the video.

    Args:
        pictures: samples in order, each with uint8 [h, w, 3] RGB at display aspect.
        time_base_num: seconds per tick of the samples' times, numerator.
        time_base_den: its denominator.
        params: see ``EmbedParams``.
        cache_dir: where converted networks are kept.
        end_pts: where the picture ends; a label in the last sample goes so far.
        keyframes: names of samples whose vectors are stored whatever ``params.vectors_per_s`` says;
            None where it is not known which they are.
        engine: None takes the one that ``params`` names.

    Returns:
        The document, and float32 [n, d] of unit length whose row i belongs to ``embedded[i]``.

    Raises:
        UsageError: unknown model, or a backend or precision that is not there.
        ModelMissingError, ModelHashError, OutOfMemoryError, NotFiniteError, EngineError: see
            ``LabelEngine``.
    """
    stream = iter(pictures)
    first = next(stream, None)
    if first is None:
        return _nothing(), np.zeros((0, 0), np.float32)
    engine = engine or _engine(params, cache_dir)
    seen = _look(chain((first,), stream), engine, params)
    samples, runs = seen.samples, seen.runs.finish()
    clock = SampleClock(samples, time_base_num, time_base_den, end_pts)
    whole = clock.span(0, len(samples) - 1)
    vectors = np.concatenate(seen.vectors).astype(np.float32, copy=False)
    if params.temporal_reach:
        vectors = attend(vectors, params.temporal_reach)
    kept = _kept(vectors, seen, keyframes, params, whole.duration_s)
    rows = [seen.rows[i] for i in kept]
    document = EmbedDocument(
        labels=_labels(runs, clock, engine),
        alignments=_alignments(runs, samples),
        embedded=tuple(
            EmbeddedSample(sample_name=samples[i].name, pts=samples[i].pts) for i in rows
        ),
        vectors_left_out=len(vectors) - len(kept),
        dimension=engine.dimension,
        model=engine.name,
        coverage=Coverage(covered_s=whole.duration_s, skipped_s=0.0),
        degraded=(*getattr(engine, "degraded", ()), *seen.degraded),
    )
    return document, vectors[list(kept)]


def _kept(
    vectors: npt.NDArray[np.float32],
    seen: "_Seen",
    keyframes: Collection[str] | None,
    params: EmbedParams,
    duration_s: float,
) -> Sequence[int]:
    """Rows that are stored; of a model of clips, a keyframe's is that of the nearest clip."""
    if params.vectors_per_s is None:
        return range(len(vectors))
    if keyframes is None:
        seen.degraded += ("which pictures are keyframes is not known: none is kept for that",)
    rows = np.array(seen.rows)
    always = {
        int(np.abs(rows - index).argmin())
        for index, sample in enumerate(seen.samples)
        if sample.name in (keyframes or ())
    }
    budget = max(1, round(params.vectors_per_s * duration_s))
    return keep_salient(vectors, budget, always)


class _Seen:
    """What one pass over the samples gathers."""

    def __init__(self, engine: "LabelEngine | ClipEngine", params: EmbedParams) -> None:
        self.samples: list[Sample] = []
        self.rows: list[int] = []
        """Index of the sample that each vector belongs to."""
        self.vectors: list[npt.NDArray[np.float32]] = []
        self.runs = _LabelRuns(engine, params)
        self.degraded: tuple[str, ...] = ()

    def add_vectors(self, rows: Iterable[int], seen: Seen) -> None:
        norms = np.linalg.norm(seen.features, axis=1, keepdims=True)
        self.vectors.append(seen.features / np.maximum(norms, _TINY))
        self.rows.extend(rows)


def _look(
    stream: Iterator[tuple[Sample, Picture]],
    engine: "LabelEngine | ClipEngine",
    params: EmbedParams,
) -> _Seen:
    length = getattr(engine, "clip_length", None)
    if length is None:
        return _look_at_pictures(stream, cast("LabelEngine", engine), params)
    return _look_at_clips(stream, cast("ClipEngine", engine), params)


def _look_at_pictures(
    stream: Iterator[tuple[Sample, Picture]], engine: LabelEngine, params: EmbedParams
) -> _Seen:
    seen = _Seen(engine, params)
    for batch in _batched(stream, params.batch_size):
        result = engine.see([picture for _, picture in batch])
        start = len(seen.samples)
        seen.add_vectors(range(start, start + len(batch)), result)
        for row, (sample, picture) in enumerate(batch):
            shown = None if is_flat(picture) else result.probabilities[row]
            cells = None if result.cells is None else result.cells[row]
            seen.runs.add(len(seen.samples), shown, cells)
            seen.samples.append(sample)
    return seen


def _look_at_clips(
    stream: Iterator[tuple[Sample, Picture]], engine: "ClipEngine", params: EmbedParams
) -> _Seen:
    """A label of a clip counts for the samples from its middle to the next clip's middle."""
    from engines.vision.clips import Clip, windows

    seen = _Seen(engine, params)
    found: list[tuple[Clip, npt.NDArray[np.float32] | None]] = []
    kept = _keeping(stream, seen.samples)
    hop = min(params.clip_hop, engine.clip_length)
    clips = windows(kept, engine.clip_length, hop)
    for batch in _batched(clips, max(1, params.batch_size // engine.clip_length)):
        result = engine.see([[picture for _, picture in items] for _, items in batch])
        seen.add_vectors([clip.middle for clip, _ in batch], result)
        for (clip, items), probabilities in zip(batch, result.probabilities, strict=True):
            flat = all(is_flat(picture) for _, picture in items)
            found.append((clip, None if flat else probabilities))
        if batch[-1][0].padding:
            seen.degraded = (
                f"the video has fewer samples than the {engine.clip_length} of a clip: its last "
                f"one is repeated {batch[-1][0].padding} times",
            )
    middles = [clip.middle for clip, _ in found]
    nearest = np.searchsorted(middles, np.arange(len(seen.samples)), side="right") - 1
    for index, clip_index in enumerate(nearest):
        seen.runs.add(index, found[max(int(clip_index), 0)][1])
    return seen


def _keeping(
    stream: Iterator[tuple[Sample, Picture]], samples: list[Sample]
) -> Iterator[tuple[Sample, Picture]]:
    for sample, picture in stream:
        samples.append(sample)
        yield sample, picture


def is_flat(picture: Picture) -> bool:
    """Whether a picture has one colour all over, as black and fade frames have."""
    thinned = picture[:: max(1, picture.shape[0] // 90), :: max(1, picture.shape[1] // 160)]
    return float((thinned @ _LUMA).std()) < FLAT_DEVIATION


@dataclass(frozen=True)
class _Run:
    """A class over consecutive samples."""

    first: int
    last: int
    best: float
    """Highest probability ..."""
    best_at: int
    """... in this sample, ..."""
    where: Aligned | None
    """... and where in it."""
    count: int
    """Samples that show it."""
    kind: int


class _LabelRuns:
    """Follows each class through the samples; one sample without it does not end its run."""

    def __init__(self, engine: "LabelEngine | ClipEngine", params: EmbedParams) -> None:
        self._engine = engine
        self._params = params
        self._open: dict[int, _Run] = {}
        self._closed: list[_Run] = []

    def add(
        self,
        index: int,
        probabilities: npt.NDArray[np.float32] | None,
        cells: npt.NDArray[np.float32] | None = None,
    ) -> None:
        shown: set[int] = set()
        if probabilities is not None:
            for found in np.flatnonzero(probabilities >= self._params.keep_score):
                kind, score = int(found), float(probabilities[found])
                shown.add(kind)
                run = self._open.get(kind) or _Run(index, index, -1.0, index, None, 0, kind)
                run = replace(run, last=index, count=run.count + 1)
                if score > run.best:
                    where = None if cells is None else self._align(kind, cells)
                    run = replace(run, best=score, best_at=index, where=where)
                self._open[kind] = run
        for kind in [k for k, r in self._open.items() if k not in shown and r.last < index - 1]:
            self._close(kind)

    def finish(self) -> list[_Run]:
        """All runs that are facts, in the order of their labels."""
        for kind in list(self._open):
            self._close(kind)
        return sorted(self._closed, key=lambda r: (r.first, -r.best, r.kind))

    def _align(self, kind: int, cells: npt.NDArray[np.float32]) -> Aligned | None:
        align = getattr(self._engine, "align", None)
        return None if align is None else cast("Aligned", align(kind, cells))

    def _close(self, kind: int) -> None:
        run = self._open.pop(kind)
        needed = self._params.enter_score if run.count > 1 else self._params.lone_score
        if run.best >= needed:
            self._closed.append(run)


def _labels(
    runs: Sequence[_Run], clock: SampleClock, engine: "LabelEngine | ClipEngine"
) -> tuple[Label, ...]:
    return tuple(
        Label(
            span=clock.span(run.first, run.last),
            label=engine.classes[run.kind],
            score=run.best,
            vocabulary=engine.vocabulary,
            model=engine.name,
        )
        for run in runs
    )


def _alignments(runs: Sequence[_Run], samples: Sequence[Sample]) -> tuple[Alignment, ...]:
    return tuple(
        Alignment(
            label=f"label:{ordinal}",
            sample_name=samples[run.best_at].name,
            box=run.where.box,
            entropy=run.where.entropy,
        )
        for ordinal, run in enumerate(runs)
        if run.where is not None
    )


@lru_cache(maxsize=1)
def _engine(params: EmbedParams, cache_dir: Path) -> "LabelEngine | ClipEngine":
    """Stays loaded between calls; another model replaces it, since memory holds one of a kind."""
    return open_label_engine(params, cache_dir)


def _batched(stream: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(stream)
    while batch := list(islice(rest, size)):
        yield batch


def _nothing() -> EmbedDocument:
    return EmbedDocument(
        labels=(),
        embedded=(),
        dimension=0,
        model="none",
        coverage=Coverage(covered_s=0.0, skipped_s=0.0, reason="no sampled pictures"),
    )
