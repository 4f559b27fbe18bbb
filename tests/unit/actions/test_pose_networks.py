"""The two networks: the numbers of another interpreter, and the same for every batch."""

import numpy as np
import pytest

from engines.actions.pose.describe import DETECTOR, LANDMARKS, describe_pose
from engines.actions.pose.networks import open_network
from engines.contracts.actions import PoseParams
from engines.errors import EngineError, UsageError
from engines.runtime.session import Session

# ai-edge-litert 2.3.0 (TensorFlow Lite's own interpreter, one thread) on ``pattern(size)``,
# scaled to -1..1 for the detector and 0..1 for the landmarks; outputs Identity, Identity_1, _4.
ORACLE_BOXES = {
    0: [-4.705622, -6.696016, -2.767351, -7.758912, 3.830808, 3.834685],
    777: [-0.245444, -2.342943, 44.349701, 44.348514, -0.405594, -42.751850],
    1568: [-2.402953, 1.244570, 37.220627, 37.198952, 31.972141, 59.216476],
    1900: [1.129560, 4.646324, 44.900158, 44.869205, -132.013672, 167.852356],
    2253: [0.285988, -0.166822, 0.136121, -0.024234, 0.032041, 0.060817],
}
ORACLE_SCORES = {0: -77.413643, 777: -7.498500, 1568: -6.605263, 1900: -7.706414, 2253: -29.071823}
ORACLE_LANDMARKS = [
    *(138.736359, 135.189362, 140.236084, 138.345673, 152.622665, 115.315622, 144.816772),
    *(113.980331, 150.250412, 132.478745, 147.360962, 144.715042, 115.252945),
]
ORACLE_PRESENCE = 0.00745172
ORACLE_WORLD = [
    *(-0.045675, -0.068639, -0.040489, -0.051064, 0.073160, -0.272491, 0.012301),
    *(-0.276050, 0.036404, -0.083953, 0.029634, 0.001705, -0.081457),
]


def pattern(size: int) -> np.ndarray:
    """uint8 [size, size, 3]: two ramps and a chequerboard."""
    y, x = np.mgrid[0:size, 0:size]
    squares = ((x // 16 + y // 16) % 2) * 200 + 20
    return np.stack([x * 255 // (size - 1), y * 255 // (size - 1), squares], -1).astype(np.uint8)


@pytest.fixture(scope="module")
def detector() -> Session:
    return open_network(DETECTOR, device="cpu", threads=1)


@pytest.fixture(scope="module")
def landmarks() -> Session:
    return open_network(LANDMARKS, device="cpu", threads=1)


def test_the_detector_gives_the_numbers_of_another_interpreter(detector):
    outputs = detector.run({"picture": pattern(224)[None]})
    for anchor, values in ORACLE_BOXES.items():
        np.testing.assert_allclose(outputs["boxes"][0, anchor, :6], values, rtol=1e-4, atol=1e-3)
        expected = ORACLE_SCORES[anchor]
        assert outputs["scores"][0, anchor, 0] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_the_landmarks_are_those_of_another_interpreter(landmarks):
    outputs = landmarks.run({"picture": pattern(256)[None]})
    np.testing.assert_allclose(outputs["landmarks"][0, ::15], ORACLE_LANDMARKS, atol=5e-3)
    np.testing.assert_allclose(outputs["world"][0, ::9], ORACLE_WORLD, atol=1e-4)
    assert outputs["presence"][0, 0] == pytest.approx(ORACLE_PRESENCE, rel=1e-3)


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("name", [DETECTOR, LANDMARKS])
def test_neighbours_in_a_batch_change_nothing(name, count, detector, landmarks):
    session = detector if name == DETECTOR else landmarks
    size = session.inputs[0].shape[1]
    rng = np.random.default_rng(count)
    pictures = rng.integers(0, 256, (count, size, size, 3), dtype=np.uint8)
    together = session.run({"picture": pictures})
    alone = session.run({"picture": pictures[-1:]})
    for output, rows in together.items():
        assert len(rows) == count
        np.testing.assert_allclose(rows[-1], alone[output][0], rtol=1e-4, atol=1e-3)


def test_a_picture_of_another_size_or_type_is_refused(landmarks):
    with pytest.raises(EngineError, match="256"):
        landmarks.run({"picture": np.zeros((1, 224, 224, 3), np.uint8)})
    with pytest.raises(EngineError, match="uint8"):
        landmarks.run({"picture": np.zeros((1, 256, 256, 3), np.float32)})


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="MOON"):
        open_network(LANDMARKS, device="moon", threads=1)


def test_what_runs_is_told_without_loading_it():
    told = describe_pose(PoseParams(threads=3))
    assert told.threads == 3
    assert DETECTOR in told.model
    assert LANDMARKS in told.model
    assert len(told.model_revision) == 64
