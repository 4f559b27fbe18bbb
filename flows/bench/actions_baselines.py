"""Plain ways to tell actions apart, on the same clips: what attention has to be better than."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from engines.actions.covariance import RIDGE
from engines.actions.network import NetworkShape
from engines.actions.normalise import NormalisedClips

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
FRAMES = 32
HIDDEN = 256


class MeanNetwork(nn.Module):  # type: ignore[misc]
    """The same streams and training, no attention: mean over time, then two layers."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        inputs = shape.joints * (3 * shape.dimensions + 1)
        self.layers = nn.Sequential(
            nn.Linear(2 * inputs, HIDDEN),
            nn.GELU(),
            nn.Dropout(shape.dropout_head),
            nn.Linear(HIDDEN, shape.classes),
        )

    def forward(self, streams: Tensor) -> Tensor:
        """[B, T, J, C] to logits: mean and spread over time of every stream."""
        flat = streams.flatten(2)
        logits: Tensor = self.layers(torch.cat([flat.mean(dim=1), flat.std(dim=1)], dim=1))
        return logits


def plain_features(clips: NormalisedClips, dimensions: int) -> Doubles:
    """Positions and steps at 32 moments, flat: float64 [n, d]."""
    rows = np.linspace(0, clips.joints.shape[1] - 1, FRAMES).round().astype(np.int64)
    path = clips.joints[:, rows, :, :dimensions].astype(np.float64)
    steps = np.diff(path, axis=1)
    return np.hstack([path.reshape(len(path), -1), steps.reshape(len(path), -1)])


def plain_ways(
    train: NormalisedClips, labels: Ints, test: NormalisedClips, dimensions: int
) -> dict[str, Ints]:
    """What each plain way says about the test clips, int64 [m], by its name."""
    known, asked = plain_features(train, dimensions), plain_features(test, dimensions)
    ways: dict[str, Callable[[], Ints]] = {
        "nearest neighbour": lambda: KNeighborsClassifier(1).fit(known, labels).predict(asked),
        "logistic regression": lambda: (
            make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
            .fit(known, labels)
            .predict(asked)
        ),
        "kernel ridge regression": lambda: _kernel_ridge(known, labels, asked),
    }
    return {name: np.asarray(way(), np.int64) for name, way in ways.items()}


def _kernel_ridge(known: Doubles, labels: Ints, asked: Doubles) -> Ints:
    """Gaussian kernel of median width, ridge regression on labels of -1 and 1."""
    gamma = 1.0 / float(np.median(euclidean_distances(known, squared=True)))
    targets = np.full((len(labels), int(labels.max()) + 1), -1.0)
    targets[np.arange(len(labels)), labels] = 1.0
    kernel = rbf_kernel(known, gamma=gamma) + RIDGE * np.eye(len(known))
    scores = rbf_kernel(asked, known, gamma=gamma) @ np.linalg.solve(kernel, targets)
    return np.asarray(scores.argmax(axis=1))
