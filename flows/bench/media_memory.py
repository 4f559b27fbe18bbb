"""A file of two hours: resident memory of the worker, sampled while it decodes.

The worker is an interpreter of its own, not a child of ``multiprocessing``: that loads the parent's
main program too (the command line, or pytest), nine megabytes which are not the worker's. It does
load this module, so the parent's imports stand where they are used.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from flows.bench import BenchRow

HOURS_S: Final = 7200
RSS_MUST_MB: Final = 120
GROWTH_MUST_MB: Final = 5
_CLIP_S: Final = 60
_SETTLED_SHARE: Final = 0.1
_MB: Final = 2**20
_WORKER: Final = "import sys; from flows.bench.media_memory import work; work(*sys.argv[1:])"


def work(path: str, folder: str) -> None:
    """One worker: decode the whole file with the default parameters into a folder."""
    from engines.contracts.media import SampleParams
    from engines.media.probe import probe
    from engines.media.sample import decode

    decode(Path(path), probe(Path(path)), SampleParams(threads=1), Path(folder))


def _watch(process: subprocess.Popen[bytes]) -> list[float]:
    """Resident MB of a process every tenth of a second until it ends."""
    import psutil

    seen: list[float] = []
    worker = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            seen.append(worker.memory_info().rss / _MB)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.1)
    process.wait()
    return seen


def memory_rows(folder: Path) -> Iterator[BenchRow]:
    """Decode two hours (small pictures, ten a second, with sound) and watch the worker.

    Matroska is read as it comes; an MP4 demuxer holds the whole sample table, here for 380,000
    packets, from the first frame to the last.
    """
    from flows.bench.media_clips import repeat_clip, write_clip

    clip = write_clip(folder / "minute.mp4", "libx264", (128, 72), _CLIP_S, rate=10)
    for suffix in ("mkv", "mp4"):
        path = repeat_clip(clip, folder / f"hours.{suffix}", HOURS_S // _CLIP_S)
        yield memory_row(path, folder)
        path.unlink()


def memory_row(path: Path, folder: Path) -> BenchRow:
    """Decode one file of two hours in a process of its own, and judge its resident memory.

    Growth is everything above the level of the twelfth minute (a tenth of the time that the
    decode takes), so that a peak at the end, where the blobs are written, counts too.
    """
    with tempfile.TemporaryDirectory(dir=folder) as name:
        start = time.monotonic()
        command = [sys.executable, "-c", _WORKER, str(path), name]
        process = subprocess.Popen(command)  # noqa: S603 (our own code, no shell)
        seen = _watch(process)
        spent_s = time.monotonic() - start
    settled = max(1, int(len(seen) * _SETTLED_SHARE))
    peak = max(seen, default=0.0)
    growth = max(seen[settled:], default=0.0) - max(seen[settled // 2 : settled], default=0.0)
    return BenchRow(
        name=f"two hours ({path.suffix[1:]}): resident memory of the worker",
        figures={
            "peak_mb": round(peak, 1),
            "growth_mb": round(growth, 1),
            "seconds": round(spent_s, 1),
            "material_s": HOURS_S,
            "exit_code": process.returncode,
        },
        must=f"<= {RSS_MUST_MB} MB and < {GROWTH_MUST_MB} MB growth",
        holds=process.returncode == 0 and growth < GROWTH_MUST_MB and peak <= RSS_MUST_MB,
    )
