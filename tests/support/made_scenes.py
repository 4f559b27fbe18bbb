"""Pictures and sounds that tests draw for themselves: exact, deterministic, free of noise.

Pictures are uint8 [h, w, 3] RGB arrays, sounds float32 [n] in -1..1.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Picture = npt.NDArray[np.uint8]
Sound = npt.NDArray[np.float32]

_CHANNEL_SHIFT = 7  # pixels between the textures of red, green and blue, so that hues vary
_DISCS = 5


def noise_free_scene(seed: int, n: int, size: tuple[int, int] = (320, 240)) -> list[Picture]:
    """A textured picture with five discs; all of it moves slowly and smoothly, without noise.

    Two scenes of different seeds differ in colour and texture, so the change from one to the other
    is a hard cut; within a scene neighbouring frames are nearly the same.

    Args:
        seed: Decides palette, texture and direction of motion.
        n: Number of frames.
        size: Width and height in pixels.

    Returns:
        ``n`` uint8 [h, w, 3] RGB pictures.
    """
    width, height = size
    rng = np.random.default_rng(seed)
    base = rng.integers(30, 226, size=3)
    swing = (rng.uniform(15, 40, size=3) * rng.choice([-1.0, 1.0], size=3)).astype(np.float32)
    waves = rng.uniform(1.5, 6.0, size=(4, 2)) * rng.choice([-1.0, 1.0], size=(4, 2))
    phases = rng.uniform(0, 2 * np.pi, size=4)
    velocity = rng.uniform(-0.006, 0.006, size=2)
    discs = [_Disc(rng) for _ in range(_DISCS)]
    x = np.arange(width + 2 * _CHANNEL_SHIFT) / width
    y = np.arange(height) / height
    pictures: list[Picture] = []
    for index in range(n):
        dx, dy = velocity * index
        field = np.zeros((y.size, x.size), np.float32)
        for (wave_x, wave_y), phase in zip(waves, phases, strict=True):
            # sin(a + b) taken apart: sines of one row and one column, not of every pixel.
            across = (2 * np.pi * wave_x * (x + dx)).astype(np.float32)
            down = (2 * np.pi * wave_y * (y + dy) + phase).astype(np.float32)[:, None]
            field += np.sin(down) * np.cos(across) + np.cos(down) * np.sin(across)
        shifted = [field[:, _CHANNEL_SHIFT * k :][:, :width] * swing[k] / 2 for k in range(3)]
        shaded = np.stack(shifted, axis=2) + base.astype(np.float32)
        shaded = np.clip(shaded, 0, 255, out=shaded).astype(np.uint8)
        for disc in discs:
            disc.draw(shaded, index)
        pictures.append(shaded)
    return pictures


class _Disc:
    """A plain disc on a slow straight way; its edge is soft, so that it never jumps by a pixel."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._color = rng.integers(0, 256, size=3).astype(np.float32)
        self._centre = rng.uniform(0.1, 0.9, size=2)
        self._step = rng.uniform(-0.003, 0.003, size=2)
        self._radius = float(rng.uniform(0.06, 0.16))

    def draw(self, picture: Picture, index: int) -> None:
        """Paint the disc as it stands in frame ``index``; changes the picture in place."""
        height, width = picture.shape[:2]
        scale = np.array([width, height])
        centre = (self._centre + self._step * index) * scale
        radius = self._radius * height
        low = np.clip(np.floor(centre - radius - 1).astype(int), 0, scale)
        high = np.clip(np.ceil(centre + radius + 2).astype(int), 0, scale)
        rows, columns = np.mgrid[low[1] : high[1], low[0] : high[0]]
        distance = np.hypot(columns - centre[0], rows - centre[1])
        share = np.clip(radius - distance + 0.5, 0, 1)[..., None]
        part = picture[low[1] : high[1], low[0] : high[0]]
        part[...] = np.round(part + (self._color - part) * share).astype(np.uint8)


def cut_sequence(
    lengths: Sequence[int], size: tuple[int, int] = (320, 240), *, seed: int = 0
) -> tuple[list[Picture], list[int]]:
    """Scenes joined by hard cuts.

    Args:
        lengths: Frames of each scene.
        size: Width and height in pixels.
        seed: Scene ``i`` is ``noise_free_scene(seed + i, ...)``.

    Returns:
        The pictures, and for each cut the number of the first frame after it.
    """
    pictures: list[Picture] = []
    cuts: list[int] = []
    for index, length in enumerate(lengths):
        if index:
            cuts.append(len(pictures))
        pictures.extend(noise_free_scene(seed + index, length, size))
    return pictures, cuts


def draw_text(
    picture: Picture,
    text: str,
    xy: tuple[int, int],
    px: int,
    *,
    color: tuple[int, int, int] = (255, 255, 255),
    box: tuple[int, int, int] | None = (0, 0, 0),
) -> Picture:
    """A copy of the picture with one line of text on a plain box.

    Args:
        picture: uint8 [h, w, 3] RGB.
        text: One line.
        xy: Left and top of the text in pixels.
        px: Font size in pixels (the font comes with Pillow).
        color: RGB of the letters.
        box: RGB of the box behind them; None for none.

    Returns:
        uint8 [h, w, 3] RGB.
    """
    canvas = Image.fromarray(picture)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=px)
    if box is not None:
        left, top, right, bottom = draw.textbbox(xy, text, font=font)
        pad = max(2, px // 4)
        draw.rectangle((left - pad, top - pad, right + pad, bottom + pad), fill=box)
    draw.text(xy, text, fill=color, font=font)
    return np.array(canvas, dtype=np.uint8)


def text_box(text: str, xy: tuple[int, int], px: int) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of the letters that ``draw_text`` draws, in pixels."""
    draw = ImageDraw.Draw(Image.new("RGB", (8, 8)))
    left, top, right, bottom = draw.textbbox(xy, text, font=ImageFont.load_default(size=px))
    return (round(left), round(top), round(right), round(bottom))


def tone(
    freq: float, s: float, *, rate: int = 16_000, level: float = 0.4, fade_s: float = 0.005
) -> Sound:
    """A sine of ``freq`` Hz for ``s`` seconds; float32 [n], faded in and out over ``fade_s``."""
    t = np.arange(round(s * rate)) / rate
    ramp = np.ones(t.size)
    edge = min(round(fade_s * rate), t.size // 2)
    if edge:
        ramp[:edge] = np.linspace(0, 1, edge, endpoint=False)
        ramp[-edge:] = ramp[:edge][::-1]
    return np.asarray(level * np.sin(2 * np.pi * freq * t) * ramp, dtype=np.float32)


def silence(s: float, *, rate: int = 16_000) -> Sound:
    """``s`` seconds of zeros; float32 [n]."""
    return np.zeros(round(s * rate), dtype=np.float32)


def click_train(
    times: Iterable[float], duration_s: float, *, rate: int = 16_000, level: float = 0.8
) -> Sound:
    """Silence with a short, sharp, ringing click (2 kHz, 20 ms) at each time in seconds.

    Returns:
        float32 [duration_s * rate]; each click begins exactly on its sample.
    """
    sound = np.zeros(round(duration_s * rate), dtype=np.float32)
    t = np.arange(round(0.02 * rate)) / rate
    click = (level * np.cos(2 * np.pi * 2000 * t) * np.exp(-t / 0.004)).astype(np.float32)
    for time in times:
        start = round(time * rate)
        part = click[: max(0, sound.size - start)]
        sound[start : start + part.size] += part
    return sound.clip(-1.0, 1.0)
