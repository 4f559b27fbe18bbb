"""Token compression and windowed attention: what a budget of vectors still answers, and memory."""

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engines.contracts.media import SampleParams
from engines.media.samples import SampleArchive
from engines.runtime.backends import open_session
from engines.vision.compress import keep_evenly, keep_salient
from engines.vision.efficientnet_engine import network_source, views
from engines.vision.label_engine import Picture
from engines.vision.temporal import attend
from flows.bench import BenchRow
from flows.bench.perception_image import OPTIONS, SAMPLES

_BUDGETS = (0.05, 0.1, 0.2)
_LENGTHS = (2000, 8000)
_REACH = 16
_WIDTH = 512
_ENOUGH = 0.95
_DARKER = 0.8
_MAX_GROWTH = 4.5

Vectors = npt.NDArray[np.float32]


def token_rows(cache_dir: Path, folder: Path) -> list[BenchRow]:
    """All corpus clips end to end as one programme, each clip a moment that can be asked for.

    Where a clip begins is known without any model; how long it lasts differs forty times. The
    question "when is this seen?" is put with each of the programme's pictures, mirrored, cut and
    darkened; the answer is the moment of the stored vector that is nearest. Right answers are
    averaged over moments, so that a short one counts as much as a long one.
    """
    programme = _programme(cache_dir, folder / SAMPLES)
    count = len(programme.vectors)
    seconds = count * SampleParams().step_s
    figures: dict[str, float | int | str | None] = {
        "pictures": count,
        "moments": len(set(programme.moments.tolist())),
        "seconds": round(seconds),
        "right_with_all": round(programme.right(range(count)), 4),
    }
    better = True
    for share in _BUDGETS:
        budget = max(1, round(share * count))
        ours = programme.right(keep_salient(programme.vectors, budget))
        fixed = programme.right(keep_evenly(count, budget))
        figures[f"right_at_{budget / seconds:.2f}_per_s"] = round(ours, 4)
        figures[f"fixed_right_at_{budget / seconds:.2f}_per_s"] = round(fixed, 4)
        better = better and ours >= fixed
    enough = _ENOUGH * programme.right(range(count))
    needed = _needed(lambda b: programme.right(keep_salient(programme.vectors, b)) >= enough, count)
    fixed_needed = _needed(lambda b: programme.right(keep_evenly(count, b)) >= enough, count)
    figures["vectors_per_s_for_95_percent_of_that"] = round(needed / seconds, 3)
    figures["fixed_vectors_per_s_for_95_percent_of_that"] = round(fixed_needed / seconds, 3)
    row = BenchRow(
        name="token compression: questions answered from kept vectors, against a fixed rate",
        figures=figures,
        must="no fewer right answers than fixed at every budget, fewer vectors for 95 %",
        holds=better and needed < fixed_needed,
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


def _needed(enough: Callable[[int], bool], count: int) -> int:
    """Smallest budget on a grid of one percent steps that is enough."""
    grid = sorted({max(1, round(count * part / 100)) for part in range(1, 101)})
    return next((budget for budget in grid if enough(budget)), count)


@dataclass(frozen=True)
class _Programme:
    """Pictures of all clips in order."""

    vectors: Vectors
    """float32 [n, d], unit length."""
    questions: Vectors
    """The same pictures changed: float32 [n, d], unit length."""
    moments: npt.NDArray[np.int64]
    """Number of the clip, [n]."""

    def right(self, kept: Sequence[int]) -> float:
        """Share of questions answered right from the kept vectors, mean over moments."""
        rows = list(kept)
        likeness = self.questions @ self.vectors[rows].T
        # A picture must not answer the question that was made from it.
        likeness[rows, np.arange(len(rows))] = -1.0
        answers = self.moments[rows][likeness.argmax(axis=1)]
        right = answers == self.moments
        return float(np.mean([right[self.moments == m].mean() for m in set(self.moments.tolist())]))


def _programme(cache_dir: Path, samples: Path) -> _Programme:
    session = open_session("openvino", network_source(cache_dir), OPTIONS)
    plain: list[Vectors] = []
    changed: list[Vectors] = []
    moments: list[int] = []
    for number, path in enumerate(sorted(samples.rglob("samples.zip"))):
        with SampleArchive(path) as archive:
            for name in archive.names:
                picture = archive.read(name)
                rows = np.stack([views(picture)[1], views(_changed(picture))[1]])
                features = session.run({"pixels": rows})["features"].astype(np.float32)
                plain.append(features[0])
                changed.append(features[1])
                moments.append(number)
    return _Programme(_unit(plain), _unit(changed), np.array(moments, np.int64))


def _changed(picture: Picture) -> Picture:
    height, width = picture.shape[:2]
    cut = picture[height // 8 : height - height // 16, width // 16 : width - width // 8]
    return np.ascontiguousarray(cut[:, ::-1] * _DARKER).astype(np.uint8)


def _unit(rows: list[Vectors]) -> Vectors:
    vectors = np.stack(rows)
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    units: Vectors = (vectors / lengths).astype(np.float32)
    return units
