"""Drawn people whose joints are known: BlazePose takes them for people, so it can be measured.

A figure is given by where its joints are in units of its own height; ``draw_person`` places it in
a picture. Left is the person's own left, who faces the camera: it is on the right of the picture.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

import cv2
import numpy as np
import numpy.typing as npt

from engines.actions.pose.find import LookedAt, PoseRows, find_people
from engines.contracts.actions import PoseDocument, PoseParams

BASE: Final = Fraction(1, 12_000)
STEP: Final = 1000
"""Ticks between pictures: twelve a second."""
Picture = npt.NDArray[np.uint8]
Joints = dict[str, tuple[float, float]]

BLAZEPOSE: Final = {
    "nose": 0,
    "left_shoulder": 11,
    "right_shoulder": 12,
    "left_elbow": 13,
    "right_elbow": 14,
    "left_wrist": 15,
    "right_wrist": 16,
    "left_hip": 23,
    "right_hip": 24,
    "left_knee": 25,
    "right_knee": 26,
    "left_ankle": 27,
    "right_ankle": 28,
}
STANDING: Final[Joints] = {
    "nose": (0.0, -0.41),
    "left_shoulder": (0.11, -0.30),
    "right_shoulder": (-0.11, -0.30),
    "left_elbow": (0.16, -0.13),
    "right_elbow": (-0.16, -0.13),
    "left_wrist": (0.18, 0.03),
    "right_wrist": (-0.18, 0.03),
    "left_hip": (0.06, 0.02),
    "right_hip": (-0.06, 0.02),
    "left_knee": (0.07, 0.24),
    "right_knee": (-0.07, 0.24),
    "left_ankle": (0.075, 0.45),
    "right_ankle": (-0.075, 0.45),
}
"""Upright, arms hanging; origin in the middle of the body, y down."""

_SKIN = (224, 172, 140)
_HAIR = (70, 45, 30)
_SHIRT = (40, 90, 170)
_TROUSERS = (50, 50, 60)
_SHOES = (30, 25, 25)


def raised_arm(angle: float) -> Joints:
    """Standing, the right forearm up and turned by ``angle`` radians."""
    elbow = (-0.25, -0.32)
    wrist = (elbow[0] - 0.16 * float(np.sin(angle)), elbow[1] - 0.16 * float(np.cos(angle)))
    return {**STANDING, "right_elbow": elbow, "right_wrist": wrist}


def spread_arms(angle: float) -> Joints:
    """Standing, both arms straight and lifted by ``angle`` radians from hanging."""
    joints = dict(STANDING)
    for side, sign in (("left", 1), ("right", -1)):
        x, y = STANDING[f"{side}_shoulder"]
        along = (sign * float(np.sin(angle)), float(np.cos(angle)))
        for joint, length in (("elbow", 0.17), ("wrist", 0.33)):
            joints[f"{side}_{joint}"] = (x + length * along[0], y + length * along[1])
    return joints


@dataclass(frozen=True)
class Place:
    """Where a figure stands."""

    x: float
    y: float
    height: float
    """Of the figure in pixels."""
    angle: float = 0.0
    """Radians clockwise."""

    def point(self, joint: tuple[float, float]) -> npt.NDArray[np.float64]:
        """A point of the figure in pixels of the picture."""
        cos, sin = np.cos(self.angle), np.sin(self.angle)
        x, y = joint
        turned = np.array([cos * x - sin * y, sin * x + cos * y])
        return np.array([self.x, self.y]) + self.height * turned


def room(width: int, height: int) -> Picture:
    """A plain wall and floor."""
    picture = np.full((height, width, 3), (200, 196, 186), np.uint8)
    picture[round(height * 0.8) :] = (150, 120, 95)
    shade = np.linspace(1.0, 0.9, width)[None, :, None]
    return np.asarray(picture * shade, dtype=np.uint8)


def draw_person(picture: Picture, joints: Joints, place: Place) -> npt.NDArray[np.float64]:
    """Draw a figure into a picture.

    Returns:
        float64 [13, 2]: where its joints are in pixels, in the order of ``BLAZEPOSE``.
    """
    at = {name: place.point(joint) for name, joint in joints.items()}
    unit = place.height

    def limb(names: tuple[str, ...], thick: float, colour: tuple[int, int, int]) -> None:
        for first, second in pairwise(names):
            _line(picture, at[first], at[second], thick * unit, colour)

    for side in ("left", "right"):
        limb((f"{side}_hip", f"{side}_knee", f"{side}_ankle"), 0.075, _TROUSERS)
        toe = at[f"{side}_ankle"] + place.height * _turned((0.0, 0.03), place.angle)
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
    _head(picture, joints["nose"], place)
    return np.array([at[name] for name in BLAZEPOSE])


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
        brow = [place.point((x + side * dx, y - 0.03)) for dx in (0.010, 0.031)]
        _line(picture, *brow, 0.006 * unit, _HAIR)
    _line(
        picture,
        place.point((x, y - 0.008)),
        place.point((x, y + 0.012)),
        0.008 * unit,
        (190, 130, 105),
    )
    mouth = [place.point((x + dx, y + 0.035)) for dx in (-0.018, 0.018)]
    _line(picture, *mouth, 0.009 * unit, (165, 60, 60))


def _turned(vector: tuple[float, float], angle: float) -> npt.NDArray[np.float64]:
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]])


def _line(
    picture: Picture,
    first: npt.NDArray[np.float64],
    second: npt.NDArray[np.float64],
    thickness: float,
    colour: tuple[int, int, int],
) -> None:
    ends = [tuple(int(v) for v in np.round(point)) for point in (first, second)]
    cv2.line(picture, *ends, colour, max(1, round(thickness)), cv2.LINE_AA)


def _oval(
    picture: Picture,
    middle: npt.NDArray[np.float64],
    radii: tuple[float, float],
    place: Place,
    colour: tuple[int, int, int],
) -> None:
    centre = tuple(int(v) for v in np.round(middle))
    axes = tuple(max(1, round(radius * place.height)) for radius in radii)
    cv2.ellipse(
        picture, centre, axes, float(np.degrees(place.angle)), 0, 360, colour, -1, cv2.LINE_AA
    )


def drawn(
    size: tuple[int, int], *people: tuple[dict[str, tuple[float, float]], Place]
) -> tuple[Picture, np.ndarray]:
    """A picture, three times as large when drawn, and float [people, 13, 2] joints in pixels."""
    large = room(size[0] * 3, size[1] * 3)
    truth = [
        draw_person(large, joints, Place(p.x * 3, p.y * 3, p.height * 3, p.angle)) / 3
        for joints, p in people
    ]
    return cv2.resize(large, size, interpolation=cv2.INTER_AREA), np.array(truth)


def follow(pictures: Iterable[Picture], **params: object) -> tuple[PoseDocument, PoseRows]:
    """Twelve pictures a second."""
    shown = list(pictures)
    looked_at = LookedAt(time_base=BASE, rate_hz=12.0, covered_s=len(shown) / 12)
    timed = ((i * STEP, picture) for i, picture in enumerate(shown))
    return find_people(timed, looked_at, PoseParams(threads=1, **params))
