"""Trains the bench's networks, as many at a time as there are cores to run them."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engines.actions.augment import Augmentation
from engines.actions.network import SpaceTimeAttention
from engines.actions.normalise import NormalisedClips, mirror
from engines.actions.skeleton import Floats
from engines.actions.training import (
    TrainedNetwork,
    TrainingSettings,
    train_network,
    with_mirrored,
)
from flows.bench.actions_baselines import MeanNetwork
from flows.cores import on_every_core

Ints = npt.NDArray[np.int64]

CLIPS_SEEN = 24_000
"""By one network in training: more than this gained nothing where persons were left out."""
MIN_EPOCHS, MAX_EPOCHS = 8, 80
BATCH_SIZE = 64
NOISES = ((0.05, 0.0), (0.0, 0.1), (0.05, 0.1), (0.1, 0.2))
"""Jitter in torso lengths, and share of joints that are missing."""
TURNS = (-30.0, 30.0)
LIVE = Augmentation(crop=0.5, extend=0.25)
"""Windows on a stream begin and end anywhere."""


@dataclass(frozen=True)
class Material:
    """Training and test clips of one protocol."""

    train: NormalisedClips
    aside: tuple[NormalisedClips, ...]
    """Copies of the training clips seen from aside, for a kernel machine; a network turns them."""
    labels: Ints
    views: dict[str, NormalisedClips]
    """Test clips: ``plain``, turned, and disturbed."""
    classes: int
    joint_names: tuple[str, ...]
    dimensions: int
    has_depth: bool
    """Whether the training clips do: then their view is changed, also for a flat network."""
    mirrored: bool
    """Whether mirror images are trained on, and looked at in testing."""

    def asked(self, probabilities: Callable[[NormalisedClips], Floats]) -> dict[str, Floats]:
        """Probabilities [m, classes] of each view, with its mirror image where that helps."""
        found = {}
        for name, clips in self.views.items():
            said = probabilities(clips)
            if self.mirrored:
                said = (said + probabilities(mirror(clips, self.joint_names))) / 2.0
            found[name] = np.asarray(said, np.float32)
        return found


@dataclass(frozen=True)
class Job:
    """One network."""

    material: Material
    seed: int
    attention: bool = True
    live: bool = False
    """For windows on a stream, and given back itself."""

    @property
    def name(self) -> str:
        """For a line about progress."""
        kind = "stream network" if self.live else "attention" if self.attention else "no attention"
        return f"{kind}, {'x y z'[: 2 * self.material.dimensions - 1]}, seed {self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What one network says about the test clips."""

    job: Job
    views: dict[str, Floats]
    """Probabilities [m, classes] by view."""
    network: TrainedNetwork | None
    seconds: float
    """Of one core."""


def run_jobs(jobs: Sequence[Job]) -> Iterator[Outcome]:
    """Outcomes in the order of the jobs, each as soon as it and those before it are there."""
    return on_every_core(_run, jobs)


def _settings(job: Job, clips: int) -> TrainingSettings:
    epochs = int(np.clip(round(CLIPS_SEEN / clips), MIN_EPOCHS, MAX_EPOCHS))
    settings = TrainingSettings(
        dimensions=job.material.dimensions, epochs=epochs, batch_size=BATCH_SIZE
    )
    return replace(settings, augmentation=LIVE) if job.live else settings


def _run(job: Job) -> Outcome:
    material, began = job.material, time.process_time()
    clips, labels = material.train, material.labels
    if material.mirrored:
        clips, labels = with_mirrored(clips, labels, material.joint_names)
    network = train_network(
        clips,
        labels,
        material.classes,
        material.joint_names,
        _settings(job, len(clips)),
        has_depth=material.has_depth,
        seed=job.seed,
        build=SpaceTimeAttention if job.attention else MeanNetwork,
    )
    views = material.asked(network.probabilities)
    seconds = time.process_time() - began
    return Outcome(job, views, network if job.live else None, seconds)


def noise_name(noise: float, dropout: float) -> str:
    """How a disturbance is called in the table."""
    return f"noise {noise:g} dropout {dropout:g}"
