"""Stage ``embed``: labels with spans and one vector per sampled picture."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engines.contracts.base import Coverage
from engines.contracts.media import Sample
from engines.contracts.vision import EmbeddedSample, EmbedDocument, EmbedParams, Label
from engines.vision.label_engine import (
    LabelEngine,
    Picture,
    open_label_engine,
)
from engines.vision.spans import SampleClock

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
    engine: LabelEngine | None = None,
) -> tuple[EmbedDocument, npt.NDArray[np.float32]]:
    """Name what the samples show, and give each a vector.

    Pictures are read one batch at a time: memory does not grow with the length of the video.

    Args:
        pictures: samples in order, each with uint8 [h, w, 3] RGB at display aspect.
        time_base_num: seconds per tick of the samples' times, numerator.
        time_base_den: its denominator.
        params: see ``EmbedParams``.
        cache_dir: where converted networks are kept.
        end_pts: where the picture ends; a label in the last sample goes so far.
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
    samples: list[Sample] = []
    vectors: list[npt.NDArray[np.float32]] = []
    runs = _LabelRuns(engine, params)
    for batch in _batched(_prepend(first, stream), params.batch_size):
        seen = engine.see([picture for _, picture in batch])
        norms = np.linalg.norm(seen.features, axis=1, keepdims=True)
        vectors.append(seen.features / np.maximum(norms, _TINY))
        for (sample, picture), probabilities in zip(batch, seen.probabilities, strict=True):
            runs.add(len(samples), None if is_flat(picture) else probabilities)
            samples.append(sample)
    clock = SampleClock(samples, time_base_num, time_base_den, end_pts)
    whole = clock.span(0, len(samples) - 1)
    document = EmbedDocument(
        labels=runs.labels(clock),
        embedded=tuple(EmbeddedSample(sample_name=s.name, pts=s.pts) for s in samples),
        dimension=engine.dimension,
        model=engine.name,
        coverage=Coverage(covered_s=whole.duration_s, skipped_s=0.0),
    )
    return document, np.concatenate(vectors).astype(np.float32, copy=False)


def is_flat(picture: Picture) -> bool:
    """Whether a picture has one colour all over, as black and fade frames have."""
    thinned = picture[:: max(1, picture.shape[0] // 90), :: max(1, picture.shape[1] // 160)]
    return float((thinned @ _LUMA).std()) < FLAT_DEVIATION


class _LabelRuns:
    """Follows each class through the samples; one sample without it does not end its run."""

    def __init__(self, engine: LabelEngine, params: EmbedParams) -> None:
        self._engine = engine
        self._params = params
        self._open: dict[int, tuple[int, int, float, int]] = {}
        """By class: first sample, last sample, highest probability, samples that show it."""
        self._closed: list[tuple[int, int, float, int]] = []
        """First sample, last sample, highest probability, class."""

    def add(self, index: int, probabilities: npt.NDArray[np.float32] | None) -> None:
        shown: set[int] = set()
        if probabilities is not None:
            for found in np.flatnonzero(probabilities >= self._params.keep_score):
                kind, score = int(found), float(probabilities[found])
                shown.add(kind)
                first, _, best, count = self._open.get(kind, (index, index, 0.0, 0))
                self._open[kind] = (first, index, max(best, score), count + 1)
        for kind in [k for k, run in self._open.items() if k not in shown and run[1] < index - 1]:
            self._close(kind)

    def labels(self, clock: SampleClock) -> tuple[Label, ...]:
        for kind in list(self._open):
            self._close(kind)
        return tuple(
            Label(
                span=clock.span(first, last),
                label=self._engine.classes[kind],
                score=score,
                vocabulary=self._engine.vocabulary,
                model=self._engine.name,
            )
            for first, last, score, kind in sorted(self._closed, key=lambda r: (r[0], -r[2], r[3]))
        )

    def _close(self, kind: int) -> None:
        first, last, best, count = self._open.pop(kind)
        needed = self._params.enter_score if count > 1 else self._params.lone_score
        if best >= needed:
            self._closed.append((first, last, best, kind))


@lru_cache(maxsize=1)
def _engine(params: EmbedParams, cache_dir: Path) -> LabelEngine:
    """Stays loaded between calls; another model replaces it, since memory holds one of a kind."""
    return open_label_engine(params, cache_dir)


def _batched(
    stream: Iterator[tuple[Sample, Picture]], size: int
) -> Iterator[list[tuple[Sample, Picture]]]:
    while batch := list(islice(stream, size)):
        yield batch


def _prepend(
    first: tuple[Sample, Picture], rest: Iterator[tuple[Sample, Picture]]
) -> Iterator[tuple[Sample, Picture]]:
    yield first
    yield from rest


def _nothing() -> EmbedDocument:
    return EmbedDocument(
        labels=(),
        embedded=(),
        dimension=0,
        model="none",
        coverage=Coverage(covered_s=0.0, skipped_s=0.0, reason="no sampled pictures"),
    )
