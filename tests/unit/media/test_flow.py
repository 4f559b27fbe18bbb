"""Optical flow has the right direction and size, and the camera's part comes out of it."""

import cv2
import numpy as np
import pytest

from engines.errors import EngineError
from engines.media.flow import dense_flow, split_camera


def _texture() -> np.ndarray:
    rng = np.random.default_rng(1)
    rough = rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)
    return np.asarray(cv2.resize(rough, (480, 320), interpolation=cv2.INTER_CUBIC))


def test_a_shift_is_measured_as_a_share_of_the_picture() -> None:
    wide = _texture()
    flow = dense_flow(wide[40:280, 40:360], wide[34:274, 48:368])
    inner = flow[30:-30, 30:-30].reshape(-1, 2)
    assert np.median(inner, axis=0) == pytest.approx((-8 / 320, 6 / 240), abs=0.002)


def test_the_camera_is_told_from_what_moves() -> None:
    wide = _texture()
    before, after = wide[40:280, 40:360].copy(), wide[40:280, 46:366].copy()
    patch = cv2.resize(wide[:40, :40], (60, 60))
    before[100:160, 60:120] = patch
    after[100:160, 70:130] = patch
    camera, own = split_camera(dense_flow(before, after))
    assert camera == pytest.approx((-6 / 320, 0), abs=0.004)
    assert own[115:145, 75:105].mean() > 5 * own[:80, 150:].mean()


def test_shapes_must_agree() -> None:
    with pytest.raises(EngineError, match="240"):
        dense_flow(np.zeros((240, 320, 3), np.uint8), np.zeros((240, 321, 3), np.uint8))
