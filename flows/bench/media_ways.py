"""The ways that the media benchmark compares: the limit, the plain loops, and the engine."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import av
import cv2
import numpy as np
import numpy.typing as npt
from av.video.reformatter import VideoReformatter

from engines.media.container import open_media
from engines.media.indexed import decode_wanted, read_index
from engines.media.limits import MediaLimits
from engines.media.orientation import Orientation
from engines.media.packets import Damage, PacketDecoder
from engines.media.pictures import PictureMaker
from engines.media.signals import SignalBuffer, slow_lag
from engines.media.streams import frame_rate_of, open_decoder, sample_aspect, video_stream

UInt8Array = npt.NDArray[np.uint8]

SMALL: Final = 224
LIMITS: Final = MediaLimits()


def ffmpeg_program() -> str | None:
    """The ffmpeg program on the PATH, None where there is none."""
    return shutil.which("ffmpeg")


def limit_decode(path: Path, threads: int = 0) -> None:
    """Decode every frame and drop it: what ``ffmpeg -f null`` does.

    Args:
        path: the clip.
        threads: decoder threads, 0 for as many as the library thinks fit.
    """
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO" if threads != 1 else "NONE"
        stream.thread_count = threads
        for _ in container.decode(stream):
            pass


def ffmpeg_decode(path: Path, threads: int = 0) -> None:
    """The same in the ffmpeg program; only where it is on the PATH."""
    program = ffmpeg_program()
    assert program is not None, "asked for only where it is there"
    command = [program, "-v", "error", "-nostdin", "-threads", str(threads)]
    command += ["-i", f"file:{path}", "-an", "-f", "null", "-"]
    subprocess.run(command, check=True)  # noqa: S603 (our own clip, no shell)


def naive_decode(path: Path) -> None:
    """PyAV as its examples have it: slice threading."""
    with av.open(str(path)) as container:
        for _ in container.decode(video=0):
            pass


def engine_decode(path: Path) -> None:
    """The engine's guarded packet loop."""
    with open_media(path, LIMITS) as (container, _):
        stream = video_stream(container, container.streams.video[0].index)
        for _ in PacketDecoder(container, stream, None, LIMITS, threads=0, damage=Damage()):
            pass


def naive_rgb(path: Path) -> None:
    """Every frame through PIL."""
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            np.asarray(frame.to_image())


def engine_rgb(path: Path) -> None:
    """Every frame as RGB through the engine's scaler."""
    with open_media(path, LIMITS) as (container, _):
        stream = video_stream(container, container.streams.video[0].index)
        scaler = VideoReformatter()
        open_decoder(stream, LIMITS, 0)
        for frame in container.decode(stream):
            scaler.reformat(frame, format="rgb24", threads=1).to_ndarray()


def naive_samples(path: Path, step_s: float) -> dict[int, UInt8Array]:
    """Decode everything, convert the frames that are due."""
    found: dict[int, UInt8Array] = {}
    due = 0.0
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            if frame.pts is not None and frame.time is not None and frame.time >= due:
                picture = frame.to_ndarray(format="rgb24")
                small = cv2.resize(picture, (SMALL, SMALL), interpolation=cv2.INTER_AREA)
                found[frame.pts] = np.asarray(small, dtype=np.uint8)
                due = (np.floor(frame.time / step_s) + 1) * step_s
    return found


def linear_samples(path: Path, wanted: set[int]) -> dict[int, UInt8Array]:
    """The oracle for exactness: every frame is decoded, the wanted ones are converted."""
    with open_media(path, LIMITS) as (container, _):
        stream = video_stream(container, container.streams.video[0].index)
        open_decoder(stream, LIMITS, 0)
        maker = PictureMaker(Orientation(), sample_aspect(stream), hdr=None, long_edge=SMALL)
        return {
            f.pts: maker.picture(f)
            for f in container.decode(stream)
            if f.pts is not None and f.pts in wanted
        }


def indexed_samples(path: Path, step_s: float) -> dict[int, UInt8Array]:
    """Index and skip."""
    with open_media(path, LIMITS) as (container, _):
        index = read_index(container, video_stream(container, container.streams.video[0].index))
    start_s, end_s = (float(t * index.time_base) for t in (index.shown[0], index.shown[-1]))
    wanted = {index.at_or_after(float(t)) for t in np.arange(start_s, end_s, step_s)}
    with open_media(path, LIMITS) as (container, _):
        stream = video_stream(container, container.streams.video[0].index)
        open_decoder(stream, LIMITS, 0)
        maker = PictureMaker(Orientation(), sample_aspect(stream), hdr=None, long_edge=SMALL)
        frames = decode_wanted(container, stream, index, wanted)
        return {f.pts: maker.picture(f) for f in frames if f.pts is not None}


def engine_signals(path: Path) -> None:
    """Shot detection alone, on one thread: thumbnails and their signals for every frame."""
    with open_media(path, LIMITS) as (container, _):
        stream = video_stream(container, container.streams.video[0].index)
        open_decoder(stream, LIMITS, 1)
        maker = PictureMaker(Orientation(), sample_aspect(stream), hdr=None, long_edge=SMALL)
        buffer = SignalBuffer(slow_lag(float(frame_rate_of(stream))))
        for frame in container.decode(stream):
            if buffer.push(maker.thumb(frame)):
                buffer.take()
        buffer.take()


def scenedetect_starts(path: Path, kind: str) -> list[int]:
    """First frames of new scenes by PySceneDetect (``content`` or ``adaptive``), its defaults."""
    from scenedetect import AdaptiveDetector, ContentDetector, detect

    detector = ContentDetector() if kind == "content" else AdaptiveDetector()
    scenes = detect(str(path), detector)
    return [start.frame_num for start, _ in scenes[1:]]
