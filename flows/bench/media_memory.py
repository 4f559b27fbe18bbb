"""A file of two hours: resident memory of the worker, sampled while it decodes."""

import multiprocessing
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import psutil

from flows.bench import BenchRow
from flows.bench.media_clips import repeat_clip, write_clip

HOURS_S: Final = 7200
RSS_MUST_MB: Final = 120
GROWTH_MUST_MB: Final = 5
_CLIP_S: Final = 60
_SETTLED_SHARE: Final = 0.1
_MB: Final = 2**20


def _work(path: Path, folder: Path) -> None:
    """One worker: decode the whole file with the default parameters."""
    from engines.contracts.media import SampleParams
    from engines.media.probe import probe
    from engines.media.sample import decode

    decode(path, probe(path), SampleParams(threads=1), folder)


def _watch(process: BaseProcess) -> list[float]:
    """Resident MB of a process every tenth of a second until it ends."""
    seen: list[float] = []
    worker = psutil.Process(process.pid)
    while process.is_alive():
        try:
            seen.append(worker.memory_info().rss / _MB)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.1)
    process.join()
    return seen


def memory_rows(folder: Path) -> list[BenchRow]:
    """Decode two hours (small pictures, ten a second, with sound) and watch the worker.

    Matroska is read as it comes. An MP4 demuxer holds the whole sample table, here 40 MB for
    half a million packets, from the first frame to the last: that is flat too, but no longer a
    matter of this engine, so the absolute bound is set on the first row alone.
    """
    clip = write_clip(folder / "minute.mp4", "libx264", (128, 72), _CLIP_S, rate=10)
    rows = []
    for suffix, bound_mb in (("mkv", RSS_MUST_MB), ("mp4", None)):
        path = repeat_clip(clip, folder / f"hours.{suffix}", HOURS_S // _CLIP_S)
        rows.append(_row(path, folder, bound_mb))
        path.unlink()
    return rows


def _row(path: Path, folder: Path, bound_mb: int | None) -> BenchRow:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(path, Path(name))
        )
        start = time.monotonic()
        process.start()
        seen = _watch(process)
        spent_s = time.monotonic() - start
    settled = seen[int(len(seen) * _SETTLED_SHARE) :]
    peak = max(settled, default=0.0)
    # The start of the settled part against its end: what grows with the length of the file.
    tenth = max(1, len(settled) // 10)
    growth = max(settled[-tenth:], default=0.0) - max(settled[:tenth], default=0.0)
    bound = f"<= {bound_mb} MB and " if bound_mb is not None else ""
    return BenchRow(
        name=f"two hours ({path.suffix[1:]}): resident memory of the worker",
        figures={
            "peak_mb": round(peak, 1),
            "growth_mb": round(growth, 1),
            "seconds": round(spent_s, 1),
            "material_s": HOURS_S,
            "exit_code": process.exitcode,
        },
        must=f"{bound}< {GROWTH_MUST_MB} MB growth",
        holds=process.exitcode == 0
        and growth < GROWTH_MUST_MB
        and (bound_mb is None or peak <= bound_mb),
    )
