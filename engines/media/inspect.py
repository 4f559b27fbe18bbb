"""Everything the media engine says about one file, from inside a child that can be killed."""

import tempfile
import time
from pathlib import Path
from typing import Final

from engines.contracts.media import (
    InspectedShot,
    InspectedVideo,
    Inspection,
    Problem,
    SampleParams,
    ShotParams,
    VideoStream,
)
from engines.errors import (
    LimitExceededError,
    RefusedError,
    StageCrashedError,
    StageTimeoutError,
)
from engines.media.limits import MediaLimits
from engines.runtime.child import ChildPool

MEMORY_BYTES: Final = 6 * 2**30
"""Address space of the child; an allocation beyond it fails in the child alone."""
DECODE_BUDGET_S: Final = 44.0
KILL_AFTER_S: Final = 59.0
_LOAD_S: Final = 12.0
"""Kept free for loading the network and for the rest."""
_WINDOW_S: Final = 2.5
"""What one window of the second look takes on a slow machine."""


def inspect(path: Path) -> Inspection:
    """Probe, decode and cut ``path`` in a child with limits on time and memory.

    Raises:
        RefusedError: one of its kinds; also where the child had to be killed or died, since a
            file that does that once will do it again.
        UsageError: there is no such file.
    """
    with ChildPool(workers=1, memory_bytes=MEMORY_BYTES) as pool:
        try:
            return pool.run(KILL_AFTER_S, inspect_here, path)
        except StageTimeoutError as error:
            msg = f"the file was not read within {KILL_AFTER_S:g} s and was given up"
            raise LimitExceededError(msg) from error
        except StageCrashedError as error:
            msg = f"reading the file ended its process ({error})"
            raise LimitExceededError(msg) from error


def inspect_here(
    path: Path, budget_s: float = DECODE_BUDGET_S, *, second_look: bool = True
) -> Inspection:
    """The same in this process, without the protection of a child.

    Args:
        path: a local file.
        budget_s: seconds after which decoding stops; the rest is reported as not seen.
        second_look: let TransNetV2 judge doubtful changes, if there is time left for it.
    """
    # The parent only waits: decoders are loaded by the child that runs this.
    from engines.media.probe import probe
    from engines.media.sample import decode
    from engines.media.shots import detect

    started = time.monotonic()
    limits = MediaLimits(decode_budget_s=budget_s)
    probed = probe(path, limits)
    with tempfile.TemporaryDirectory(prefix="reelgraph-inspect-") as name:
        directory = Path(name)
        # One picture is enough here: only counts, times and shots are shown.
        document = decode(path, probed, SampleParams(budget=2, long_edge=64), directory, limits)
        left_s = KILL_AFTER_S - (time.monotonic() - started)
        windows = max(0, int((left_s - _LOAD_S) / _WINDOW_S)) if second_look else 0
        shots = detect(
            document, directory, ShotParams(second_look=windows > 0, max_windows=windows)
        )
    return Inspection(
        media=document.media,
        video=None if document.video is None else _printed(document.video),
        audio=document.audio,
        shots=tuple(
            InspectedShot(
                start_frame=s.start_frame,
                end_frame=s.end_frame,
                start_s=s.span.start_s,
                end_s=s.span.end_s,
            )
            for s in shots.shots
        ),
        problems=(
            *document.problems,
            *(Problem(code="degraded", message=message) for message in shots.degraded),
        ),
        verdict=document.verdict,
    )


def refusal(error: RefusedError) -> Inspection:
    """What to print for a file that was refused: no media, and the reason as its problem."""
    return Inspection(
        media=None,
        video=None,
        audio=None,
        shots=(),
        problems=(Problem(code=error.code, message=str(error)),),
        verdict="refused",
    )


def _printed(video: VideoStream) -> InspectedVideo:
    base = f"{video.time_base_num}/{video.time_base_den}"
    return InspectedVideo(**video.model_dump(), time_base=base)
