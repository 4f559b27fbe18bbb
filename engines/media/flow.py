"""Dense optical flow between two pictures, where a stage asks for it.

DIS (Kroeger et al., 2016) from OpenCV: no weights, about 10 ms for a small picture.
"""

from typing import Final

import cv2
import numpy as np
import numpy.typing as npt

from engines.errors import EngineError

UInt8Array = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float32]

LONG_EDGE: Final = 320
_CAMERA_QUANTILE: Final = 50


def dense_flow(before: UInt8Array, after: UInt8Array, long_edge: int = LONG_EDGE) -> FloatArray:
    """Where each pixel of ``before`` went.

    Args:
        before: uint8 [h, w, 3] RGB.
        after: uint8 of the same shape.
        long_edge: both are reduced to this longer side first.

    Returns:
        float32 [h', w', 2]: x to the right and y downwards, as fractions of the picture's width
        and height, so that flows of different sizes compare.

    Raises:
        EngineError: the pictures differ in shape.
    """
    if before.shape != after.shape:
        msg = f"flow between pictures of {before.shape} and {after.shape}"
        raise EngineError(msg)
    height, width = before.shape[:2]
    scale = min(1.0, long_edge / max(height, width))
    size = (max(16, round(width * scale)), max(16, round(height * scale)))
    grays = [
        cv2.cvtColor(cv2.resize(p, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
        for p in (before, after)
    ]
    method = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
    pixels = method.calc(grays[0], grays[1], None)
    return np.asarray(pixels / np.array(size, dtype=np.float32), dtype=np.float32)


def split_camera(flow: FloatArray) -> tuple[tuple[float, float], FloatArray]:
    """Take the camera's part out of a flow.

    Args:
        flow: float32 [h, w, 2] of ``dense_flow``.

    Returns:
        The median movement (x, y) as the camera's, and float32 [h, w] with how far each pixel
        moved apart from it, both as fractions of the picture.
    """
    camera = np.percentile(flow.reshape(-1, 2), _CAMERA_QUANTILE, axis=0)
    own = np.linalg.norm(flow - camera.astype(np.float32), axis=2)
    return (float(camera[0]), float(camera[1])), np.asarray(own, dtype=np.float32)
