"""What went wrong with a decoded file, told from the pass, the header and the structure."""

from typing import Final

from engines.contracts.media import MediaProbe, Problem
from engines.media.onepass import OnePass
from engines.media.sound import RATE_HZ
from engines.media.structure import Structure

PARTIAL: Final = frozenset(
    {
        "damaged",
        "encrypted_parts",
        "encrypted_track",
        "gap_shortened",
        "no_picture",
        "no_sound",
        "stopped",
        "truncated",
        "unread",
        "unrecognised_start",
    }
)
"""Codes of the problems that leave something out."""
_END_TOLERANCE_S: Final = 0.5
_END_TOLERANCE_SHARE: Final = 0.05
_SOUND_TOLERANCE_S: Final = 0.1
_UNREAD_SHARE: Final = 0.1
_COUNTING: Final = ("iso", "riff")
"""Kinds whose headers count the pictures that the writer knew of."""
_MAX_NAMED_SPANS: Final = 50


def problems_of(
    one: OnePass, probe: MediaProbe, structure: Structure, end_s: float
) -> list[Problem]:
    """All problems of a finished pass; their codes say whether something is left out (``PARTIAL``).

    Args:
        one: the finished pass.
        probe: what was known before it.
        structure: what the container's own structure says.
        end_s: end of the last frame of any stream, on the asset clock.
    """
    return [
        *(p for p in probe.problems if p.code != "truncated"),
        *_cut_off(one, probe, structure, end_s),
        *_damage(one),
        *_stopped(one, end_s),
        *_silent_streams(one, probe),
        *_repaired_times(one),
        *_misplaced_sound(one),
        *_other_length(one, probe, structure, end_s),
    ]


def _cut_off(one: OnePass, probe: MediaProbe, structure: Structure, end_s: float) -> list[Problem]:
    if not structure.truncated or (structure.kind in _COUNTING and _all_there(one, probe)):
        return []
    return [Problem(code="truncated", message=structure.truncated, start_s=end_s)]


def _all_there(one: OnePass, probe: MediaProbe) -> bool:
    """Whether as much decoded as the header counts: then the missing tail held nothing of it."""
    declared = probe.video.frames_declared if probe.video else None
    if declared is None or one.num_frames < declared or one.damage.packets:
        return False
    sound_s = one.sound_declared_s
    return sound_s is None or one.sound.decoded_s >= sound_s - _SOUND_TOLERANCE_S


def _damage(one: OnePass) -> list[Problem]:
    damage = one.damage
    if not damage.packets:
        return []
    message = f"{damage.packets} damaged packets in the whole file"
    if not damage.spans:
        return [Problem(code="damaged", message=message)]
    return [
        Problem(code="damaged", message=message, start_s=start, end_s=end)
        for start, end in damage.spans[:_MAX_NAMED_SPANS]
    ]


def _stopped(one: OnePass, end_s: float) -> list[Problem]:
    stopped = one.damage.stopped
    return [Problem(code="stopped", message=stopped, start_s=end_s)] if stopped else []


def _silent_streams(one: OnePass, probe: MediaProbe) -> list[Problem]:
    """Chosen streams of which nothing decoded; one without any data is merely empty."""
    found = []
    if probe.video is not None and one.num_frames == 0:
        seen = probe.video.stream_index in one.seen_streams
        code = "no_picture" if seen or probe.video.frames_declared else "empty_stream"
        found.append(Problem(code=code, message="not one picture decodes"))
    if probe.audio is not None and one.sound.start is None:
        seen = probe.audio.stream_index in one.seen_streams
        code = "no_sound" if seen else "empty_stream"
        found.append(Problem(code=code, message="not one sample of sound decodes"))
    return found


def _repaired_times(one: OnePass) -> list[Problem]:
    clock = one.video_clock
    steps_back = max(clock.epoch, one.audio_clock.epoch)
    if not clock.repaired and not steps_back:
        return []
    message = f"{clock.repaired} frame times did not rise, {steps_back} steps back of the clock"
    return [Problem(code="times_repaired", message=message)]


def _misplaced_sound(one: OnePass) -> list[Problem]:
    """Sound that could not all stand where its times say."""
    found = []
    sound = one.sound
    if sound.overlapped:
        message = f"{sound.overlapped / RATE_HZ:.3f} s of sound overlap what came before: left out"
        found.append(Problem(code="sound_overlaps", message=message))
    if sound.shortened_s:
        message = (
            f"a gap in the sound is kept {sound.shortened_s:.0f} s shorter than its times say; "
            "what follows it is early by as much"
        )
        found.append(Problem(code="gap_shortened", message=message))
    return found


def _other_length(
    one: OnePass, probe: MediaProbe, structure: Structure, end_s: float
) -> list[Problem]:
    declared, found_s = probe.media.declared_duration_s, end_s - one.start_s
    tolerance_s = max(_END_TOLERANCE_S, _END_TOLERANCE_SHARE * found_s)
    if declared is None or abs(declared - found_s) <= tolerance_s:
        return []
    message = f"the header says {declared:.3f} s, {found_s:.3f} s decode"
    problems = [Problem(code="duration_differs", message=message)]
    if declared > found_s and not one.damage.stopped:
        problems += _unread(one, probe, structure, end_s)
    return problems


def _unread(one: OnePass, probe: MediaProbe, structure: Structure, end_s: float) -> list[Problem]:
    """Bytes behind the place where a demuxer lost its way.

    Only where the header promises more than came; an MP4 file has an index, and lists what it
    promises. Streams that were not chosen may lie behind the others and are not read.
    """
    chosen = (probe.video is not None) + (probe.audio is not None)
    if structure.kind == "iso" or structure.truncated or probe.num_streams > chosen:
        return []
    if one.read_to is None:
        return []
    left = structure.size_bytes - one.read_to
    if left < _UNREAD_SHARE * structure.size_bytes:
        return []
    message = f"{left} bytes behind the last packet were not understood"
    return [Problem(code="unread", message=message, start_s=end_s)]
