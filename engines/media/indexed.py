"""Index and skip: sampled pictures alone, for a fraction of decoding everything.

The packets are listed first, without decoding. A picture that is wanted needs the reference
pictures before it in its group; everything behind the last wanted picture of a group, whole
groups without one, and pictures that nothing refers to are never given to the decoder. What
comes out is bit-identical to a linear pass, which the tests hold for each codec.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import av
import numpy as np
import numpy.typing as npt
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from engines.contracts.media import MediaProbe
from engines.contracts.media import VideoStream as VideoContract
from engines.errors import EngineError
from engines.media.clock import Epochs
from engines.media.container import open_media
from engines.media.limits import MediaLimits
from engines.media.orientation import Orientation
from engines.media.packets import Damage, PacketDecoder
from engines.media.pictures import PictureMaker
from engines.media.references import PictureKind, reader_for
from engines.media.streams import (
    open_decoder,
    sample_aspect,
    time_base_of,
    video_clock,
    video_stream,
)

UInt8Array = npt.NDArray[np.uint8]

_HEAD_BYTES: Final = 4096


class NoIndexError(Exception):
    """The packets of this file cannot be told apart by their times."""


@dataclass(frozen=True)
class PacketIndex:
    """Packets of one picture stream in decoding order."""

    pts: tuple[int, ...]
    key: tuple[bool, ...]
    kind: tuple[PictureKind, ...]
    shown: tuple[int, ...]
    """Times in the order of showing."""
    time_base: Fraction

    def at_or_after(self, time_s: float) -> int:
        """PTS of the first frame at or after a time; of the last frame beyond the end."""
        ticks = -int(-Fraction(time_s) // self.time_base)
        return self.shown[min(bisect_left(self.shown, ticks), len(self.shown) - 1)]

    def shown_at(self, time_s: float) -> int:
        """PTS of the frame on display at a time; of the first or last frame outside."""
        # A microsecond of grace: 0.9666667 asks for the frame at 29/30 s.
        ticks = int((Fraction(time_s) + Fraction(1, 1_000_000)) // self.time_base)
        return self.shown[max(0, bisect_right(self.shown, ticks) - 1)]


def read_index(container: InputContainer, stream: VideoStream) -> PacketIndex:
    """List the packets of a stream; nothing is decoded.

    Raises:
        NoIndexError: the container states no distinct times for them.
    """
    reader = reader_for(stream.codec_context.codec.canonical_name, stream.codec_context.extradata)
    pts, key, kind = [], [], []
    shown: list[int] = []
    for packet in container.demux(stream):
        if not packet.size:
            continue
        if packet.pts is None:
            msg = "not every packet carries a presentation time"
            raise NoIndexError(msg)
        # A hidden picture (VP9's alternate reference) has the time of the shown one after it.
        if not packet.is_discard and not (shown and shown[-1] == packet.pts):
            shown.append(packet.pts)
        pts.append(packet.pts)
        key.append(packet.is_keyframe)
        kind.append((True, 0, False) if reader is None else reader(bytes(packet)[:_HEAD_BYTES]))
    if not shown or len(set(shown)) != len(shown):
        msg = "the packets carry no distinct times"
        raise NoIndexError(msg)
    return PacketIndex(
        tuple(pts), tuple(key), tuple(kind), tuple(sorted(shown)), time_base_of(stream)
    )


def plan(index: PacketIndex, wanted: set[int]) -> list[bool]:
    """Which packets the decoder must see for the wanted times, in decoding order."""
    n = len(index.pts)
    needed = [False] * n
    keys = [i for i in range(n) if index.key[i]]
    if not keys or keys[0] != 0:
        keys.insert(0, 0)
    bounds = [*keys, n]
    whole_group_before = False
    top = max(layer for _, layer, _ in index.kind)
    for group in range(len(keys) - 1, -1, -1):
        start, end = bounds[group], bounds[group + 1]
        targets = [i for i in range(start, end) if index.pts[i] in wanted]
        last = end - 1 if whole_group_before else max(targets, default=-1)
        if last < 0:
            whole_group_before = False
            continue
        for i in range(start, last + 1):
            reference, layer, _ = index.kind[i]
            needed[i] = reference or layer < top or index.pts[i] in wanted
        # A picture shown before its group's key picture refers to the group before (open
        # group): that one is needed to its end.
        whole_group_before = any(index.pts[i] < index.pts[start] for i in targets)
        if not whole_group_before:
            for i in range(start, last + 1):
                if index.kind[i][2] and index.pts[i] not in wanted:
                    needed[i] = False
    return needed


def decode_wanted(
    container: InputContainer, stream: VideoStream, index: PacketIndex, wanted: set[int]
) -> Iterator[VideoFrame]:
    """Frames with the wanted times, as the decoder gives them.

    Args:
        container: open, at its beginning.
        stream: its picture stream; the decoder must be configured (``open_decoder``).
        index: of the same stream.
        wanted: times out of ``index.shown``.
    """
    needed = plan(index, wanted)
    left = set(wanted)
    for frame in _decode_needed(container, stream, index, needed):
        if frame.pts in left:
            left.discard(frame.pts)
            yield frame
        if not left:
            return


def _decode_needed(
    container: InputContainer, stream: VideoStream, index: PacketIndex, needed: list[bool]
) -> Iterator[VideoFrame]:
    at = -1
    gap = False
    for packet in container.demux(stream):
        if packet.size:
            at += 1
            if at >= len(needed) or not needed[at]:
                reference, _, leading = index.kind[min(at, len(needed) - 1)]
                gap = gap or (reference and not leading)
                continue
            if gap and index.key[at]:
                # Reference pictures were left out before this key picture. It may be one that
                # does not reset the decoder by itself (open group), so that is done here.
                yield from _decode(stream, None)
                stream.codec_context.flush_buffers()
                gap = False
        yield from _decode(stream, packet)


def _decode(stream: VideoStream, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
    try:
        frames = stream.codec_context.decode(packet)
    except av.FFmpegError:
        return []
    return [f for f in frames if isinstance(f, VideoFrame)]


def sample_pictures(
    path: Path,
    probe: MediaProbe,
    times_s: Sequence[float],
    *,
    long_edge: int = 1280,
    threads: int = 0,
    limits: MediaLimits = MediaLimits(),  # noqa: B008 (frozen)
) -> list[tuple[int, UInt8Array]]:
    """Pictures on display at the given times, in the order of the request.

    Args:
        path: a local file.
        probe: of that file; it must have a picture stream.
        times_s: seconds on the asset clock, in any order; before the first and behind the last
            frame the nearest one is given.
        long_edge: bound on the longer side in pixels.
        threads: decoder threads; 0 lets the library choose.
        limits: bounds on the file.

    Returns:
        (pts, uint8 [h, w, 3] RGB upright) for each requested time, equal to the frames of a
        linear pass.

    Raises:
        EngineError: the file has no pictures, states no times, or a wanted one is damaged.
    """
    if probe.video is None:
        msg = "the file has no picture stream"
        raise EngineError(msg)
    try:
        index, wanted = _choose(path, probe.video.stream_index, times_s, limits)
    except NoIndexError:
        return _linear(path, probe, times_s, long_edge, limits)
    pictures: dict[int, UInt8Array] = {}
    with open_media(path, limits) as (container, _):
        stream = video_stream(container, probe.video.stream_index)
        open_decoder(stream, limits, threads)
        maker = _maker(stream, probe.video, long_edge)
        for frame in decode_wanted(container, stream, index, set(wanted)):
            if frame.pts is not None:
                pictures[frame.pts] = maker.picture(frame)
    missing = [p for p in wanted if p not in pictures]
    if missing:
        msg = f"{len(missing)} wanted frames do not decode, the first at pts {missing[0]}"
        raise EngineError(msg)
    return [(p, pictures[p]) for p in wanted]


def _choose(
    path: Path, stream_index: int, times_s: Sequence[float], limits: MediaLimits
) -> tuple[PacketIndex, list[int]]:
    with open_media(path, limits) as (container, _):
        index = read_index(container, video_stream(container, stream_index))
    return index, [index.shown_at(t) for t in times_s]


def _maker(stream: VideoStream, video: VideoContract, long_edge: int) -> PictureMaker:
    return PictureMaker(
        Orientation(video.rotation_deg, video.mirrored),
        sample_aspect(stream),
        hdr=video.hdr,
        long_edge=long_edge,
    )


def _linear(
    path: Path, probe: MediaProbe, times_s: Sequence[float], long_edge: int, limits: MediaLimits
) -> list[tuple[int, UInt8Array]]:
    """Decode everything twice, once for the times and once for the pictures; flat memory."""
    assert probe.video is not None
    shown = [pts for pts, _, _ in _timed_frames(path, probe.video, limits)]
    if not shown:
        msg = "not one picture decodes"
        raise EngineError(msg)
    base = Fraction(probe.video.time_base_num, probe.video.time_base_den)
    index = PacketIndex((), (), (), tuple(shown), base)
    wanted = [index.shown_at(t) for t in times_s]
    needed = set(wanted)
    pictures: dict[int, UInt8Array] = {}
    maker: PictureMaker | None = None
    for pts, frame, stream in _timed_frames(path, probe.video, limits):
        if pts in needed:
            maker = maker or _maker(stream, probe.video, long_edge)
            pictures[pts] = maker.picture(frame)
    return [(pts, pictures[pts]) for pts in wanted]


def _timed_frames(
    path: Path, video: VideoContract, limits: MediaLimits
) -> Iterator[tuple[int, VideoFrame, VideoStream]]:
    """Every frame with its time on the asset clock, as in the decode pass."""
    with open_media(path, limits) as (container, _):
        stream = video_stream(container, video.stream_index)
        clock = video_clock(container, stream, Epochs())
        decoder = PacketDecoder(container, stream, None, limits, threads=1, damage=Damage())
        for frame in decoder:
            if isinstance(frame, VideoFrame):
                yield clock.place(frame.pts, frame.duration or 0, frame.dts), frame, stream
