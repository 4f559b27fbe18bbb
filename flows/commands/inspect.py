"""inspect: the media engine alone, without any service."""

from pathlib import Path

from engines.contracts.media import Inspection
from engines.errors import RefusedError
from engines.media.inspect import inspect as inspect_file
from engines.media.inspect import refusal
from flows.clock import clock
from flows.commands.output import dump, say


def inspect(file: Path, *, as_json: bool) -> None:
    """Print what a file truly is; a refusal is a verdict, printed and then raised.

    Raises:
        UsageError: no such file.
        RefusedError: not media, or media that may not be opened.
    """
    try:
        found = inspect_file(file)
    except RefusedError as error:
        if as_json:
            dump(refusal(error))
        raise
    if as_json:
        dump(found)
    else:
        _print(found)


def _print(found: Inspection) -> None:
    media, video, audio = found.media, found.video, found.audio
    assert media is not None, "only a refusal has no media, and a refusal was raised"
    length = "unknown length" if media.duration_s is None else f"{media.duration_s:.3f} s"
    say(f"{media.kind} in {media.container}: {length} from {clock(media.start_s)}, {found.verdict}")
    if video:
        turned = f", turned {video.rotation_deg} degrees" if video.rotation_deg else ""
        say(
            f"picture {video.stream_index}: {video.codec} {video.width}x{video.height}{turned}, "
            f"{video.frames_decoded} frames ({video.frames_declared} declared)"
            + (", variable rate" if video.variable_rate else "")
            + (f", {video.hdr}" if video.hdr else "")
        )
    if audio:
        say(
            f"sound {audio.stream_index}: {audio.codec} {audio.sample_rate_hz} Hz, "
            f"{audio.channels} channels, {audio.duration_s} s from {audio.start_s:.3f} s"
        )
    for number, shot in enumerate(found.shots):
        say(
            f"shot {number}: {clock(shot.start_s)} - {clock(shot.end_s)}, "
            f"frames [{shot.start_frame}, {shot.end_frame})"
        )
    for problem in found.problems:
        where = "" if problem.start_s is None else f" at {clock(problem.start_s)}"
        say(f"problem {problem.code}{where}: {problem.message}")
