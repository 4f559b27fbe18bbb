"""Made scenes of coloured shapes, with the exact region that "red circle" means."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from engines.contracts.vision import Box

SIDE = 64
COLOURS = {
    "red": (215, 40, 40),
    "green": (40, 165, 60),
    "blue": (45, 75, 215),
    "yellow": (230, 210, 50),
    "white": (240, 240, 240),
    "purple": (140, 50, 160),
}
SHAPES = ("circle", "square", "triangle", "cross", "ring")
WORDS = (*COLOURS, *SHAPES)
_OBJECTS = (3, 6)
_HALF = (5, 9)
_NOISE = 6


@dataclass(frozen=True)
class Scene:
    """A picture and what is in it."""

    picture: npt.NDArray[np.uint8]
    """uint8 [64, 64, 3] RGB"""
    objects: tuple[tuple[str, str, Box], ...]
    """Colour, shape and region of each; no two share colour and shape."""


def make_scene(rng: np.random.Generator) -> Scene:
    """Three to six shapes, apart from each other, on an uneven ground.

    Many share a colour or a shape with another one, so that neither word alone is enough.
    """
    coarse = rng.integers(60, 130, (4, 4, 3)).astype(np.float32)
    ground = cv2.resize(coarse, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    picture = ground.astype(np.float32)
    wanted = int(rng.integers(_OBJECTS[0], _OBJECTS[1] + 1))
    colours = rng.permutation(list(COLOURS))[:3]
    shapes = rng.permutation(SHAPES)[:3]
    pairs = [(str(c), str(s)) for c in colours for s in shapes]
    objects: list[tuple[str, str, Box]] = []
    for place in rng.permutation(len(pairs)):
        if len(objects) == wanted:
            break
        half = int(rng.integers(_HALF[0], _HALF[1] + 1))
        x, y = (int(v) for v in rng.integers(half, SIDE - half, 2))
        if any(_near(x, y, half, box) for _, _, box in objects):
            continue
        colour, shape = pairs[place]
        light = rng.uniform(0.75, 1.1)
        _draw(picture, shape, (x, y), half, np.clip(np.array(COLOURS[colour]) * light, 0, 255))
        size = (2 * half) / SIDE
        objects.append(
            (colour, shape, Box(x=(x - half) / SIDE, y=(y - half) / SIDE, w=size, h=size))
        )
    noise = rng.standard_normal(picture.shape, np.float32) * _NOISE
    return Scene(np.clip(picture + noise, 0, 255).astype(np.uint8), tuple(objects))


def _near(x: int, y: int, half: int, box: Box) -> bool:
    middle_x, middle_y = (box.x + box.w / 2) * SIDE, (box.y + box.h / 2) * SIDE
    apart = half + box.w / 2 * SIDE + 1
    return abs(x - middle_x) < apart and abs(y - middle_y) < apart


def _draw(
    picture: npt.NDArray[np.floating],
    shape: str,
    middle: tuple[int, int],
    half: int,
    colour: npt.NDArray[np.floating],
) -> None:
    mask = np.zeros((SIDE, SIDE), np.uint8)
    x, y = middle
    if shape == "circle":
        cv2.circle(mask, middle, half, 255, -1, cv2.LINE_AA)
    elif shape == "ring":
        cv2.circle(mask, middle, half - 1, 255, 3, cv2.LINE_AA)
    elif shape == "square":
        cv2.rectangle(mask, (x - half, y - half), (x + half, y + half), 255, -1)
    elif shape == "triangle":
        corners = np.array([(x, y - half), (x - half, y + half), (x + half, y + half)], np.int32)
        cv2.fillPoly(mask, [corners], 255, cv2.LINE_AA)
    else:
        cv2.line(mask, (x - half, y), (x + half, y), 255, 4)
        cv2.line(mask, (x, y - half), (x, y + half), 255, 4)
    share = mask[..., None].astype(np.float32) / 255
    picture[:] = picture * (1 - share) + colour * share
