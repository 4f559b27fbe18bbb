"""Clips for the media benchmark: drawn with grain, so that they cost what real material costs."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from flows.bench.shot_set import drawn_clip

UInt8Array = npt.NDArray[np.uint8]

_GRAIN = 1.5
_OPTIONS = {
    "libx264": {"preset": "fast", "crf": "23"},
    "libx265": {
        "preset": "ultrafast",
        "crf": "26",
        "x265-params": "log-level=error:keyint=250:scenecut=40",
    },
}


def grainy_frames(size: tuple[int, int], seconds: int, rate: int) -> Iterator[UInt8Array]:
    """Drawn takes of two seconds with film grain, uint8 [h, w, 3] RGB."""
    rng = np.random.default_rng(7)
    grain = rng.normal(0, _GRAIN, (16, size[1], size[0], 1)).astype(np.int16)
    for start in range(0, seconds * rate, 2 * rate):
        for i, picture in enumerate(drawn_clip(size, 2 * rate, rng)):
            noisy = picture.astype(np.int16) + grain[(start + i) % 16]
            yield noisy.clip(0, 255).astype(np.uint8)


def write_clip(path: Path, codec: str, size: tuple[int, int], seconds: int, rate: int = 25) -> Path:
    """Encode a drawn clip with a tone as its sound."""
    with av.open(str(path), "w") as container:
        video = container.add_stream(codec, rate=Fraction(rate), options=_OPTIONS[codec])
        video.width, video.height = size
        video.pix_fmt = "yuv420p"
        sound = container.add_stream("aac", rate=44_100, layout="stereo")
        t = np.arange(seconds * 44_100) / 44_100
        wave = np.stack([np.sin(2 * np.pi * 220 * t), np.sin(2 * np.pi * 330 * t)]) * 0.2
        for number, picture in enumerate(grainy_frames(size, seconds, rate)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(video.encode(frame))
            first, last = (round(n * 44_100 / rate) for n in (number, number + 1))
            part = np.ascontiguousarray(wave[:, first:last], dtype=np.float32)
            heard = av.AudioFrame.from_ndarray(part, format="fltp", layout="stereo")
            heard.sample_rate = 44_100
            heard.pts = first
            container.mux(sound.encode(heard))
        container.mux(video.encode(None))
        container.mux(sound.encode(None))
    return path


def repeat_clip(source: Path, target: Path, times: int, *, sound: bool = True) -> Path:
    """Append a clip to itself without encoding it again: long files for the price of a copy."""
    with av.open(str(source)) as reader, av.open(str(target), "w") as writer:
        taken = [s for s in reader.streams if sound or s.type == "video"]
        outputs = {s.index: writer.add_stream_from_template(s) for s in taken}
        # A little more than the longest stream: sound is coded in blocks that reach past the end.
        length_s = Fraction(reader.duration or 0, av.time_base) + Fraction(1, 5)
        for number in range(times):
            reader.seek(0)
            for packet in reader.demux(taken):
                if packet.dts is None or packet.pts is None:
                    continue
                output = outputs[packet.stream.index]
                shift = round(number * length_s / packet.time_base)
                packet.pts += shift
                packet.dts += shift
                packet.stream = output
                writer.mux(packet)
    return target
