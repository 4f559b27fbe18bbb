"""overhead: what orchestration, database and store cost beyond the engines, on a warm stack."""

import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from engines.errors import ReelgraphError, UsageError
from flows.bench import BenchReport, BenchRow
from tasks.resources import get_resources
from tasks.settings import CHECKOUT
from tasks.store import runs

CLIP = CHECKOUT / "tests" / "data" / "clips" / "talk.mp4"
"""12 s of picture and speech."""
MUST_S = 5.0
REPEATS = 3

_OUTCOMES: TypeAdapter[list[dict[str, object]]] = TypeAdapter(list[dict[str, object]])


def run(clip: Path = CLIP) -> BenchReport:
    """Process a clip that was never seen, then the same again, several times.

    Overhead is the wall time of the command less the time in which some engine computed. The
    limit is a run in which nothing is computed.

    Raises:
        UsageError: the clip is not there.
        ReelgraphError: a run failed.
    """
    if not clip.is_file():
        msg = f"no clip at {clip}"
        raise UsageError(msg)
    fresh, again = [], []
    with tempfile.TemporaryDirectory() as folder:
        _process(_never_seen(clip, Path(folder), 0))  # the first loads and converts models
        for number in range(1, REPEATS + 1):
            copy = _never_seen(clip, Path(folder), number)
            fresh.append(_process(copy))
            again.append(_process(copy))
    wall, engines = (_median([pair[i] for pair in fresh]) for i in (0, 1))
    overhead = _median([pair[0] - pair[1] for pair in fresh])
    cached = _median([pair[0] for pair in again])
    return BenchReport(
        rows=(
            BenchRow(
                name="beyond the engines",
                figures={"overhead_s": overhead, "wall_s": wall, "engines_s": engines},
                must=f"overhead_s <= {MUST_S:g}",
                holds=overhead <= MUST_S,
            ),
            BenchRow(
                name="the same again (limit)",
                figures={"wall_s": cached},
                must=None,
                holds=None,
            ),
        )
    )


def _never_seen(clip: Path, folder: Path, number: int) -> Path:
    """A copy with other bytes and the same picture and sound: a box at its end that holds noise."""
    copy = folder / f"{number}-{clip.name}"
    shutil.copy(clip, copy)
    with copy.open("ab") as out:
        out.write((24).to_bytes(4, "big") + b"free" + secrets.token_bytes(16))
    return copy


def _process(clip: Path) -> tuple[float, float]:
    """Wall seconds of ``reelgraph run`` and the seconds in which engines computed for it."""
    command = [str(Path(sys.executable).with_name("reelgraph")), "run", "--json", str(clip)]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    wall = time.monotonic() - started
    try:
        outcome = _OUTCOMES.validate_json(done.stdout)[0]
        progress = runs.run_progress(get_resources().db, UUID(str(outcome["run_id"])))
    except (ValidationError, ValueError, IndexError) as error:
        msg = f"the run failed: {done.stderr.strip()[-300:]}"
        raise ReelgraphError(msg) from error
    spans = sorted(
        (stage.finished_at.timestamp() - stage.seconds, stage.finished_at.timestamp())
        for stage in progress.stages
        if stage.status == "done" and stage.engine and stage.seconds and stage.finished_at
    )
    return wall, _union(spans)


def _union(spans: list[tuple[float, float]]) -> float:
    """Length of the union of intervals that are sorted by their start."""
    total, reached = 0.0, float("-inf")
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
