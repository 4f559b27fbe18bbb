"""Media that tests make for themselves: exact frames, times and sounds, written through PyAV.

Everything here is deterministic: the same arguments give the same pictures and sounds, so a test
states its expected frame numbers and times as constants. Encoders run on one thread for the same
reason.

Pictures are uint8 [h, w, 3] RGB arrays, sounds float32 [n] or [channels, n] in -1..1.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from made_scenes import (
    Picture,
    Sound,
    click_train,
    cut_sequence,
    draw_text,
    noise_free_scene,
    silence,
    text_box,
    tone,
)

__all__ = [
    "Picture",
    "Sound",
    "click_train",
    "cut_sequence",
    "draw_text",
    "noise_free_scene",
    "silence",
    "text_box",
    "text_clip",
    "tone",
    "vfr_clip",
    "write_video",
]

# Fast presets: tests ask for exact times and counts, not for small files.
_FAST_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "libx264": {"preset": "veryfast", "crf": "23"},
    "libx265": {"preset": "ultrafast", "x265-params": "log-level=error"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "crf": "36", "b": "0"},
}
_DEFAULT_QUALITY_BIT_RATE = 4_000_000
_FULL_RANGE = 2  # AVCOL_RANGE_JPEG, which the MJPEG encoder insists on
# The sound runs this far ahead of the picture in the file, so that demuxers find both together.
_INTERLEAVE_S = Fraction(1, 2)
# Encoders without a fixed frame size (PCM, FLAC in some builds) get blocks of this many samples.
_FREE_BLOCK = 1024
_LAYOUTS = {1: "mono", 2: "stereo", 3: "2.1", 4: "4.0", 5: "5.0", 6: "5.1", 8: "7.1"}


def write_video(
    path: Path,
    frames: Iterable[Picture],
    fps: float | Fraction = 25,
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    options: Mapping[str, str] | None = None,
    pts: Sequence[int] | None = None,
    time_base: Fraction | None = None,
    audio: npt.NDArray[np.floating[Any]] | None = None,
    audio_rate: int = 16_000,
    audio_codec: str = "aac",
    audio_start_s: float = 0.0,
    rotation_deg: int | None = None,
    container_options: Mapping[str, str] | None = None,
) -> Path:
    """Write one video file; the container follows from the suffix of ``path``.

    Args:
        path: Where to write: .mp4, .mov, .mkv, .webm, .avi, .mpg, .ts, .m4a...
            Matroska rounds times to milliseconds; MPEG and TS add a start offset to all streams;
            AVI keeps picture and sound together only with PCM or u8 sound.
        frames: uint8 [h, w, 3] RGB pictures of one size; may be a generator, may be empty when
            ``audio`` is given (the file then has no picture stream).
        fps: Frames per second; with ``pts`` only the nominal rate.
        codec: An FFmpeg encoder name: libx264, mpeg4, libvpx-vp9, mjpeg, mpeg2video, ffv1...
        pix_fmt: Pixel format to encode in (``yuvj420p`` is used for mjpeg whatever is asked).
        options: Encoder options, such as ``{"bf": "3", "g": "30", "x264-params": "open-gop=1"}``;
            they override this module's fast defaults.
        pts: One presentation time per frame in ticks of ``time_base``, strictly increasing; for a
            variable frame rate. The last frame lasts one nominal frame.
        time_base: Seconds per tick of ``pts``; 1/fps when absent.
        audio: float [n] or [channels, n] in -1..1; no sound stream when absent.
        audio_rate: Samples per second of ``audio``.
        audio_codec: An FFmpeg encoder name: aac, flac, pcm_s16le, libopus, mp2, libmp3lame...
        audio_start_s: When the first sample of ``audio`` sounds on the container's clock.
        rotation_deg: Clockwise turn that a player must apply to show the coded pictures upright,
            as the ``rotate`` tag of phone clips has it (``VideoFrame.rotation`` of PyAV then reads
            minus this). Written as a display matrix; MP4 and MOV keep it.
        container_options: Muxer options, such as ``{"movflags": "faststart"}``.

    Returns:
        ``path``.

    Raises:
        ValueError: No frames and no audio, or ``pts`` of another length than ``frames``.
        av.error.FFmpegError: The encoder or muxer refuses these settings.
    """
    frame_iter = iter(frames)
    first = next(frame_iter, None)
    if first is None and audio is None:
        msg = f"nothing to write to {path.name!r}: no frames and no audio"
        raise ValueError(msg)
    rate = Fraction(fps).limit_denominator(1_001_000)
    with av.open(str(path), "w", container_options=dict(container_options or {})) as container:
        picture = None
        if first is not None:
            picture = _PictureWriter(
                container, first.shape, rate, codec, pix_fmt, options or {}, time_base
            )
            if rotation_deg is not None:
                # PyAV's angle is counter-clockwise.
                picture.stream.set_display_rotation(-rotation_deg)
        sound = None
        if audio is not None:
            sound = _SoundWriter(container, audio, audio_rate, audio_codec, audio_start_s)
        if picture is not None and first is not None:
            for time_s in picture.write(chain([first], frame_iter), pts):
                if sound is not None:
                    sound.write_until(time_s + _INTERLEAVE_S)
        if sound is not None:
            sound.finish()
        if picture is not None:
            picture.finish()
    return path


class _PictureWriter:
    """Encodes RGB arrays into one stream of an open output container."""

    def __init__(
        self,
        container: Any,
        shape: tuple[int, ...],
        rate: Fraction,
        codec: str,
        pix_fmt: str,
        options: Mapping[str, str],
        time_base: Fraction | None,
    ) -> None:
        self._container = container
        self._full_range = codec == "mjpeg"
        self._pix_fmt = "yuvj420p" if self._full_range else pix_fmt
        self._time_base = time_base or 1 / rate
        self._nominal = max(1, round(1 / rate / self._time_base))
        self._durations: dict[int, int] = {}
        merged = {**_FAST_OPTIONS.get(codec, {}), **options}
        self.stream = container.add_stream(codec, rate=rate, options=merged)
        self.stream.height, self.stream.width = shape[0], shape[1]
        self.stream.pix_fmt = self._pix_fmt
        self.stream.codec_context.time_base = self._time_base
        self.stream.codec_context.thread_count = 1
        if self._full_range:
            self.stream.codec_context.color_range = _FULL_RANGE
        if codec not in _FAST_OPTIONS and "b" not in options:
            # mpeg4, mpeg2video and mjpeg otherwise default to 200 kbit/s mush.
            self.stream.bit_rate = _DEFAULT_QUALITY_BIT_RATE

    def write(self, frames: Iterator[Picture], pts: Sequence[int] | None) -> Iterator[Fraction]:
        """Encode all frames; yields the time of each frame, in seconds, once it is encoded."""
        count = 0
        for index, array in enumerate(frames):
            if pts is not None and index >= len(pts):
                msg = f"more frames than pts: {len(pts)} pts"
                raise ValueError(msg)
            tick = pts[index] if pts is not None else index * self._nominal
            has_next = pts is not None and index + 1 < len(pts)
            following = pts[index + 1] if pts is not None and has_next else tick + self._nominal
            self._durations[tick] = following - tick
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(array), format="rgb24")
            frame = frame.reformat(
                format=self._pix_fmt, dst_color_range=_FULL_RANGE if self._full_range else None
            )
            frame.pts, frame.time_base = tick, self._time_base
            self._mux(self.stream.encode(frame))
            count += 1
            yield tick * self._time_base
        if pts is not None and count != len(pts):
            msg = f"{count} frames but {len(pts)} pts"
            raise ValueError(msg)

    def finish(self) -> None:
        """Flush the encoder."""
        self._mux(self.stream.encode(None))

    def _mux(self, packets: Iterable[Any]) -> None:
        for packet in packets:
            # Encoders leave the duration out; without it MP4 cuts the last frame of a clip short.
            packet.duration = self._durations.pop(packet.pts, self._nominal)
            self._container.mux(packet)


class _SoundWriter:
    """Encodes one float array into one stream, in step with the picture."""

    def __init__(
        self,
        container: Any,
        audio: npt.NDArray[np.floating[Any]],
        rate_hz: int,
        codec: str,
        start_s: float,
    ) -> None:
        self._container = container
        self._samples = np.atleast_2d(np.asarray(audio, dtype=np.float32)).clip(-1.0, 1.0)
        self._rate_hz = rate_hz
        self._start = round(start_s * rate_hz)
        self._layout = _LAYOUTS[self._samples.shape[0]]
        self._stream = container.add_stream(codec, rate=rate_hz, layout=self._layout)
        context = self._stream.codec_context
        context.format = av.Codec(codec, "w").audio_formats[0]
        context.time_base = Fraction(1, rate_hz)
        context.thread_count = 1
        self._format = context.format.name
        context.open()
        self._block = context.frame_size or _FREE_BLOCK
        self._done = 0

    def write_until(self, time_s: Fraction) -> None:
        """Encode the blocks that begin before ``time_s`` on the container's clock."""
        total = self._samples.shape[1]
        while self._done < total and Fraction(self._start + self._done, self._rate_hz) < time_s:
            block = self._samples[:, self._done : self._done + self._block]
            frame = av.AudioFrame.from_ndarray(
                _as_sample_format(block, self._format), format=self._format, layout=self._layout
            )
            frame.sample_rate = self._rate_hz
            frame.pts, frame.time_base = self._start + self._done, Fraction(1, self._rate_hz)
            self._container.mux(self._stream.encode(frame))
            self._done += block.shape[1]

    def finish(self) -> None:
        """Encode what is left and flush the encoder."""
        end = Fraction(self._start + self._samples.shape[1], self._rate_hz)
        self.write_until(end + 1)
        self._container.mux(self._stream.encode(None))


def _as_sample_format(block: Sound, name: str) -> npt.NDArray[Any]:
    """Turn float32 [channels, n] into the array layout of one FFmpeg sample format."""
    base = name.removesuffix("p")
    scaled: npt.NDArray[Any]
    if base == "flt":
        scaled = block
    elif base == "dbl":
        scaled = block.astype(np.float64)
    elif base == "s16":
        scaled = np.round(block * 32767).astype(np.int16)
    elif base == "s32":
        scaled = np.round(block.astype(np.float64) * 2147483647).astype(np.int32)
    elif base == "u8":
        scaled = np.round(block * 127 + 128).astype(np.uint8)
    else:
        msg = f"sample format {name!r} is not supported here"
        raise ValueError(msg)
    if name.endswith("p"):
        return np.ascontiguousarray(scaled)
    return np.ascontiguousarray(scaled.T.reshape(1, -1))


def text_clip(
    path: Path,
    lines: Sequence[tuple[str, int, int]],
    *,
    n: int = 50,
    size: tuple[int, int] = (640, 360),
    px: int = 40,
    fps: float = 25,
) -> Path:
    """A clip in which each (text, first frame, frame after the last) is shown on its own row."""
    pictures = noise_free_scene(11, n, size)
    for row, (text, first, end) in enumerate(lines):
        for index in range(first, min(end, n)):
            xy = (size[0] // 16, size[1] // 8 + row * px * 2)
            pictures[index] = draw_text(pictures[index], text, xy, px)
    return write_video(path, pictures, fps)


def vfr_clip(
    path: Path, *, size: tuple[int, int] = (160, 120), codec: str = "libx264"
) -> tuple[Path, list[float]]:
    """A clip with an uneven frame rate: 30 fps, then 10 fps, a hole of two seconds, then 60 fps.

    Returns:
        The path and the exact time of every frame in seconds, in steps of 1/600 s: MP4 and MOV
        keep them exactly (on a finer tick), Matroska rounds them to milliseconds.
    """
    steps = [20] * 15 + [60] * 10 + [1200] + [10] * 14
    pts = [0, *np.cumsum(steps).tolist()]
    base = Fraction(1, 600)
    pictures = noise_free_scene(5, len(pts), size)
    write_video(path, pictures, 30, pts=pts, time_base=base, codec=codec)
    return path, [float(tick * base) for tick in pts]
