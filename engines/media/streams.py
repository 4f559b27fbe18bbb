"""Which streams stand for the file, and what their headers say."""

from collections.abc import Iterable
from fractions import Fraction

import av
from av.audio.stream import AudioStream as AvAudioStream
from av.container import InputContainer
from av.sidedata.sidedata import SideData
from av.sidedata.sidedata import Type as SideDataType
from av.stream import Disposition
from av.stream import Stream as AvStream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream as AvVideoStream

from engines.contracts.media import AudioStream, VideoStream
from engines.errors import LimitExceededError
from engines.media.clock import Epochs, StreamClock
from engines.media.limits import AUDIO_DECODERS, VIDEO_DECODERS, MediaLimits
from engines.media.orientation import Orientation, from_display_matrix

_NOT_MOVING = Disposition.attached_pic | Disposition.timed_thumbnails
_SIDE = (
    Disposition.comment
    | Disposition.hearing_impaired
    | Disposition.visual_impaired
    | Disposition.dependent
    | Disposition.descriptions
)
_TRANSFER_PQ = 16
_TRANSFER_HLG = 18
_RANGE_FULL = 2
_MAX_ASPECT = 20
_MAX_RATE = 1000
_MIN_SOUND_HZ = 1000
"""A header with less than that is absurd, and a few bytes would make hours of silence."""
_MAX_LANGUAGE = 16


def decoder_name(stream: AvStream) -> str | None:
    """Name of the decoder, None where there is none."""
    context = stream.codec_context
    return None if context is None else str(context.name)


def video_candidates(container: InputContainer) -> list[AvVideoStream]:
    """Decodable moving-picture streams, the one to use first.

    Cover art is not a video. Among the others it counts whether the header counts any frames,
    or more than one, then the container's default mark, then size, then order.
    """
    streams = [
        s
        for s in container.streams.video
        if decoder_name(s) in VIDEO_DECODERS and not s.disposition & _NOT_MOVING
    ]
    return sorted(
        streams,
        key=lambda s: (
            bool(s.disposition & _SIDE),
            _declared_empty(s),
            s.frames == 1,
            not s.disposition & Disposition.default,
            -(s.width or 0) * (s.height or 0),
            s.index,
        ),
    )


def audio_candidates(
    container: InputContainer, picture: AvVideoStream | None = None
) -> list[AvAudioStream]:
    """Decodable sound streams, the one to use first.

    Args:
        container: the open file.
        picture: the chosen picture; where a transport stream carries several programs, the
            sound of its own program comes first.
    """
    streams = [s for s in container.streams.audio if decoder_name(s) in AUDIO_DECODERS]
    own = None
    if picture is not None and "mpegts" in container.format.name:
        several = len(container.streams.video) > 1
        own = container.streams.best("audio", related=picture) if several else None
    return sorted(
        streams,
        key=lambda s: (
            own is not None and s.index != own.index,
            bool(s.disposition & _SIDE),
            _declared_empty(s),
            not s.disposition & Disposition.default,
            s.index,
        ),
    )


def _declared_empty(stream: AvStream) -> bool:
    """An MP4 track whose sample table is empty; other containers count nothing."""
    return stream.frames == 0 and stream.duration in (0, None) and _counts_frames(stream)


def _counts_frames(stream: AvStream) -> bool:
    return any(other.frames > 0 for other in stream.container.streams)


def check_size(width: int, height: int, limits: MediaLimits) -> None:
    """Refuse a picture size before any memory is taken for it.

    Raises:
        LimitExceededError: one edge or the area is over its bound.
    """
    if max(width, height) > limits.max_side or width * height > limits.max_pixels:
        msg = (
            f"picture of {width} x {height}: at most {limits.max_side} along an edge and "
            f"{limits.max_pixels} pixels are allowed"
        )
        raise LimitExceededError(msg)


def sample_aspect(stream: AvVideoStream) -> Fraction:
    """Width of a stored pixel over its height; 1 where unknown or absurd."""
    aspect = stream.sample_aspect_ratio
    if aspect is None or aspect <= 0 or not 1 / _MAX_ASPECT <= aspect <= _MAX_ASPECT:
        return Fraction(1)
    return Fraction(aspect)


def _unlisted_side_data(cls: type[SideDataType], value: int) -> SideDataType:
    """A nameless member for a kind of side data that PyAV does not know."""
    member = object.__new__(cls)
    member._name_ = f"UNLISTED_{value}"
    member._value_ = value  # type: ignore[assignment]
    return member


# With one entry that it cannot name (EXIF, the view of a stereo picture), PyAV refuses the whole
# list, and the display matrix with it: its rotation is given elsewhere, its mirror is not.
SideDataType._missing_ = classmethod(_unlisted_side_data)  # type: ignore[method-assign,assignment]


def side_data_of(frame: VideoFrame) -> dict[str, bytes]:
    """A frame's side data by name."""
    entries: Iterable[SideData] = frame.side_data  # type: ignore[assignment]
    return {entry.type.name: bytes(entry) for entry in entries}


def orientation_of(frame: VideoFrame) -> Orientation:
    """Turn and mirror that the container attaches to its pictures."""
    matrix = side_data_of(frame).get("DISPLAYMATRIX")
    return Orientation() if matrix is None else from_display_matrix(matrix)


def hdr_kind(stream: AvVideoStream, frame: VideoFrame | None, *, dolby_vision: bool) -> str | None:
    """``dolby_vision``, ``hdr10``, ``hlg`` or None for standard range."""
    transfer = stream.codec_context.color_trc
    if frame is not None:
        transfer = frame.color_trc or transfer
        dolby_vision = dolby_vision or any(name.startswith("DOVI") for name in side_data_of(frame))
    if dolby_vision:
        return "dolby_vision"
    return {_TRANSFER_PQ: "hdr10", _TRANSFER_HLG: "hlg"}.get(int(transfer))


def video_stream(container: InputContainer, index: int) -> AvVideoStream:
    """A picture stream by its index in the container."""
    stream = container.streams[index]
    assert isinstance(stream, AvVideoStream), "the index comes from a picture stream"
    return stream


def audio_stream(container: InputContainer, index: int) -> AvAudioStream:
    """A sound stream by its index in the container."""
    stream = container.streams[index]
    assert isinstance(stream, AvAudioStream), "the index comes from a sound stream"
    return stream


def time_base_of(stream: AvStream) -> Fraction:
    """Seconds per tick; 1/1000 where the container states none that can be used."""
    base = stream.time_base
    return Fraction(base) if base is not None and base > 0 else Fraction(1, 1000)


def frame_rate_of(stream: AvVideoStream) -> Fraction:
    """Frames per second for estimating missing times; 25 where nothing usable is stated."""
    for rate in (stream.average_rate, stream.guessed_rate, stream.base_rate):
        if rate is not None and Fraction(1, 60) <= rate <= _MAX_RATE:
            return Fraction(rate)
    return Fraction(25)


def video_clock(container: InputContainer, stream: AvVideoStream, epochs: Epochs) -> StreamClock:
    """The clock for the frames of a picture stream."""
    base = time_base_of(stream)
    nominal = round(1 / frame_rate_of(stream) / base)
    return StreamClock(base, nominal, epochs, ignore_pts=container.format.name == "avi")


def _language(stream: AvStream) -> str | None:
    language = stream.language
    return language[:_MAX_LANGUAGE] if language and language != "und" else None


def describe_video(
    stream: AvVideoStream, frame: VideoFrame | None, limits: MediaLimits, *, dolby_vision: bool
) -> tuple[VideoStream, Orientation]:
    """Contract of a picture stream before decoding; counts and times are not yet known.

    Args:
        stream: the chosen stream.
        frame: its first decoded picture, None where none decodes.
        limits: bounds on the size.
        dolby_vision: whether the container carries a Dolby Vision record.
    """
    width = frame.width if frame is not None else stream.width
    height = frame.height if frame is not None else stream.height
    check_size(width, height, limits)
    orientation = orientation_of(frame) if frame is not None else Orientation()
    base = time_base_of(stream)
    aspect = sample_aspect(stream)
    pixel_format = frame.format.name if frame is not None else stream.codec_context.pix_fmt
    shown = (height, width) if orientation.swaps_sides else (width, height)
    described = VideoStream(
        stream_index=stream.index,
        codec=stream.codec_context.codec.canonical_name,
        width=max(1, shown[0]),
        height=max(1, shown[1]),
        sample_aspect_num=aspect.numerator,
        sample_aspect_den=aspect.denominator,
        rotation_deg=orientation.rotation_deg,
        mirrored=orientation.mirrored,
        coded_width=max(1, width),
        coded_height=max(1, height),
        frames_declared=stream.frames or None,
        frames_decoded=None,
        first_pts=None,
        last_pts=None,
        time_base_num=base.numerator,
        time_base_den=base.denominator,
        variable_rate=None,
        pixel_format=pixel_format,
        full_range=_is_full_range(stream, frame, pixel_format),
        hdr=hdr_kind(stream, frame, dolby_vision=dolby_vision),
    )
    return described, orientation


def _is_full_range(
    stream: AvVideoStream, frame: VideoFrame | None, pixel_format: str | None
) -> bool:
    value = frame.color_range if frame is not None else stream.codec_context.color_range
    return int(value) == _RANGE_FULL or bool(pixel_format and pixel_format.startswith("yuvj"))


def describe_audio(stream: AvAudioStream) -> AudioStream | None:
    """Contract of a sound stream before decoding; None where its header is unusable."""
    context = stream.codec_context
    if context.sample_rate < _MIN_SOUND_HZ or context.channels <= 0:
        return None
    start = stream.start_time
    return AudioStream(
        stream_index=stream.index,
        codec=context.codec.canonical_name,
        sample_rate_hz=context.sample_rate,
        channels=context.channels,
        language=_language(stream),
        start_s=float(start * time_base_of(stream)) if start is not None else 0.0,
        duration_s=None,
    )


def is_cover_only(container: InputContainer) -> bool:
    """Whether every picture stream is an attached cover."""
    pictures = container.streams.video
    return bool(pictures) and all(s.disposition & _NOT_MOVING for s in pictures)


def open_decoder(stream: AvStream, limits: MediaLimits, threads: int) -> None:
    """Configure the decoder before its first packet.

    PyAV's default is slice threading, which is half as fast as ``AUTO``; with one thread an
    error belongs to the very packet that caused it.
    """
    context = stream.codec_context
    context.options = {"max_pixels": str(limits.max_pixels)}
    if isinstance(context, av.VideoCodecContext):
        context.thread_type = "AUTO" if threads != 1 else "NONE"
        context.thread_count = threads
