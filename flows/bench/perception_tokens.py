"""Token compression and windowed attention: what a budget of pictures still shows, and memory."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engines.media.samples import SampleArchive
from engines.runtime.backends import open_session
from engines.vision.compress import keep_evenly, keep_salient
from engines.vision.efficientnet_engine import network_source, views
from engines.vision.temporal import attend
from flows.bench import BenchRow
from flows.bench.perception_image import OPTIONS

_BUDGETS = (0.05, 0.1, 0.2)
_LENGTHS = (2000, 8000)
_REACH = 16
_WIDTH = 512
_BATCH = 8
_ENOUGH = 0.95
_MAX_GROWTH = 4.5

Vectors = npt.NDArray[np.float32]


def token_rows(cache_dir: Path, samples: Path) -> list[BenchRow]:
    """All corpus clips end to end as one programme, each clip a moment that must not be lost.

    Where a clip begins is known without any model; how long it lasts differs forty times. An
    answer needs at least one picture of its moment.
    """
    vectors, moments = _programme(cache_dir, samples)
    count, all_moments = len(vectors), len(set(moments.tolist()))

    def recall(kept: tuple[int, ...]) -> float:
        return len(set(moments[list(kept)].tolist())) / all_moments

    figures: dict[str, float | int | str | None] = {"pictures": count, "moments": all_moments}
    better = True
    for share in _BUDGETS:
        budget = max(1, round(share * count))
        ours, fixed = recall(keep_salient(vectors, budget)), recall(keep_evenly(count, budget))
        figures[f"recall_at_{share:g}"] = round(ours, 4)
        figures[f"fixed_recall_at_{share:g}"] = round(fixed, 4)
        better = better and ours >= fixed
    needed = _needed(lambda b: recall(keep_salient(vectors, b)), count)
    needed_fixed = _needed(lambda b: recall(keep_evenly(count, b)), count)
    seconds = count / 4
    figures["pictures_for_95_percent"] = needed
    figures["fixed_pictures_for_95_percent"] = needed_fixed
    figures["pictures_per_s"] = round(needed / seconds, 3)
    figures["fixed_pictures_per_s"] = round(needed_fixed / seconds, 3)
    row = BenchRow(
        name="token compression: moments that keep a picture, against a fixed rate",
        figures=figures,
        must="no less recall than fixed at every budget",
        holds=better,
    )
    return [row]


def memory_row() -> BenchRow:
    """Peak memory of windowed attention at two lengths, beside full attention's."""
    peaks = []
    for length in _LENGTHS:
        vectors = np.random.default_rng(1).normal(size=(length, _WIDTH)).astype(np.float32)
        tracemalloc.start()
        attend(vectors, _REACH)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    growth = peaks[1] / peaks[0]
    return BenchRow(
        name="temporal attention within a window: memory at four times the length",
        figures={
            "peak_mb_2000": round(peaks[0] / 1e6, 1),
            "peak_mb_8000": round(peaks[1] / 1e6, 1),
            "growth": round(growth, 2),
            "full_attention_mb_8000": round(4 * _LENGTHS[1] ** 2 / 1e6, 1),
            "full_attention_growth": (_LENGTHS[1] / _LENGTHS[0]) ** 2,
        },
        must=f"growth <= {_MAX_GROWTH:g} (linear is 4)",
        holds=growth <= _MAX_GROWTH,
    )


def _needed(recall: Callable[[int], float], count: int) -> int:
    """Smallest budget on a grid of one percent steps that keeps 95 % of the moments."""
    grid = sorted({max(1, round(count * part / 100)) for part in range(1, 101)})
    return next((budget for budget in grid if recall(budget) >= _ENOUGH), count)


def _programme(cache_dir: Path, samples: Path) -> tuple[Vectors, npt.NDArray[np.int64]]:
    session = open_session("openvino", network_source(cache_dir), OPTIONS)
    parts: list[Vectors] = []
    moments: list[int] = []
    for number, path in enumerate(sorted(samples.rglob("samples.zip"))):
        with SampleArchive(path) as archive:
            rows = np.stack([views(archive.read(name))[1] for name in archive.names])
        parts.extend(
            session.run({"pixels": rows[start : start + _BATCH]})["features"].astype(np.float32)
            for start in range(0, len(rows), _BATCH)
        )
        moments += [number] * len(rows)
    vectors = np.concatenate(parts)
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return (vectors / lengths).astype(np.float32), np.array(moments, np.int64)
