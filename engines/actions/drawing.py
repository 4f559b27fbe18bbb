"""Draws people whose joints are known: the pose estimator takes them for people.

A figure is told by where its joints are in units of its own height, origin in the middle of the
body, y down; ``draw_person`` puts it in a picture. Left is the person's own left, who faces the
camera: it is on the right of the picture.
"""

from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from engines.actions.pose.geometry import Picture
from engines.actions.skeleton import JOINTS

Joints = dict[str, tuple[float, float]]
"""Places by the names of ``JOINTS``."""
Point = npt.NDArray[np.float64]
"""float64 [2], pixels."""

_LARGER = 3
_SKIN = (224, 172, 140)
_HAIR = (70, 45, 30)
_SHIRT = (40, 90, 170)
_TROUSERS = (50, 50, 60)
_SHOES = (30, 25, 25)


@dataclass(frozen=True)
class Place:
    """Where a figure stands."""

    x: float
    y: float
    height: float
    """Of the figure in pixels."""
    angle: float = 0.0
    """Radians clockwise."""

    def point(self, joint: tuple[float, float]) -> Point:
        """A point of the figure in pixels of the picture."""
        return np.array([self.x, self.y]) + self.height * _turned(joint, self.angle)


def room(width: int, height: int) -> Picture:
    """A plain wall and floor."""
    picture = np.full((height, width, 3), (200, 196, 186), np.uint8)
    picture[round(height * 0.8) :] = (150, 120, 95)
    shade = np.linspace(1.0, 0.9, width)[None, :, None]
    return np.asarray(picture * shade, dtype=np.uint8)


def draw_people(
    size: tuple[int, int], *people: tuple[Joints, Place]
) -> tuple[Picture, npt.NDArray[np.float64]]:
    """Figures in a room, drawn larger and made smaller: their lines are whole pixels wide.

    Args:
        size: width and height of the picture.
        people: each with where it stands.

    Returns:
        uint8 [height, width, 3] RGB, and float64 [people, 13, 2]: joints in its pixels.
    """
    large = room(_LARGER * size[0], _LARGER * size[1])
    truth = [
        draw_person(
            large,
            joints,
            Place(_LARGER * at.x, _LARGER * at.y, _LARGER * at.height, at.angle),
        )
        / _LARGER
        for joints, at in people
    ]
    return np.asarray(cv2.resize(large, size, interpolation=cv2.INTER_AREA), np.uint8), np.array(
        truth
    )


def draw_person(picture: Picture, joints: Joints, place: Place) -> npt.NDArray[np.float64]:
    """Draw a figure into a picture.

    Returns:
        float64 [13, 2]: where its joints are in pixels, in the order of ``JOINTS``.
    """
    at = {name: place.point(joint) for name, joint in joints.items()}
    unit = place.height

    def limb(names: tuple[str, ...], thick: float, colour: tuple[int, int, int]) -> None:
        for first, second in pairwise(names):
            _line(picture, at[first], at[second], thick * unit, colour)

    for side in ("left", "right"):
        limb((f"{side}_hip", f"{side}_knee", f"{side}_ankle"), 0.075, _TROUSERS)
        toe = at[f"{side}_ankle"] + unit * _turned((0.0, 0.03), place.angle)
        _line(picture, at[f"{side}_ankle"], toe, 0.06 * unit, _SHOES)
    corners = ("left_shoulder", "right_shoulder", "right_hip", "left_hip")
    body = np.array([at[name] for name in corners])
    cv2.fillPoly(picture, [np.round(body).astype(np.int32)], _SHIRT, cv2.LINE_AA)
    for first, second in zip(corners, (*corners[1:], corners[0]), strict=True):
        _line(picture, at[first], at[second], 0.06 * unit, _SHIRT)
    for side in ("left", "right"):
        limb((f"{side}_shoulder", f"{side}_elbow"), 0.06, _SHIRT)
        limb((f"{side}_elbow", f"{side}_wrist"), 0.045, _SKIN)
        hand = at[f"{side}_wrist"] + 0.25 * (at[f"{side}_wrist"] - at[f"{side}_elbow"])
        _line(picture, at[f"{side}_wrist"], hand, 0.05 * unit, _SKIN)
    _head(picture, joints["head"], place)
    return np.array([at[name] for name in JOINTS])


def _head(picture: Picture, nose: tuple[float, float], place: Place) -> None:
    x, y = nose
    unit = place.height
    neck = (place.point((x, y + 0.05)), place.point((x, y + 0.12)))
    _line(picture, *neck, 0.05 * unit, _SKIN)
    _oval(picture, place.point((x, y - 0.02)), (0.062, 0.080), place, _HAIR)
    _oval(picture, place.point((x, y)), (0.050, 0.068), place, _SKIN)
    for side in (-1, 1):
        eye = place.point((x + side * 0.02, y - 0.015))
        _oval(picture, eye, (0.010, 0.006), place, (250, 250, 250))
        _oval(picture, eye, (0.005, 0.006), place, (30, 30, 40))
        inner, outer = (place.point((x + side * dx, y - 0.03)) for dx in (0.010, 0.031))
        _line(picture, inner, outer, 0.006 * unit, _HAIR)
    _line(
        picture,
        place.point((x, y - 0.008)),
        place.point((x, y + 0.012)),
        0.008 * unit,
        (190, 130, 105),
    )
    right, left = (place.point((x + dx, y + 0.035)) for dx in (-0.018, 0.018))
    _line(picture, right, left, 0.009 * unit, (165, 60, 60))


def _turned(vector: tuple[float, float], angle: float) -> Point:
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]])


def _line(
    picture: Picture,
    first: Point,
    second: Point,
    thickness: float,
    colour: tuple[int, int, int],
) -> None:
    begin, end = ((round(float(x)), round(float(y))) for x, y in (first, second))
    cv2.line(picture, begin, end, colour, max(1, round(thickness)), cv2.LINE_AA)


def _oval(
    picture: Picture,
    middle: Point,
    radii: tuple[float, float],
    place: Place,
    colour: tuple[int, int, int],
) -> None:
    x, y = np.round(middle)
    centre = (int(x), int(y))
    axes = (max(1, round(radii[0] * place.height)), max(1, round(radii[1] * place.height)))
    cv2.ellipse(
        picture, centre, axes, float(np.degrees(place.angle)), 0, 360, colour, -1, cv2.LINE_AA
    )
