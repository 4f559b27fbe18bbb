"""Training clips as the pose estimator sees them: drawn as a person, found and followed again.

A sensor's joints are not an estimator's, which puts them elsewhere, shakes, and loses hands in
front of a body. Who has learned from the one alone does not know the other: see docs/actions.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.drawing import Place, draw_people
from engines.actions.normalise import fill_holes, sample_at, turn
from engines.actions.pose.find import LookedAt, find_people
from engines.actions.pose.geometry import Picture
from engines.actions.recognise import steady_runs
from engines.actions.skeleton import JOINTS, SkeletonClip
from engines.contracts.actions import ActionsParams, PoseParams

RATE_HZ: Final = 12
"""Pictures a second, as the stage ``pose`` is shown them."""
TURN_DEGREES: Final = 45.0
_STREAM: Final = 9
_TICKS: Final = 1000
_SIZE: Final = (384, 288)
_HEIGHT: Final = (0.5, 0.85)
"""Of all that the person reaches in the clip, heights of the picture."""
_WIDTH: Final = 0.9
_DOWN: Final = 6
"""Pixels below the middle: hair reaches further above the nose than shoes below the ankles."""
_GRAIN: Final = 4.0
"""Standard deviation of the noise, grey levels of 255."""
_MIN_PICTURES: Final = 6
_TINY: Final = 1e-6


@dataclass(frozen=True, eq=False)
class ToSee:
    """A clip to be drawn."""

    clip: SkeletonClip
    """Of the shared joints."""
    has_depth: bool
    """Then it is seen from up to ``TURN_DEGREES`` aside."""
    seed: tuple[int, int]
    """Of turn, size and noise: of all clips, and the clip's number."""


def seen_by_estimator(wanted: ToSee) -> SkeletonClip | None:
    """The same movement out of pictures.

    Returns:
        The longest piece that was found of the person; None where that is nobody, the clip is too
        short, or a joint was hardly seen to begin with.

    Raises:
        ModelMissingError, ModelHashError: the pose networks are not there, or not those.
    """
    rng, clip = np.random.default_rng([_STREAM + wanted.seed[0], wanted.seed[1]]), wanted.clip
    if wanted.has_depth:
        clip = turn(clip, float(rng.uniform(-TURN_DEGREES, TURN_DEGREES)))
    joints, known = fill_holes(clip, JOINTS)
    last_s = (len(joints) - 1) / clip.rate_hz
    moments = np.arange(0, last_s + 1e-9, 1 / RATE_HZ) * clip.rate_hz
    if not known.all() or len(moments) < _MIN_PICTURES:
        return None
    film = ((number * _TICKS, shown) for number, shown in enumerate(_film(joints, moments, rng)))
    base = Fraction(1, RATE_HZ * _TICKS)
    looked_at = LookedAt(base, float(RATE_HZ), len(moments) / RATE_HZ)
    document, rows = find_people(film, looked_at, PoseParams(threads=1))
    found = [
        run.clip
        for track in document.tracks
        for run in steady_runs(track, document, rows.joints, rows.pts, ActionsParams())
    ]
    return max(found, key=lambda run: len(run.joints), default=None)


def _film(
    joints: npt.NDArray[np.float64], moments: npt.NDArray[np.float64], rng: np.random.Generator
) -> Iterator[Picture]:
    """Pictures of a person before a camera that stands still, uint8 [h, w, 3] RGB.

    Args:
        joints: float64 [T, 13, 3]; z is not seen.
        moments: fractional rows to show.
        rng: for size and noise.
    """
    flat = sample_at(joints, moments)[..., :2]
    low, high = flat.min(axis=(0, 1)), flat.max(axis=(0, 1))
    reach = np.maximum(high - low, _TINY)
    width, height = _SIZE
    scale = min(rng.uniform(*_HEIGHT) * height / reach[1], _WIDTH * width / reach[0])
    body = float(np.percentile(np.ptp(flat[..., 1], axis=1), 90)) * scale
    place = Place(width / 2, height / 2 + _DOWN, body)
    for pose in (flat - (low + high) / 2) * scale / body:
        shown, _ = draw_people(_SIZE, (dict(zip(JOINTS, map(tuple, pose), strict=True)), place))
        noisy = shown + rng.normal(0, _GRAIN, shown.shape)
        yield np.asarray(np.clip(noisy, 0, 255), np.uint8)
