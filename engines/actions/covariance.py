"""A classical companion of the network: covariances and paths over time, and a kernel machine.

A clip is told in two ways: by the covariances of all joint coordinates, and of their steps, over
the whole clip and over its parts (Hussein et al., Cov3DJ, IJCAI 2013), time itself being one more
coordinate, taken to a flat space by the matrix logarithm (Arsigny et al., 2006); and by coordinates
and steps as they are, moment by moment. Gaussian kernels over the four are averaged and a ridge
regression is solved in closed form. It errs elsewhere than the network does, which is what makes it
worth its place.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.normalise import NormalisedClips, spin
from engines.actions.skeleton import Floats

Doubles = npt.NDArray[np.float64]

FRAMES: Final = 32
PARTS: Final = (
    (0.0, 1.0),
    (0.0, 0.5),
    (0.5, 1.0),
    (0.25, 0.75),
    (0.0, 1 / 3),
    (1 / 3, 2 / 3),
    (2 / 3, 1.0),
)
"""Shares of the clip: so the order of what happens counts."""
REGULARISER: Final = 0.02
"""Added to each variance, squared torso lengths: about a tenth of a torso of noise."""
STEP_GAIN: Final = 4.0
"""Brings steps to about the size of positions."""
RIDGE: Final = 0.05
SHARPNESS: Final = 8.0
"""From regression scores (-1 to 1) to the sureness of a softmax; chosen on the training files."""
VIEWS: Final = (-35.0, 35.0)
"""Degrees aside of the copies."""
_TINY: Final = 1e-12


Features = tuple[Doubles, ...]
"""Of n clips: float64 [n, d] each."""


@dataclass(frozen=True)
class KernelMachine:
    """Solved on its training clips; holds their features."""

    features: Features
    widths: tuple[float, ...]
    weights: Doubles
    """float64 [training clips, C]."""

    def probabilities(self, features: Features) -> Floats:
        """float32 [B, C] of clips told by ``describe``; rows sum to 1."""
        kernel = _kernel(features, self.features, self.widths)
        scores = SHARPNESS * (kernel @ self.weights)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float32)


def fit_kernel_machine(
    features: Features, labels: npt.NDArray[np.int64], classes: int
) -> KernelMachine:
    """Solve for labels of -1 and 1 per class.

    Args:
        features: of n training clips, as ``describe`` tells them.
        labels: int64 [n], below ``classes``.
        classes: C.
    """
    distances = [_squared(f, f) for f in features]
    widths = tuple(float(np.median(d)) + _TINY for d in distances)
    kernel = np.mean([np.exp(-d / w) for d, w in zip(distances, widths, strict=True)], axis=0)
    targets = np.full((len(labels), classes), -1.0)
    targets[np.arange(len(labels)), labels] = 1.0
    weights = np.linalg.solve(kernel + RIDGE * np.eye(len(kernel)), targets)
    return KernelMachine(features, widths, weights)


def seen_aside(clips: NormalisedClips) -> tuple[NormalisedClips, ...]:
    """Copies of clips whose depth was kept, one from each of ``VIEWS``."""
    return tuple(spin(clips, degrees) for degrees in VIEWS)


def select(features: Features, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Features:
    """Some of the clips."""
    return tuple(part[rows] for part in features)


def join(*features: Features) -> Features:
    """Clips of several sources, one after the other."""
    return tuple(np.concatenate(parts) for parts in zip(*features, strict=True))


def describe(clips: NormalisedClips, dimensions: int) -> Features:
    """Covariances of positions and of steps, positions, steps.

    Args:
        clips: n of them, best at an even effort.
        dimensions: 2 for x and y, 3 with depth.
    """
    rows = np.linspace(0, clips.joints.shape[1] - 1, FRAMES).round().astype(np.int64)
    path = clips.joints[:, rows, :, :dimensions].astype(np.float64)
    steps = STEP_GAIN * np.diff(path, axis=1)
    flat = [part.reshape(len(path), -1) for part in (path, steps)]
    return log_covariances(path), log_covariances(steps), *flat


def log_covariances(path: Doubles) -> Doubles:
    """float64 [B, T, J, D] to [B, parts * n (n + 1) / 2]: upper triangles of the logarithms."""
    batch, frames = path.shape[:2]
    ramp = np.broadcast_to(np.linspace(-1.0, 1.0, frames)[None, :, None], (batch, frames, 1))
    columns = np.concatenate([path.reshape(batch, frames, -1), ramp], axis=2)
    upper = np.triu_indices(columns.shape[2])
    # Off-diagonal entries stand for two: distances stay those of the whole matrix.
    weight = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
    parts = []
    for begin, end in PARTS:
        part = columns[:, int(begin * frames) : int(end * frames)]
        part = part - part.mean(axis=1, keepdims=True)
        spread = np.einsum("bti,btj->bij", part, part) / part.shape[1]
        values, vectors = np.linalg.eigh(spread + REGULARISER * np.eye(columns.shape[2]))
        values = np.maximum(values, REGULARISER)
        logs = (vectors * np.log(values)[:, None]) @ vectors.transpose(0, 2, 1)
        parts.append(logs[:, upper[0], upper[1]] * weight)
    return np.concatenate(parts, axis=1)


def _kernel(a: Features, b: Features, widths: tuple[float, ...]) -> Doubles:
    parts = [np.exp(-_squared(x, y) / w) for x, y, w in zip(a, b, widths, strict=True)]
    return np.asarray(np.mean(parts, axis=0))


def _squared(a: Doubles, b: Doubles) -> Doubles:
    lengths = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None]
    return np.asarray(np.maximum(lengths - 2.0 * a @ b.T, 0.0))
