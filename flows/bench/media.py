"""The media engine beside the plain ways of doing the same, in one process.

The limit of the ratios is a decode of every frame that throws the pictures away, with the
library's automatic threading: what ``ffmpeg -f null`` does. Where an ``ffmpeg`` program is on the
PATH it is measured in the same rounds and shown. Figures are ratios of CPU seconds (this process
and its children): decoding and shots take short turns with the limit (``side_by_side``), the
others run whole, one after the other.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from engines.contracts.media import SampleParams, ShotParams
from engines.media.probe import probe
from engines.media.sample import decode
from engines.media.shots import detect
from flows.bench import BenchReport, BenchRow
from flows.bench import media_ways as ways
from flows.bench.media_clips import repeat_clip, write_clip
from flows.bench.media_memory import memory_rows
from flows.bench.media_shots import shot_rows
from flows.bench.rows import Rows
from flows.bench.side_by_side import cpu_s, ratios

_SIZE: Final = (1280, 720)
_SECONDS: Final = 10
_MIDDLE: Final = 3
_MINUTES: Final = 9
_LONG: Final = 7
_CODECS: Final = ("libx264", "libx265")
_ROUNDS: Final = 4
_CLOSE_ROUNDS: Final = 5
"""For the rows whose mark is near, which run side by side with the limit."""
_LONG_ROUNDS: Final = 2
_PLAIN_ROUNDS: Final = 2
_JUDGED: Final = ("limit", "ours")


def run_media_bench(*, corpus: Path | None = None, rounds: int = _ROUNDS) -> BenchReport:
    """Measure everything; a few minutes.

    Args:
        corpus: the shared corpus, for real takes in the shot set; drawn ones alone without it.
        rounds: measurements of each way.
    """
    with tempfile.TemporaryDirectory(prefix="reelgraph-bench-") as name:
        folder = Path(name)
        rows = Rows()
        for codec in _CODECS:
            rows.add(_speed_rows(folder, codec, rounds))
        rows.add(shot_rows(corpus, folder, videos=16, takes=19))
        rows.add(memory_rows(folder))
    return BenchReport(rows=tuple(rows.all))


def run(corpus: Path | None = None) -> BenchReport:
    """All rows of ``bench media``."""
    return run_media_bench(corpus=corpus)


def _take_turns(named: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Least CPU seconds of each way over the rounds, as a ratio to the least of ``limit``.

    The least, since whatever else runs on the machine only ever adds to it. The plain ways, on
    which no verdict hangs, sit out the rounds after ``_PLAIN_ROUNDS``.
    """
    least = dict.fromkeys(named, float("inf"))
    for number in range(rounds):
        for name, way in named.items():
            if number >= _PLAIN_ROUNDS and name not in _JUDGED:
                continue
            start = cpu_s()
            way()
            least[name] = min(least[name], cpu_s() - start)
    return {name: seconds / least["limit"] for name, seconds in least.items()}


def _row(
    name: str,
    path: Path,
    named: dict[str, Callable[[], object]],
    must: float,
    rounds: int,
    **more: float | str | bool,
) -> BenchRow:
    """Measure the ways beside the limit; ``ours`` must stay below ``must``."""
    named = {"limit": partial(ways.limit_decode, path), **named}
    if ways.ffmpeg_program() is not None:
        named["ffmpeg_null"] = partial(ways.ffmpeg_decode, path)
    found = _take_turns(named, rounds)
    exact = bool(more.get("exact", True))
    return BenchRow(
        name=name,
        figures={**{k: round(v, 3) for k, v in found.items()}, **more},
        must=f"ours <= {must:g} of the limit" + (", exact" if "exact" in more else ""),
        holds=found["ours"] <= must and exact,
    )


def _speed_rows(folder: Path, codec: str, rounds: int) -> Iterator[BenchRow]:
    short = write_clip(folder / f"{codec}.mp4", codec, _SIZE, _SECONDS)
    long = repeat_clip(short, folder / f"{codec}_long.mp4", _LONG)
    if codec == _CODECS[0]:
        # Long enough that opening the file does not count.
        middle = repeat_clip(short, folder / "middle.mp4", _MIDDLE, sound=False)
        yield from _decode_rows(middle, rounds)
        minutes = repeat_clip(short, folder / "minutes.mp4", _MINUTES, sound=False)
        yield from _shot_speed_rows(minutes)
    yield from _sampling_rows(codec.removeprefix("lib"), short, long, rounds)


def _decode_rows(path: Path, rounds: int) -> Iterator[BenchRow]:
    yield _close_row(
        "decode every frame",
        path,
        "naive",
        partial(ways.naive_decode, path),
        partial(ways.engine_decode, path),
        1.05,
        threads=0,
    )
    yield _row(
        "every frame as RGB",
        path,
        {"naive": partial(ways.naive_rgb, path), "ours": partial(ways.engine_rgb, path)},
        1.35,
        rounds,
    )


def _sampling_rows(codec: str, short: Path, long: Path, rounds: int) -> Iterator[BenchRow]:
    for step_s, must, path in ((1.0, 0.65, short), (10.0, 0.25, long), (30.0, 0.12, long)):
        found = ways.indexed_samples(path, step_s)
        linear = ways.linear_samples(path, set(found))
        exact = set(found) == set(linear) and all(
            np.array_equal(found[p], linear[p]) for p in found
        )
        yield _row(
            f"one sample each {step_s:g} s at {ways.SMALL}, {codec}",
            path,
            {
                "naive": partial(ways.naive_samples, path, step_s),
                "ours": partial(ways.indexed_samples, path, step_s),
            },
            must,
            min(_LONG_ROUNDS, rounds) if path is long else rounds,
            samples=len(found),
            exact=exact,
        )


def _one_pass(path: Path, folder: Path) -> None:
    params = SampleParams(step_s=1.0, fixed=True, long_edge=ways.SMALL, threads=1)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        out = Path(name)
        document = decode(path, probe(path), params, out)
        detect(document, out, ShotParams(second_look=False))


def _two_passes(path: Path) -> None:
    ways.scenedetect_starts(path, "content")
    ways.naive_samples(path, 1.0)


def _shot_speed_rows(path: Path) -> Iterator[BenchRow]:
    # One decoder thread each, as where every core has a worker of its own: with more, the work
    # beside the decoding competes with the decoder's threads and the ratio means little.
    yield _close_row(
        "shots and samples in one pass",
        path,
        "naive_two_passes",
        partial(_two_passes, path),
        partial(_one_pass, path, path.parent),
        1.25,
    )
    yield _close_row(
        "shot detection alone",
        path,
        "pyscenedetect_content",
        partial(ways.scenedetect_starts, path, "content"),
        partial(ways.engine_signals, path),
        1.20,
    )


def _close_row(
    name: str,
    path: Path,
    naive_name: str,
    naive: Callable[[], object],
    ours: Callable[[], object],
    must: float,
    *,
    threads: int = 1,
) -> BenchRow:
    """A row whose mark is near: the median of rounds side by side with the limit."""
    limit = partial(ways.limit_decode, path, threads)
    found = ratios(limit, ours, _CLOSE_ROUNDS)
    return BenchRow(
        name=name,
        figures={
            naive_name: round(median(ratios(limit, naive, 1)), 3),
            "ours": round(median(found), 3),
            "ours_least": round(min(found), 3),
            "ours_most": round(max(found), 3),
        },
        must=f"ours <= {must:g} of the limit",
        holds=median(found) <= must,
    )
