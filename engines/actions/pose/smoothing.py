"""Takes the jitter out of a track without holding back fast movement."""

import numpy as np
import numpy.typing as npt

from engines.actions.pose.geometry import Floats

_MIN_CUTOFF_HZ = 0.5
_SLOPE = 40.0
"""Cutoff in Hz that each body length per second adds."""
_SPEED_CUTOFF_HZ = 1.0


def one_euro(points: Floats, time_s: npt.NDArray[np.float64], scale: Floats) -> Floats:
    """The One-Euro filter (Casiez et al., CHI 2012): a low-pass whose cutoff rises with speed.

    Args:
        points: float32 [t, j, d], any unit.
        time_s: float64 [t], rising.
        scale: float32 [t], size of the body in the same unit: speed counts in body sizes.

    Returns:
        float32 [t, j, d]; the first row is as given.
    """
    smooth = np.array(points, dtype=np.float64)
    speed = np.zeros(points.shape[1:])
    for i in range(1, len(points)):
        rate_hz = 1.0 / max(time_s[i] - time_s[i - 1], 1e-6)
        size = max(float(scale[i]), 1e-6)
        now = (points[i].astype(np.float64) - smooth[i - 1]) * rate_hz / size
        speed += _weight(np.float64(_SPEED_CUTOFF_HZ), rate_hz) * (now - speed)
        weight = _weight(_MIN_CUTOFF_HZ + _SLOPE * np.abs(speed), rate_hz)
        smooth[i] = smooth[i - 1] + weight * (points[i] - smooth[i - 1])
    return smooth.astype(np.float32)


def _weight(
    cutoff_hz: npt.NDArray[np.float64] | np.float64, rate_hz: float
) -> npt.NDArray[np.float64]:
    """Share of the new value in a first-order low-pass."""
    return np.asarray(1 / (1 + rate_hz / (2 * np.pi * cutoff_hz)), dtype=np.float64)
