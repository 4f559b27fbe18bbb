"""Everything the media engine says about one file, from inside a child that can be killed."""

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from engines.contracts.media import (
    InspectedShot,
    InspectedVideo,
    Inspection,
    Problem,
    SampleDocument,
    SampleParams,
    Shot,
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
_LOOK_WORTH_S: Final = 8.0
"""With less time left than this the second look is not begun."""
_WINDOW_S: Final = 6.0
"""Kept free of the second look's time, for a stretch in hand on a busy machine."""


def inspect(path: Path) -> Inspection:
    """Probe, decode and cut ``path`` in a child with limits on time and memory.

    The second look at doubtful changes may take whatever time is left; where it is not done by
    then, what the signals alone say stands, and a problem says so.

    Raises:
        RefusedError: one of its kinds; also where the child had to be killed or died, since a
            file that does that once will do it again.
        UsageError: there is no such file.
    """
    ends_at = time.monotonic() + KILL_AFTER_S
    with (
        tempfile.TemporaryDirectory(prefix="reelgraph-inspect-") as name,
        ChildPool(workers=1, memory_bytes=MEMORY_BYTES) as pool,
    ):
        folder = Path(name)
        try:
            document = pool.run(KILL_AFTER_S, _decode, path, folder, DECODE_BUDGET_S)
            left_s = max(1.0, ends_at - time.monotonic())
            shots, degraded = pool.run(left_s, _look, document, folder, 0.0)
        except StageTimeoutError as error:
            msg = f"the file was not read within {KILL_AFTER_S:g} s and was given up"
            raise LimitExceededError(msg) from error
        except StageCrashedError as error:
            msg = f"reading the file ended its process ({error})"
            raise LimitExceededError(msg) from error
        left_s = ends_at - time.monotonic()
        if degraded and left_s > _LOOK_WORTH_S:
            with suppress(StageTimeoutError, StageCrashedError):
                shots, degraded = pool.run(left_s, _look, document, folder, left_s - _WINDOW_S)
    return _inspection(document, shots, degraded)


def inspect_here(
    path: Path, budget_s: float = DECODE_BUDGET_S, *, second_look: bool = True
) -> Inspection:
    """The same in this process, without the protection of a child.

    Args:
        path: a local file.
        budget_s: seconds after which decoding stops; the rest is reported as not seen.
        second_look: let TransNetV2 judge doubtful changes.
    """
    with tempfile.TemporaryDirectory(prefix="reelgraph-inspect-") as name:
        folder = Path(name)
        document = _decode(path, folder, budget_s)
        shots, degraded = _look(document, folder, None if second_look else 0.0)
    return _inspection(document, shots, degraded if second_look else ())


def _decode(path: Path, folder: Path, budget_s: float) -> SampleDocument:
    # The parent only waits: decoders are loaded by the child that runs this.
    from engines.media.probe import probe
    from engines.media.sample import decode

    limits = MediaLimits(decode_budget_s=budget_s)
    # One picture is enough here: only counts, times and shots are shown.
    params = SampleParams(budget=2, long_edge=64)
    return decode(path, probe(path, limits), params, folder, limits)


def _look(
    document: SampleDocument, folder: Path, stop_after_s: float | None
) -> tuple[list[Shot], tuple[str, ...]]:
    from engines.media.shots import find_shots

    if document.video is None:
        return [], ()
    return find_shots(document, folder, ShotParams(), stop_after_s=stop_after_s)


def _inspection(
    document: SampleDocument, shots: list[Shot], degraded: tuple[str, ...]
) -> Inspection:
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
            for s in shots
        ),
        problems=(
            *document.problems,
            *(Problem(code="degraded", message=message) for message in degraded),
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
