"""What mining a corpus costs, and how that grows.

A thousand made videos with known edges are mined as the pipeline does it: a part of each video in
two processes, then the pooling. Beside it the same counts done pair by pair, and the growth with
videos, events and types, as a plot.
"""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from engines.causal.candidates import make_bands
from engines.causal.corpus import PartFile, mine_corpus, mine_parts, video_part
from engines.causal.null import draw_null
from engines.causal.series import EventTable, Floats, VideoEvents, build_table, draw_shifts
from engines.causal.series import shift_times as shifted
from engines.contracts.causal import CausesDocument, Event, MinerParams, PartParams
from engines.contracts.time import TimeSpan
from flows.bench import BenchReport, BenchRow
from flows.bench.causal_speed_plot import Curve, growth_plot
from tasks.settings import get_settings

CORES = 2
LIMIT_S = 600.0
PARAMS = MinerParams()
VIDEO_S = 300.0
GROUP = 4
"""Of four types the first brings the second, the second the third; the fourth is alone."""
LAGS_S = (0.5, 0.9)
JITTER_S = 0.05
NAIVE_VIDEOS, NAIVE_TYPES, NAIVE_COPIES = 12, 8, 100
GROWTH: dict[str, tuple[int, ...]] = {
    "videos": (40, 80, 160, 320),
    "types": (10, 20, 40, 80),
    "events per video": (50, 100, 200, 400),
}


@dataclass(frozen=True)
class Size:
    """How large a corpus is."""

    videos: int = 40
    events: int = 200
    types: int = 40


def made_video(number: int, size: Size) -> VideoEvents:
    """One video of a corpus, by its number."""
    rng = np.random.default_rng([number, size.events, size.types, 9])
    per_type = max(1, size.events // size.types)
    events = []
    for first in range(0, size.types, GROUP):
        times = rng.uniform(0.0, VIDEO_S, per_type)
        for place in range(min(GROUP, size.types - first)):
            if place == GROUP - 1:
                times = rng.uniform(0.0, VIDEO_S, per_type)
            elif place:
                times = times + LAGS_S[place - 1] + JITTER_S * rng.normal(size=per_type)
            events += [_event(t, first + place) for t in times if 0.0 <= t < VIDEO_S]
    return VideoEvents(f"{number:06d}", events, [(0.0, VIDEO_S)])


def _event(at_s: float, kind: int) -> Event:
    return Event(
        span=TimeSpan.from_seconds(at_s, at_s, rate_hz=90_000),
        type=f"motion:t{kind:03d}",
        subject=None,
        description="",
        source="motion",
        evidence=(),
    )


def true_pairs(types: int) -> frozenset[tuple[str, str]]:
    """The edges that the made videos have."""
    return frozenset(
        (f"motion:t{i:03d}", f"motion:t{i + 1:03d}")
        for i in range(types - 1)
        if i % GROUP < GROUP - 2
    )


def _write_part(number: int, size: Size, folder: Path) -> float:
    """Make one part; CPU seconds without the making of the video."""
    video = made_video(number, size)
    begun = time.process_time()
    video_part(video, PartParams.of(PARAMS)).write(folder / video.video)
    return time.process_time() - begun


def _files(folder: Path) -> list[PartFile]:
    return [PartFile(path.name, path) for path in sorted(folder.iterdir())]


def _timed(work: Callable[[], CausesDocument]) -> tuple[CausesDocument, float, float]:
    wall, cpu = time.monotonic(), time.process_time()
    document = work()
    return document, time.monotonic() - wall, time.process_time() - cpu


def f1_of(document: CausesDocument, types: int) -> float:
    """Edges found against edges there are."""
    truth = true_pairs(types)
    found = {(e.cause_type, e.effect_type) for e in document.edges if e.verdict == "causal"}
    return 2 * len(found & truth) / max(1, len(found) + len(truth))


def whole_corpus(size: Size, pool: ProcessPoolExecutor) -> list[BenchRow]:
    """Mine it, and say what one video more costs: its part, and the pooling again."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        begun = time.monotonic()
        write = partial(_write_part, size=size, folder=folder)
        parts_cpu = sum(pool.map(write, range(size.videos), chunksize=8))
        stored = sum(path.stat().st_size for path in folder.iterdir())
        document, pooled, pooled_cpu = _timed(lambda: mine_parts(_files(folder), PARAMS))
        seconds = time.monotonic() - begun
        one = _write_part(size.videos, size, folder)
    cpu = parts_cpu + pooled_cpu
    return [
        BenchRow(
            name=f"{size.videos} videos x {size.events} events x {size.types} types",
            figures={
                "seconds": round(seconds, 1),
                "cpu_seconds": round(cpu, 1),
                "seconds_of_pooling": round(pooled, 1),
                "f1": round(f1_of(document, size.types), 4),
                "placebo_rate": document.placebo_rate,
                "stored_bytes_per_video": stored // size.videos,
            },
            must=f"seconds <= {LIMIT_S:g}",
            holds=seconds <= LIMIT_S,
        ),
        BenchRow(
            name="one video more",
            figures={
                "cpu_seconds_of_its_part": round(one, 3),
                "cpu_seconds_of_pooling": round(pooled_cpu, 1),
                "share_of_all_anew": round((one + pooled_cpu) / cpu, 3),
            },
            must=None,
            holds=None,
        ),
    ]


def naive_counts(tables: list[EventTable], shifts: list[Floats], bins: int) -> Floats:
    """The counts of all shifted copies, pair by pair: float64 [videos, copies, k, k, bins]."""
    edges = np.linspace(0.0, PARAMS.max_lag_s, bins + 1)
    copies, k = shifts[0].shape[0], tables[0].num_types
    counts = np.zeros((len(tables), copies, k, k, bins))
    for v, table in enumerate(tables):
        for copy in range(copies):
            moved = shifted(table, shifts[v][copy])
            for cause in range(k):
                for effect in range(k):
                    gaps = (
                        table.of_type(effect)[None, :] - moved[table.kind == cause][:, None]
                    ).ravel()
                    counts[v, copy, cause, effect] = np.histogram(gaps[gaps > 0.011], edges)[0]
    return counts


def naive_row() -> BenchRow:
    """The plain way on a small corpus, and the same counts by ours."""
    size = Size(NAIVE_VIDEOS, 200, NAIVE_TYPES)
    bands = make_bands(PARAMS.max_lag_s, PARAMS.lag_bins)
    tables = [build_table([made_video(i, size)], gap_s=0.0) for i in range(size.videos)]
    shifts = [
        draw_shifts(t, NAIVE_COPIES, PARAMS.max_lag_s, np.random.default_rng(i))
        for i, t in enumerate(tables)
    ]
    begun = time.process_time()
    plain = naive_counts(tables, shifts, PARAMS.lag_bins)
    naive_s = time.process_time() - begun
    begun = time.process_time()
    ours = [
        draw_null(t, bands, permutations=NAIVE_COPIES, rng=np.random.default_rng(i))
        for i, t in enumerate(tables)
    ]
    ours_s = time.process_time() - begun
    off = 0.0
    for v, null in enumerate(ours):
        dense = np.zeros(plain[v].size)
        dense[null.cell] = null.count
        # Lags on the border of two bins may fall to either side.
        off += float(np.abs(dense.reshape(plain[v].shape) - plain[v]).sum())
    return BenchRow(
        name=f"pair by pair, {size.videos} videos x {size.types} types x {NAIVE_COPIES} copies",
        figures={
            "cpu_seconds": round(naive_s, 2),
            "ours_cpu_seconds": round(ours_s, 3),
            "times_faster": round(naive_s / max(ours_s, 1e-3), 1),
            "share_of_counts_that_differ": round(off / float(plain.sum()), 6),
        },
        must=None,
        holds=None,
    )


def cost_of(size: Size) -> float:
    """CPU seconds of mining a corpus of this size, in one process."""
    videos = [made_video(i, size) for i in range(size.videos)]
    begun = time.process_time()
    mine_corpus(videos, PARAMS)
    return time.process_time() - begun


def _size(axis: str, value: int) -> Size:
    match axis:
        case "videos":
            return Size(videos=value)
        case "types":
            return Size(types=value)
        case _:
            return Size(events=value)


def growth(pool: ProcessPoolExecutor) -> tuple[list[BenchRow], list[Curve]]:
    """Cost along each axis with the others fixed, and the power of its growth."""
    asked = [(axis, value) for axis, values in GROWTH.items() for value in values]
    costs = dict(zip(asked, pool.map(cost_of, [_size(*a) for a in asked]), strict=True))
    rows, curves = [], []
    for axis, values in GROWTH.items():
        seconds = [costs[axis, value] for value in values]
        power = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
        curves.append(Curve(axis, values, tuple(seconds), power))
        figures: dict[str, float | int | str | None] = {
            f"cpu_seconds_at_{value}": round(s, 2) for value, s in zip(values, seconds, strict=True)
        }
        rows.append(
            BenchRow(
                name=f"growth with {axis}",
                figures={**figures, "power": round(power, 2)},
                must=None,
                holds=None,
            )
        )
    return rows, curves


def run(*, num_videos: int = 1000) -> BenchReport:
    """Mine a corpus of ``num_videos`` videos, and measure how the cost grows.

    The plot is written to ``bench/causal-speed.svg`` in the home directory.
    """
    context = get_context("spawn")
    with ProcessPoolExecutor(CORES, mp_context=context) as pool:
        rows = whole_corpus(Size(videos=num_videos), pool)
        rows.append(naive_row())
        grown, curves = growth(pool)
    plot = get_settings().home / "bench" / "causal-speed.svg"
    plot.parent.mkdir(parents=True, exist_ok=True)
    plot.write_text(growth_plot(curves), encoding="utf-8")
    grown[0] = grown[0].model_copy(update={"figures": {**grown[0].figures, "plot": str(plot)}})
    return BenchReport(rows=(*rows, *grown))
