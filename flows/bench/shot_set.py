"""Videos with exactly known shot changes, made from clips without cuts and from drawn scenes.

Each video is a chain of takes joined by hard cuts, dissolves, wipes, fades through black and
one-frame shots, with flashes and whip pans inside the takes as traps. Codecs, sizes and frame
rates vary. The truth comes from the making, never from a detector.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt
from av.video.reformatter import Interpolation, VideoReformatter

UInt8Array = npt.NDArray[np.uint8]

FORMATS: tuple[tuple[str, str, tuple[int, int], int, dict[str, str]], ...] = (
    ("libx264", "mp4", (320, 240), 25, {"crf": "26", "preset": "veryfast"}),
    ("mpeg4", "avi", (352, 288), 25, {"qscale": "6"}),
    ("libx264", "mkv", (640, 360), 30, {"crf": "24", "preset": "veryfast", "bf": "3"}),
    ("mpeg2video", "mpg", (352, 288), 25, {"b": "1500k"}),
    ("mjpeg", "avi", (320, 240), 15, {}),
    ("libvpx-vp9", "webm", (320, 180), 24, {"deadline": "realtime", "cpu-used": "8"}),
    ("libx264", "mp4", (216, 384), 30, {"crf": "30", "preset": "veryfast"}),
    ("libx264", "mp4", (960, 540), 25, {"crf": "28", "preset": "ultrafast"}),
)


@dataclass
class MadeVideo:
    """A made file and its truth."""

    path: Path
    cuts: list[int] = field(default_factory=list)
    """First frames of shots that begin with a hard cut."""
    gradual: list[tuple[int, int, str]] = field(default_factory=list)
    """(first mixed frame, first pure frame, kind) of each gradual change."""
    traps: list[tuple[int, int, str]] = field(default_factory=list)
    """(first, end, kind) of flashes and whip pans, where nothing may be found."""


def load_clip(path: Path, size: tuple[int, int], most: int) -> list[UInt8Array]:
    """Decode up to ``most`` frames as uint8 [h, w, 3] RGB of ``size`` (width, height)."""
    frames: list[UInt8Array] = []
    scaler = VideoReformatter()
    with av.open(str(path), metadata_errors="replace") as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            small = scaler.reformat(frame, *size, "rgb24", interpolation=Interpolation.AREA)
            frames.append(np.asarray(small.to_ndarray(), dtype=np.uint8))
            if len(frames) >= most:
                break
    return frames


def drawn_clip(size: tuple[int, int], length: int, rng: np.random.Generator) -> list[UInt8Array]:
    """A drawn take: a textured ground that drifts, and discs that move over it."""
    width, height = size
    rough = rng.integers(0, 256, (height // 24 + 8, width // 24 + 8, 3), dtype=np.uint8)
    rough = (rough * rng.uniform(0.3, 0.8) + rng.integers(0, 90, 3)).clip(0, 255).astype(np.uint8)
    ground = cv2.resize(rough, (width * 2, height * 2), interpolation=cv2.INTER_CUBIC)
    drift = rng.uniform(-1.2, 1.2, 2)
    discs = [
        (rng.uniform(0, 1, 2) * size, rng.uniform(-4, 4, 2), int(rng.integers(8, height // 4)),
         tuple(int(c) for c in rng.integers(0, 256, 3)))
        for _ in range(int(rng.integers(1, 4)))
    ]  # fmt: skip
    frames = []
    for t in range(length):
        x = _there_and_back(width / 2 + drift[0] * t, width)
        y = _there_and_back(height / 2 + drift[1] * t, height)
        picture = np.ascontiguousarray(ground[y : y + height, x : x + width])
        for start, speed, radius, colour in discs:
            at = (start + speed * t) % size
            cv2.circle(picture, (int(at[0]), int(at[1])), radius, colour, -1, cv2.LINE_AA)
        frames.append(picture)
    return frames


def _there_and_back(way: float, most: int) -> int:
    """A place in [0, most] after a way that turns at the ends: a jump would be a cut."""
    return int(most - abs(way % (2 * most) - most))


def _blend(a: UInt8Array, b: UInt8Array, share: float) -> UInt8Array:
    mixed = a.astype(np.float32) * (1 - share) + b.astype(np.float32) * share
    return np.rint(mixed).astype(np.uint8)


def _wipe(a: UInt8Array, b: UInt8Array, share: float, kind: int) -> UInt8Array:
    out = a.copy()
    height, width = a.shape[:2]
    if kind == 0:
        out[:, : round(width * share)] = b[:, : round(width * share)]
    elif kind == 1:
        out[height - round(height * share) :] = b[height - round(height * share) :]
    else:
        radius = share * float(np.hypot(width, height)) / 2
        yy, xx = np.ogrid[:height, :width]
        inside = (yy - height / 2) ** 2 + (xx - width / 2) ** 2 <= radius**2
        out[inside] = b[inside]
    return out


class _Maker:
    """Chains takes into one video while noting the truth."""

    def __init__(self, path: Path, rng: np.random.Generator) -> None:
        self.made = MadeVideo(path)
        self.frames: list[UInt8Array] = []
        self._rng = rng

    def join(self, take: list[UInt8Array], how: str) -> None:
        """Append a take by one kind of change."""
        if not self.frames:
            self.frames.extend(take)
            return
        length = int(self._rng.integers(10, 26))
        length = min(length, len(take) - 8, len(self.frames) - 4)
        at = len(self.frames)
        if how == "cut":
            self.made.cuts.append(at)
            self.frames.extend(take)
        elif how in ("dissolve", "wipe"):
            first = at - length
            kind = int(self._rng.integers(0, 3))
            for i in range(length):
                share = (i + 1) / (length + 1)
                old, new = self.frames[first + i], take[i]
                mixed = (
                    _blend(old, new, share) if how == "dissolve" else _wipe(old, new, share, kind)
                )
                self.frames[first + i] = mixed
            self.frames.extend(take[length:])
            self.made.gradual.append((first, at, how))
        elif how == "fade":
            black = np.zeros_like(take[0])
            hold = int(self._rng.integers(0, 12))
            for i in range(length):
                self.frames[at - length + i] = _blend(
                    self.frames[at - length + i], black, (i + 1) / length
                )
            self.frames.extend([black] * hold)
            lit = [_blend(black, take[i], (i + 1) / length) for i in range(length)]
            self.frames.extend(lit)
            self.frames.extend(take[length:])
            self.made.gradual.append((at - length, at + hold + length, "fade"))

    def one_frame_shot(self, picture: UInt8Array, take: list[UInt8Array]) -> None:
        """A shot of a single frame, then the next take."""
        at = len(self.frames)
        self.made.cuts += [at, at + 1]
        self.frames.append(picture)
        self.frames.extend(take)

    def flash(self, at: int, length: int) -> None:
        """Overexpose ``length`` frames from ``at``, as a photographer's flash does."""
        for i in range(at, at + length):
            gain = float(self._rng.uniform(1.8, 3.5))
            lit = self.frames[i].astype(np.float32) * gain + 90
            self.frames[i] = lit.clip(0, 255).astype(np.uint8)
        self.made.traps.append((at, at + length, "flash"))

    def whip(self, at: int, length: int) -> None:
        """Pan quickly across a wide still and stop, with the blur of the movement."""
        still = self.frames[at]
        width = still.shape[1]
        wide = np.concatenate([still, still[:, ::-1], still], axis=1)
        speed = width / length
        panned = []
        for i in range(length):
            x = round((i + 1) * speed * 2)
            blur = max(1, round(speed * 2))
            row = cv2.blur(wide, (blur, 1))
            panned.append(np.ascontiguousarray(row[:, x : x + width]))
        # It ends on the same picture, so what follows is the same take.
        self.frames[at + 1 : at + 1] = panned
        shift = len(panned)
        self.made.cuts = [c + shift if c > at else c for c in self.made.cuts]
        self.made.gradual = [
            (a + shift, b + shift, k) if a > at else (a, b, k) for a, b, k in self.made.gradual
        ]
        self.made.traps.append((at + 1, at + 1 + shift, "whip pan"))


def make_shot_set(
    directory: Path, clips: list[Path], *, seed: int, videos: int, takes: int
) -> list[MadeVideo]:
    """Make the set.

    Args:
        directory: receives the files.
        clips: videos without any cut; drawn scenes stand in for them where there are none.
        seed: of everything random.
        videos: number of files; their format goes round ``FORMATS``.
        takes: takes in each.
    """
    rng = np.random.default_rng(seed)
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(videos):
        codec, suffix, size, rate, options = FORMATS[number % len(FORMATS)]
        path = directory / f"made_{number:02d}_{codec}.{suffix}"
        maker = _Maker(path, rng)
        last = -1
        for take_number in range(takes):
            take, last = _take(clips, size, rng, last)
            how = str(rng.choice(["cut"] * 6 + ["dissolve", "wipe", "fade"]))
            before = len(maker.frames)
            if take_number and rng.random() < 0.08:
                other, _ = _take(clips, size, rng, last)
                maker.one_frame_shot(other[len(other) // 2], take)
            else:
                maker.join(take, how)
            _add_trap(maker, before, rng)
        _encode(path, maker.frames, codec, rate, options)
        made.append(maker.made)
    return made


def _take(
    clips: list[Path], size: tuple[int, int], rng: np.random.Generator, last: int
) -> tuple[list[UInt8Array], int]:
    length = int(rng.integers(36, 80))
    if not clips or rng.random() < 0.2:
        return drawn_clip(size, length, rng), -1
    choice = int(rng.integers(0, len(clips)))
    if choice == last:
        choice = (choice + 1) % len(clips)
    frames = load_clip(clips[choice], size, length + 60)
    start = int(rng.integers(0, max(1, len(frames) - length)))
    take = frames[start : start + length]
    while len(take) < 36:
        take = take + take[::-1]
    return take, choice


def _add_trap(maker: _Maker, before: int, rng: np.random.Generator) -> None:
    """Sometimes put a flash or a whip pan into the last take, away from its ends."""
    last = len(maker.frames)
    room = last - before
    if room < 34:
        return
    where = last - int(room * 0.35)
    chance = rng.random()
    if chance < 0.22:
        maker.flash(where, int(rng.integers(1, 4)))
    elif chance < 0.32:
        maker.whip(where, int(rng.integers(5, 9)))


def _encode(
    path: Path, frames: list[UInt8Array], codec: str, rate: int, options: dict[str, str]
) -> None:
    height, width = frames[0].shape[:2]
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(rate), options=options)
        stream.width, stream.height = width, height
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for picture in frames:
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def match(found: list[int], made: MadeVideo, *, tolerance: int = 1) -> Iterator[tuple[str, bool]]:
    """Compare found shot starts with the truth.

    Yields:
        (kind, hit) for each true change (``cut``, ``dissolve``, ``wipe``, ``fade``), and
        (``extra`` or the kind of trap, False) for each start that belongs to none.
    """
    left = sorted(found)
    for cut in made.cuts:
        hit = next((f for f in left if abs(f - cut) <= tolerance), None)
        if hit is not None:
            left.remove(hit)
        yield "cut", hit is not None
    for first, end, kind in made.gradual:
        inside = [f for f in left if first - 2 <= f <= end + 2]
        if inside:
            left.remove(inside[0])
        yield kind, bool(inside)
    for f in left:
        trap = next((k for a, b, k in made.traps if a - 2 <= f <= b + 2), None)
        near = next((k for a, b, k in made.gradual if a - 2 <= f <= b + 2), None)
        yield trap or (f"twice in {near}" if near else "extra"), False
