"""The rendered part of demo.mp4: a hammer strikes a button, half a second later a bell rings.

Everything is computed: geometry, timing (seeded), picture and sound. A lamp switches on and off on
its own clock, as a distractor: it is as visible as the hammer, and has nothing to do with the bell.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

Picture = npt.NDArray[np.uint8]
Sound = npt.NDArray[np.float32]

SIZE = (640, 360)
_SCALE = 2  # drawn at twice the size and averaged down, for clean edges
_SWING = (0.12, 0.45, 1.0)  # share of the way down in the three frames that end at the strike
_HOLD_FRAMES = 2
_LIFT_FRAMES = 22
_SPARK_FRAMES = 2
_PIVOT = (92.0, 108.0)
_ARM = 158.0
_RAISED_DEG = -34.0
_DOWN_DEG = 22.0
_LAMP_RAMP_FRAMES = 2
# Partials of a small bell: ratio to the strike note, level, decay time in seconds.
_PARTIALS = (
    (0.5, 0.30, 0.42),
    (1.0, 1.00, 0.34),
    (1.19, 0.55, 0.26),
    (1.56, 0.35, 0.20),
    (2.0, 0.60, 0.18),
    (2.66, 0.30, 0.12),
    (4.02, 0.22, 0.07),
)


@dataclass(frozen=True)
class LabPlan:
    """What happens when, in frames and seconds from the start of the scene.

    Attributes:
        n_frames: Length of the scene.
        fps: Frames per second.
        strikes: Frame in which the hammer first touches the button, per run.
        bell_s: Time of the bell's first sample, per run.
        lamp_on: First frame in which the lamp is brighter, per switch.
        lamp_off: First frame in which it is darker again.
    """

    n_frames: int
    fps: int
    strikes: tuple[int, ...]
    bell_s: tuple[float, ...]
    lamp_on: tuple[int, ...]
    lamp_off: tuple[int, ...]

    @property
    def motion_starts(self) -> tuple[int, ...]:
        """First frame of each run that differs from the one before."""
        return tuple(strike - len(_SWING) + 1 for strike in self.strikes)


def plan_lab(seed: int, *, runs: int = 12, fps: int = 25) -> LabPlan:
    """Draw the times: strikes 1.8-3.2 s apart, bell 0.5 s (+-20 ms) later, lamp at random."""
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(1.8, 3.2, size=runs - 1)
    strikes = np.round((1.6 + np.concatenate([[0.0], np.cumsum(gaps)])) * fps).astype(int)
    bells = strikes / fps + 0.5 + rng.uniform(-0.02, 0.02, size=runs)
    n_frames = int(strikes[-1]) + round(2.4 * fps)
    lamp_on: list[int] = []
    lamp_off: list[int] = []
    at = rng.uniform(0.4, 2.0)
    while (at + 1.2) * fps < n_frames:
        lamp_on.append(round(at * fps))
        lamp_off.append(round((at + rng.uniform(0.5, 1.0)) * fps))
        at += rng.uniform(1.6, 3.6)
    return LabPlan(
        n_frames,
        fps,
        tuple(int(s) for s in strikes),
        tuple(round(float(b), 6) for b in bells),
        tuple(lamp_on),
        tuple(lamp_off),
    )


def bell(rate: int, *, note_hz: float = 880.0, length_s: float = 1.5) -> Sound:
    """One stroke of a bell: full level within half a millisecond, then a long ring.

    Returns:
        float32 [length_s * rate], peak 0.6.
    """
    t = np.arange(round(length_s * rate)) / rate
    sound = np.zeros(t.size)
    for ratio, level, decay_s in _PARTIALS:
        sound += level * np.exp(-t / decay_s) * np.sin(2 * np.pi * note_hz * ratio * t)
    sound *= np.minimum(1.0, t / 0.0005)
    sound[-rate // 10 :] *= np.linspace(1, 0, rate // 10)
    peak = float(np.abs(sound).max())
    return np.asarray(0.6 * sound / peak, dtype=np.float32)


def lab_sound(plan: LabPlan, rate: int) -> Sound:
    """The bells of the whole scene; float32 [n_frames / fps * rate]."""
    track = np.zeros(round(plan.n_frames / plan.fps * rate), np.float32)
    stroke = bell(rate)
    for time_s in plan.bell_s:
        start = round(time_s * rate)
        part = stroke[: track.size - start]
        track[start : start + part.size] += part
    return track


def lab_picture(plan: LabPlan, index: int) -> Picture:
    """Frame ``index`` of the scene; uint8 [360, 640, 3] RGB."""
    canvas = _background().copy()
    draw = ImageDraw.Draw(canvas)
    _draw_lamp(canvas, _lamp_level(plan, index))
    since = [index - s for s in plan.strikes]
    _draw_hammer(draw, _hammer_share(since))
    if any(0 <= s < _SPARK_FRAMES for s in since):
        _draw_spark(draw)
    small = canvas.resize(SIZE, Image.Resampling.BOX)
    return np.array(small, dtype=np.uint8)


def _hammer_share(since: list[int]) -> float:
    """How far down the hammer is, 0 raised to 1 on the button."""
    share = 0.0
    for age in since:
        if -len(_SWING) < age <= 0:
            share = max(share, _SWING[age + len(_SWING) - 1])
        elif 0 < age <= _HOLD_FRAMES:
            share = 1.0
        elif _HOLD_FRAMES < age <= _HOLD_FRAMES + _LIFT_FRAMES:
            way = (age - _HOLD_FRAMES) / _LIFT_FRAMES
            share = max(share, 0.5 + 0.5 * float(np.cos(np.pi * way)))
    return share


def _lamp_level(plan: LabPlan, index: int) -> float:
    for on, off in zip(plan.lamp_on, plan.lamp_off, strict=True):
        if on <= index < off + _LAMP_RAMP_FRAMES:
            rise = (index - on + 1) / _LAMP_RAMP_FRAMES
            fall = 1 - (index - off + 1) / _LAMP_RAMP_FRAMES
            return float(np.clip(min(rise, fall if index >= off else 1.0), 0.0, 1.0))
    return 0.0


def _at(*xy: float) -> tuple[float, ...]:
    return tuple(_SCALE * v for v in xy)


@cache
def _background() -> Image.Image:
    """Brick wall, wooden bench, button box, cable and bell, at drawing scale."""
    width, height = (_SCALE * v for v in SIZE)
    rng = np.random.default_rng(77)
    grain = rng.normal(0, 1, size=(height // 4, width // 4)).astype(np.float32)
    grain = np.kron(grain, np.ones((4, 4), np.float32))[:height, :width]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / _SCALE
    light = 1.0 - 0.25 * np.hypot((x - 330) / 640, (y - 120) / 360)
    wall = np.array([126, 134, 138], np.float32) * light[..., None] + 0.8 * grain[..., None]
    brick_row = np.floor(y / 26)
    mortar = ((y % 26) < 2) | (((x + 33 * (brick_row % 2)) % 66) < 2)
    wall[mortar] *= 0.86
    ring = np.sin(y * 0.55 + 2.5 * np.sin(x / 90) + np.sin(x / 37))
    wood = np.array([118, 78, 46], np.float32) + 11 * ring[..., None] + 0.8 * grain[..., None]
    picture = np.where((y > 268)[..., None], wood * (1.1 - (y[..., None] - 268) / 400), wall)
    canvas = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))
    canvas = canvas.filter(ImageFilter.GaussianBlur(1))
    draw = ImageDraw.Draw(canvas)
    draw.rectangle(_at(0, 266, 640, 271), fill=(74, 48, 28))
    _draw_stand(draw)
    _draw_box(draw)
    _draw_bell(draw)
    return canvas


def _draw_stand(draw: ImageDraw.ImageDraw) -> None:
    draw.rectangle(_at(84, 100, 100, 290), fill=(58, 62, 70))
    draw.rectangle(_at(52, 284, 132, 298), fill=(46, 50, 58))


def _draw_box(draw: ImageDraw.ImageDraw) -> None:
    draw.rounded_rectangle(_at(178, 232, 302, 300), _SCALE * 8, fill=(214, 208, 190))
    draw.rounded_rectangle(_at(178, 232, 302, 300), _SCALE * 8, outline=(90, 86, 76), width=4)
    draw.rounded_rectangle(_at(212, 216, 268, 236), _SCALE * 5, fill=(196, 34, 30))
    cable = [_at(302, 280), _at(350, 312), _at(430, 316), _at(488, 300)]
    draw.line([v for point in cable for v in point], fill=(24, 24, 28), width=8, joint="curve")


def _draw_bell(draw: ImageDraw.ImageDraw) -> None:
    draw.rectangle(_at(462, 290, 578, 302), fill=(60, 40, 26))
    draw.rectangle(_at(514, 152, 526, 292), fill=(70, 70, 76))
    draw.pieslice(_at(452, 168, 588, 312), 180, 360, fill=(206, 164, 58))
    draw.rectangle(_at(446, 238, 594, 252), fill=(176, 134, 40))
    draw.ellipse(_at(510, 150, 530, 172), fill=(120, 92, 30))
    draw.arc(_at(470, 182, 570, 300), 200, 250, fill=(250, 232, 160), width=10)


def _draw_lamp(canvas: Image.Image, level: float) -> None:
    """A hanging lamp; lit, it also throws a cone of light on the wall."""
    if level > 0:
        cone = Image.new("L", canvas.size, 0)
        ImageDraw.Draw(cone).polygon(
            _at(372, 62) + _at(408, 62) + _at(446, 190) + _at(334, 190), fill=round(90 * level)
        )
        cone = cone.filter(ImageFilter.GaussianBlur(8 * _SCALE))
        canvas.paste((255, 240, 190), (0, 0), cone)
    draw = ImageDraw.Draw(canvas)
    draw.line(_at(390, 0, 390, 40), fill=(30, 30, 34), width=6)
    draw.polygon(_at(376, 38) + _at(404, 38) + _at(418, 62) + _at(362, 62), fill=(40, 92, 78))
    dark, lit = np.array([120, 112, 92]), np.array([255, 246, 205])
    bulb = tuple(int(v) for v in dark + (lit - dark) * level)
    draw.ellipse(_at(378, 54, 402, 76), fill=bulb)


def _draw_hammer(draw: ImageDraw.ImageDraw, share: float) -> None:
    angle = np.deg2rad(_RAISED_DEG + (_DOWN_DEG - _RAISED_DEG) * share)
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]])
    pivot = np.array(_PIVOT)
    tip = pivot + _ARM * along

    def corners(points: list[npt.NDArray[np.float64]]) -> list[tuple[float, ...]]:
        return [_at(*(float(v) for v in point)) for point in points]

    handle = [pivot + 6 * across, tip + 6 * across, tip - 6 * across, pivot - 6 * across]
    draw.polygon(corners(handle), fill=(150, 104, 58))
    near, far = tip - 24 * along, tip + 24 * along
    head = [near - 42 * across, far - 42 * across, far + 50 * across, near + 50 * across]
    draw.polygon(corners(head), fill=(52, 56, 66))
    face = [near + 40 * across, far + 40 * across, far + 50 * across, near + 50 * across]
    draw.polygon(corners(face), fill=(150, 154, 164))
    x, y = _PIVOT
    draw.ellipse(_at(x - 11, y - 11, x + 11, y + 11), fill=(28, 30, 36))


def _draw_spark(draw: ImageDraw.ImageDraw) -> None:
    for turn in np.linspace(-0.15, np.pi + 0.15, 9):
        way = np.array([np.cos(turn), -np.sin(turn)])
        inner, outer = np.array([240, 218]) + 36 * way, np.array([240, 218]) + 62 * way
        draw.line(_at(*inner, *outer), fill=(255, 224, 90), width=8)
