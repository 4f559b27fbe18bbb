"""One made scene from two views, with the map between them known exactly.

The scene is a painted wall seen by a camera that turns (and may zoom): the map between two such
views is one homography. A drawn person stands before it, in each view where the test says.
"""

import cv2
import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]
Matrix = npt.NDArray[np.float64]


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
