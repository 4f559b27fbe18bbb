"""Two views of one made scene: where people of the second view are in the first.

The scene is a painted wall seen by a camera that turns (and may zoom): the map between two such
views is one homography, so every error can be measured. People stand before the wall; in the second
view they stand elsewhere, and their joints have to be told in the first view's pixels.
"""

import time
from typing import Final

import cv2
import numpy as np
import numpy.typing as npt

from engines.actions.registration import people_mask, register
from flows.bench import BenchRow

Picture = npt.NDArray[np.uint8]
Matrix = npt.NDArray[np.float64]

SIZE: Final = (384, 216)
YAWS: Final = (5.0, 10.0, 20.0, 30.0)
SCENES: Final = 5
PLACES: Final = (150.0, 230.0)
"""Where somebody stands in the first view and in the second, pixels from the left."""
BODY: Final = 120.0
"""Height of a person, pixels: errors are told as a share of it."""
MAX_ERROR: Final = 0.02
"""Of a body's height."""
_SHAPE: Final = (
    (0.0, -0.46), (0.1, -0.33), (-0.1, -0.33), (0.14, -0.16), (-0.14, -0.16), (0.15, 0.0),
    (-0.15, 0.0), (0.06, 0.02), (-0.06, 0.02), (0.07, 0.26), (-0.07, 0.26), (0.07, 0.5),
    (-0.07, 0.5),
)  # fmt: skip
"""Somebody who stands, body heights about the hips."""


def view_rows() -> list[BenchRow]:
    """Error of joints brought from one view to the other, without and with registration."""
    began = time.process_time()
    pairs = [_pair(yaw, 10 * scene) for yaw in YAWS for scene in range(SCENES)]
    spent = time.process_time() - began
    mapped = [after for _, after in pairs if after is not None]
    strangers = sum(_strange(scene) for scene in range(SCENES))
    error = float(np.median(mapped)) if mapped else None
    figures: dict[str, float | int | str | None] = {
        "pairs": len(pairs),
        "median_error_without": round(float(np.median([before for before, _ in pairs])), 4),
        "median_error": None if error is None else round(error, 4),
        "worst_error": round(max(mapped), 4) if mapped else None,
        "no_map": len(pairs) - len(mapped),
        "maps_between_different_scenes": strangers,
        "cpu_s_a_pair": round(spent / len(pairs), 3),
        "unit": "body heights",
    }
    return [
        BenchRow(
            name="two views of one scene brought together",
            figures=figures,
            must=f"median error <= {MAX_ERROR}, none between different scenes",
            holds=error is not None and error <= MAX_ERROR and not strangers,
        )
    ]


def _pair(yaw: float, seed: int) -> tuple[float, float | None]:
    """Error of the joints as they are in the second view, and as they are mapped; None: no map."""
    matrix = turned_camera(SIZE, yaw, 2.0, 1.05)
    views = two_views(SIZE, seed, matrix)
    first, second = (_stand(view, x) for view, x in zip(views, PLACES, strict=True))
    truth = _project(np.asarray(np.linalg.inv(matrix), np.float64), second)
    found = register(*views, first_people=_mask(first), second_people=_mask(second))
    after = None if found is None else _error(found.to_first(second), truth)
    return _error(second, truth), after


def _strange(scene: int) -> bool:
    """Whether two different scenes are taken for one."""
    first, second = (two_views(SIZE, scene + add, np.eye(3))[0] for add in (0, 500))
    return register(first, second) is not None


def _stand(view: Picture, x: float) -> Matrix:
    """Draw somebody plain and give their joints: float64 [13, 2] pixels."""
    joints = np.array(_SHAPE) * BODY + np.array([x, SIZE[1] * 0.55])
    hull = cv2.convexHull(joints.astype(np.float32)).round().astype(np.int32)
    cv2.fillConvexPoly(view, hull, (60, 40, 110))
    return np.asarray(joints, np.float64)


def _mask(joints: Matrix) -> npt.NDArray[np.bool_]:
    return people_mask(SIZE[::-1], np.column_stack([joints, np.ones(len(joints))])[None])


def _project(matrix: Matrix, points: Matrix) -> Matrix:
    extended = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return np.asarray(extended[:, :2] / extended[:, 2:])


def _error(found: Matrix, truth: Matrix) -> float:
    """Mean distance, body heights."""
    return float(np.linalg.norm(found - truth, axis=1).mean()) / BODY


def painted_wall(width: int, height: int, seed: int) -> Picture:
    """Blots and shapes of all sizes: uint8 [height, width, 3]."""
    rng = np.random.default_rng(seed)
    wall = np.full((height, width, 3), 150.0)
    for cell in (96, 32, 10):
        coarse = rng.normal(0, 22, (height // cell + 2, width // cell + 2, 3)).astype(np.float32)
        wall += cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    wall = np.ascontiguousarray(np.clip(wall, 0, 255).astype(np.uint8))
    for _ in range(60):
        x, y = int(rng.integers(0, width)), int(rng.integers(0, height))
        w, h = (int(v) for v in rng.integers(width // 60, width // 10, 2))
        colour = tuple(int(v) for v in rng.integers(30, 230, 3))
        cv2.rectangle(wall, (x, y), (x + w, y + h), colour, -1 if rng.random() < 0.6 else 3)
    return wall


def turned_camera(size: tuple[int, int], yaw_deg: float, pitch_deg: float, zoom: float) -> Matrix:
    """float64 [3, 3]: pixels of the straight view to those of a camera that turned.

    Args:
        size: width and height of both pictures; the focal length is the width.
        yaw_deg: to the right.
        pitch_deg: upwards.
        zoom: of the turned camera.
    """
    width, height = size
    yaw, pitch = np.radians([yaw_deg, pitch_deg])
    straight = np.array([[width, 0, width / 2], [0, width, height / 2], [0, 0, 1]], np.float64)
    longer = straight.copy()
    longer[0, 0] = longer[1, 1] = width * zoom
    about_y = np.array([[np.cos(yaw), 0, -np.sin(yaw)], [0, 1, 0], [np.sin(yaw), 0, np.cos(yaw)]])
    about_x = np.array(
        [[1, 0, 0], [0, np.cos(pitch), np.sin(pitch)], [0, -np.sin(pitch), np.cos(pitch)]]
    )
    return np.asarray(longer @ about_x @ about_y @ np.linalg.inv(straight))


def two_views(size: tuple[int, int], seed: int, matrix: Matrix) -> tuple[Picture, Picture]:
    """The wall seen straight and through ``matrix``, with noise and another exposure."""
    width, height = size
    wide = painted_wall(3 * width, 3 * height, seed)
    shift = np.array([[1, 0, -width], [0, 1, -height], [0, 0, 1]], np.float64)
    rng = np.random.default_rng(seed + 1)
    views = []
    for view, gain in ((shift, 1.0), (matrix @ shift, 0.9)):
        seen = cv2.warpPerspective(wide, view, size, flags=cv2.INTER_LINEAR) * gain
        views.append(np.clip(seen + rng.normal(0, 3, seen.shape), 0, 255).astype(np.uint8))
    return views[0], views[1]
