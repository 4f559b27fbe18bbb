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


def memory_row(folder: Path) -> BenchRow:
    """Decode two hours (small pictures, ten a second, with sound) and watch the worker."""
    clip = write_clip(folder / "minute.mp4", "libx264", (128, 72), _CLIP_S, rate=10)
    path = repeat_clip(clip, folder / "hours.mp4", HOURS_S // _CLIP_S)
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
    ok = process.exitcode == 0
    return BenchRow(
        name="two hours: resident memory of the worker",
        figures={
            "peak_mb": round(peak, 1),
            "growth_mb": round(growth, 1),
            "seconds": round(spent_s, 1),
            "material_s": HOURS_S,
            "exit_code": process.exitcode,
        },
        must=f"<= {RSS_MUST_MB} MB and < {GROWTH_MUST_MB} MB growth",
        holds=ok and peak <= RSS_MUST_MB and growth < GROWTH_MUST_MB,
    )
