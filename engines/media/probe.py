"""What a file truly is: its streams, clocks and limits, before it is decoded in full."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import av
from av.container import InputContainer
from av.stream import Stream as AvStream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream as AvVideoStream

from engines.contracts.base import Coverage
from engines.contracts.media import (
    AudioStream,
    MediaInfo,
    MediaKind,
    MediaProbe,
    Problem,
    SubtitleCue,
    VideoStream,
)
from engines.errors import EncryptedError, NothingDecodedError, UnsupportedCodecError
from engines.media.container import open_media
from engines.media.limits import STILL_DEMUXERS, MediaLimits
from engines.media.orientation import Orientation
from engines.media.pictures import has_known_matrix
from engines.media.streams import (
    audio_candidates,
    decoder_name,
    describe_audio,
    describe_video,
    is_cover_only,
    open_decoder,
    time_base_of,
    video_candidates,
    video_stream,
)
from engines.media.structure import Structure
from engines.media.subtitles import read_cues, text_tracks

_FIRST_PICTURE_PACKETS = 256
_MICROSECONDS = 1_000_000
_MATROSKA_KEY = "enc_key_id"
"""The demuxer's tag for the key of an encrypted Matroska track."""


def probe(path: Path, limits: MediaLimits = MediaLimits()) -> MediaProbe:  # noqa: B008 (frozen)
    """Read headers, the first picture and the text tracks.

    Args:
        path: a local file; its name is never interpreted.
        limits: bounds on what the file may ask for.

    Returns:
        The chosen streams as declared, with counts and times still unknown.

    Raises:
        RefusedError: one of its kinds: empty, not media, forbidden, encrypted, no decoder,
            over a limit, or without a single stream.
        UsageError: the file is not there or cannot be read.
    """
    survey = _survey(path, limits)
    problems = list(survey.problems)
    video, found = _first_that_decodes(path, survey, limits)
    problems += found
    cues, degraded = _cues(path, survey, limits)
    starts = [s.start_s for s in survey.sounds[:1]]
    if video is not None and survey.starts_s.get(video.stream_index) is not None:
        starts.append(survey.starts_s[video.stream_index])
    return MediaProbe(
        coverage=Coverage(covered_s=0.0, skipped_s=0.0, reason="headers and first picture"),
        degraded=degraded,
        media=MediaInfo(
            kind=survey.kind,
            container=survey.container,
            declared_duration_s=survey.declared_duration_s,
            duration_s=None,
            start_s=min(starts, default=0.0),
        ),
        video=video,
        audio=survey.sounds[0] if survey.sounds else None,
        subtitles=cues,
        num_streams=survey.num_streams,
        problems=tuple(problems),
    )


@dataclass(frozen=True)
class _Survey:
    """What the headers say. The container is closed again before anything else is opened.

    A file of hours has an index of tens of megabytes; two of them at a time would be the peak
    of the whole decode.
    """

    kind: MediaKind
    container: str
    declared_duration_s: float | None
    num_streams: int
    pictures: tuple[int, ...]
    """Indices of the picture streams that may be chosen, the best one first."""
    starts_s: dict[int, float]
    """Stated start of each picture stream."""
    sounds: tuple[AudioStream, ...]
    num_text_tracks: int
    structure: Structure
    problems: tuple[Problem, ...]


def _survey(path: Path, limits: MediaLimits) -> _Survey:
    with open_media(path, limits) as (container, structure):
        kind = _kind(container)
        readable = _readable(structure)
        candidates = video_candidates(container) if kind in ("video", "image") else []
        candidates = [s for s in candidates if readable(s)]
        heard = audio_candidates(container, candidates[0] if candidates else None)
        heard = [s for s in heard if readable(s)]
        sounds = [d for s in heard if (d := describe_audio(s)) is not None]
        if not candidates and not sounds:
            _refuse_without_streams(container, structure, kind)
        duration = container.duration
        return _Survey(
            kind=kind,
            container=container.format.name,
            declared_duration_s=None if duration is None else duration / _MICROSECONDS,
            num_streams=len(container.streams),
            pictures=tuple(s.index for s in candidates),
            starts_s={
                s.index: float(s.start_time * time_base_of(s))
                for s in candidates
                if s.start_time is not None
            },
            sounds=tuple(sounds),
            num_text_tracks=len(text_tracks(container)),
            structure=structure,
            problems=tuple(_problems(container, structure)),
        )


def _readable(structure: Structure) -> Callable[[AvStream], bool]:
    """Whether a stream's samples are in the clear."""
    return lambda stream: (
        stream.index not in structure.encrypted_tracks
        and stream.id not in structure.scrambled_pids
        and _MATROSKA_KEY not in stream.metadata
    )


def _cues(
    path: Path, survey: _Survey, limits: MediaLimits
) -> tuple[tuple[SubtitleCue, ...], tuple[str, ...]]:
    """Cues of the text tracks, and what was left out."""
    if not survey.num_text_tracks:
        return (), ()
    if survey.structure.size_bytes > limits.max_subtitle_scan_bytes:
        return (), ("text tracks not read: the file is too large for a second pass",)
    with open_media(path, limits) as (container, _):
        return read_cues(container, limits)


def _kind(container: InputContainer) -> MediaKind:
    if set(container.format.name.split(",")) & STILL_DEMUXERS:
        return "image"
    if video_candidates(container):
        return "video"
    if container.streams.audio:
        return "audio"
    if container.streams.video:
        return "image" if is_cover_only(container) else "video"
    return "subtitles"


def _refuse_without_streams(
    container: InputContainer, structure: Structure, kind: MediaKind
) -> None:
    if structure.encrypted or not all(map(_readable(structure), container.streams)):
        msg = "the samples are encrypted and no key is given"
        raise EncryptedError(msg)
    named = sorted(
        {
            decoder_name(s) or "an unknown codec"
            for s in (*container.streams.video, *container.streams.audio)
        }
        | set(structure.sample_entries)
    )
    if named:
        msg = f"no allowed decoder for {', '.join(named)}"
        raise UnsupportedCodecError(msg)
    if kind == "subtitles" and container.streams.subtitles:
        msg = "text tracks alone: there is neither picture nor sound to look at"
        raise UnsupportedCodecError(msg)
    msg = "the container opens but holds no picture or sound"
    if structure.truncated:
        msg += f"; truncated: {structure.truncated}"
    raise NothingDecodedError(msg)


def _problems(container: InputContainer, structure: Structure) -> list[Problem]:
    problems = []
    if structure.truncated:
        problems.append(Problem(code="truncated", message=structure.truncated))
    if structure.opened_by_name:
        problems.append(
            Problem(
                code="unrecognised_start",
                message="the first bytes are of no known format; the name's ending chose "
                f"{container.format.name}, what stands before its first frame was skipped",
            )
        )
    problems += [
        Problem(
            code="external_reference_ignored",
            message=f"a track names data outside the file, {url!r}; it was not followed",
        )
        for url in structure.external_references
    ]
    readable = _readable(structure)
    problems += [
        Problem(
            code="encrypted_track",
            message=f"stream {s.index} ({s.type}) is encrypted and was left out",
        )
        for s in container.streams
        if not readable(s)
    ]
    problems += [
        Problem(
            code="encrypted_parts",
            message=f"stream {s.index} ({s.type}) is encrypted in places; they are left out",
        )
        for s in container.streams
        if s.id in structure.partly_scrambled_pids
    ]
    if structure.read_to is not None and structure.read_to < structure.size_bytes:
        left = structure.size_bytes - structure.read_to
        message = f"{left} bytes behind the first picture are not looked at"
        problems.append(Problem(code="behind_picture", message=message))
    unsupported = [s for s in container.streams if s.type in ("video", "audio")]
    problems += [
        Problem(
            code="stream_without_decoder",
            message=f"stream {s.index} ({s.type}) has no allowed decoder and was left out",
        )
        for s in unsupported
        if decoder_name(s) is None
    ]
    return problems


def _first_that_decodes(
    path: Path, survey: _Survey, limits: MediaLimits
) -> tuple[VideoStream | None, list[Problem]]:
    """Describe the best candidate that gives a picture; the best one if none does.

    The second value says what of its description could not be used.
    """
    fallback: VideoStream | None = None
    for index in survey.pictures:
        with open_media(path, limits) as (container, _):
            stream = video_stream(container, index)
            frame = first_picture(container, stream, limits)
            described, orientation = describe_video(
                stream, frame, limits, dolby_vision=survey.structure.dolby_vision
            )
            if frame is not None:
                return described, _unusable(frame, orientation)
            fallback = fallback or described
    return fallback, []


def _unusable(frame: VideoFrame, orientation: Orientation) -> list[Problem]:
    """What the first picture states and cannot be followed."""
    found = []
    if orientation.irregular:
        found.append(
            Problem(
                code="irregular_orientation",
                message="the display matrix is no quarter turn or mirror and was not applied",
            )
        )
    if not has_known_matrix(frame):
        found.append(
            Problem(
                code="unknown_colour_matrix",
                message=f"colour matrix {frame.colorspace} (ITU-T H.273) cannot be converted; "
                "colours are read as if none were stated",
            )
        )
    return found


def first_picture(
    container: InputContainer, stream: AvVideoStream, limits: MediaLimits
) -> VideoFrame | None:
    """First picture that decodes among the first packets; None if none does."""
    open_decoder(stream, limits, threads=1)
    try:
        for count, packet in enumerate(container.demux(stream)):
            try:
                frames = packet.decode()
            except av.FFmpegError:
                frames = []
            if frames:
                return frames[0]
            if count >= _FIRST_PICTURE_PACKETS:
                break
    except av.FFmpegError:
        return None
    return None
