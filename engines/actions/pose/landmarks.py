"""The 33 landmarks of each person in a picture: BlazePose GHUM, the full network."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from engines.actions.pose.geometry import BodySquare, Floats, Picture, turn
from engines.actions.pose.networks import LANDMARK_SIZE
from engines.runtime.batching import BatchRunner
from engines.runtime.session import Session

NUM_LANDMARKS = 33
_HIPS, _RIM = 33, 34
"""Two further points that the network gives: they place the square in the next picture."""
_ALL_POINTS = 39


@dataclass(frozen=True, eq=False)
class Pose:
    """One person in one picture."""

    presence: float
    """Probability that the square shows a person at all."""
    points: Floats
    """float32 [33, 4]: x, y in pixels of the picture, z in the same unit with 0 at the hips and
    smaller when nearer, and visibility 0-1."""
    world: Floats
    """float32 [33, 3]: metres from the middle of the hips, x right, y down, z away."""
    square: BodySquare
    """Where to look for this person in the next picture."""


class LandmarkFinder:
    """See the module."""

    def __init__(self, session: Session, *, batch_size: int) -> None:
        """Keep the network of ``engines.actions.pose.networks.LANDMARKS``."""
        self._runner = BatchRunner(session, batch_size)

    def find(self, picture: Picture, squares: Sequence[BodySquare]) -> list[Pose]:
        """The pose in each square, in their order.

        Args:
            picture: uint8 [h, w, 3] RGB.
            squares: where people are thought to be.
        """
        if not squares:
            return []
        crops = np.stack([square.crop(picture, LANDMARK_SIZE) for square in squares])
        outputs = self._runner.run({"picture": crops})
        raw = outputs["landmarks"].reshape(-1, _ALL_POINTS, 5).astype(np.float32)
        world = outputs["world"].reshape(-1, _ALL_POINTS, 3).astype(np.float32)
        presence = outputs["presence"].reshape(-1)
        return [
            _pose(square, float(presence[i]), raw[i], world[i]) for i, square in enumerate(squares)
        ]


def _pose(square: BodySquare, presence: float, raw: Floats, world: Floats) -> Pose:
    placed = square.to_picture((raw[:, :2] / LANDMARK_SIZE).astype(np.float32))
    depth = raw[:NUM_LANDMARKS, 2:3] / LANDMARK_SIZE * square.size
    visibility = expit(raw[:NUM_LANDMARKS, 3:4])
    points = np.concatenate([placed[:NUM_LANDMARKS], depth, visibility], axis=1)
    return Pose(
        presence=presence,
        points=points.astype(np.float32),
        world=turn(world[:NUM_LANDMARKS], square.angle),
        square=BodySquare.from_points(placed[_HIPS], placed[_RIM]),
    )
