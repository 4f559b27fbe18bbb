"""Trains the network: seeded, on one thread, in about a minute for a few hundred clips."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.actions.augment import Augmentation, Augmenter, sample_rows
from engines.actions.network import NetworkShape, SpaceTimeAttention, Streams
from engines.actions.normalise import NormalisedClips, mirror
from engines.actions.skeleton import Floats
from engines.errors import NotFiniteError, UsageError

_SCORE_BATCH = 256
_EMA_START = 10
"""Early weights are forgotten faster: the average starts with the first steps only."""


@dataclass(frozen=True)
class TrainingSettings:
    """Chosen once by leaving persons out of the training files, and then left alone."""

    dimensions: int = 3
    epochs: int = 60
    batch_size: int = 32
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    label_smoothing: float = 0.1
    mixup: float = 0.2
    """Alpha of the Beta distribution; 0 turns it off."""
    average_decay: float = 0.98
    """Of the exponential moving average of the weights, per step."""
    gradient_limit: float = 1.0
    patch: int = 4
    width_time: int = 128
    balance: float = 0.0
    """0 draws clips as they come, 1 draws every class equally often."""
    augmentation: Augmentation = field(default_factory=Augmentation)


@dataclass(frozen=True)
class TrainedNetwork:
    """A network with all that it needs to read clips."""

    network: nn.Module
    shape: NetworkShape
    joint_names: tuple[str, ...]

    def probabilities(self, clips: NormalisedClips) -> Floats:
        """float32 [B, C]; rows sum to 1.

        Raises:
            NotFiniteError: the network gave NaN or infinity.
        """
        return softmax(self.logits(clips))

    def logits(self, clips: NormalisedClips) -> Floats:
        """float32 [B, C].

        Raises:
            NotFiniteError: as above.
        """
        shape = self.shape
        streams = Streams(self.joint_names, shape.dimensions)
        out = []
        with _one_thread(), torch.inference_mode():
            for begin in range(0, len(clips), _SCORE_BATCH):
                part = slice(begin, begin + _SCORE_BATCH)
                joints = _even_rows(torch.from_numpy(clips.joints[part]), shape.frames)
                mask = torch.from_numpy(clips.mask[part])
                out.append(self.network(streams(joints, mask)).numpy())
        logits = np.concatenate(out) if out else np.zeros((0, shape.classes), np.float32)
        if not np.isfinite(logits).all():
            msg = "the action network gave values that are not finite"
            raise NotFiniteError(msg)
        return logits


def softmax(logits: Floats) -> Floats:
    """Over the last axis."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), np.float32)


def with_mirrored(
    clips: NormalisedClips,
    labels: npt.NDArray[np.int64],
    joint_names: Sequence[str],
    counterparts: npt.NDArray[np.int64] | None = None,
) -> tuple[NormalisedClips, npt.NDArray[np.int64]]:
    """The clips and, after them, their mirror images.

    Args:
        clips: B of them.
        labels: int64 [B].
        joint_names: of the clips' rows, without the path.
        counterparts: int64 [C], the class that each class turns into; None for itself.
    """
    image = mirror(clips, joint_names)
    turned = labels if counterparts is None else counterparts[labels]
    return clips.join(image), np.concatenate([labels, turned])


def train_network(
    clips: NormalisedClips,
    labels: npt.NDArray[np.int64],
    classes: int,
    joint_names: Sequence[str],
    settings: TrainingSettings,
    *,
    has_depth: bool,
    seed: int,
    build: Callable[[NetworkShape], nn.Module] = SpaceTimeAttention,
) -> TrainedNetwork:
    """Train one network from its seed.

    Args:
        clips: as ``normalise_clips`` gives them.
        labels: int64 [B], below ``classes``.
        classes: how many there are, also those without a clip.
        joint_names: of the clips' rows, without the path.
        settings: how.
        has_depth: whether z means something (then views are turned, also for a flat network).
        seed: of weights, order, augmentation and mixup.
        build: makes the network: streams [B, T, J, 3 D + 1] to logits [B, C].

    Raises:
        UsageError: no clip, or depth asked for where there is none.
    """
    if len(clips) == 0:
        msg = "no clip to train on"
        raise UsageError(msg)
    if settings.dimensions == 3 and not has_depth:  # noqa: PLR2004
        msg = "these clips have no depth; dimensions must be 2"
        raise UsageError(msg)
    shape = NetworkShape(
        joints=clips.joints.shape[2],
        dimensions=settings.dimensions,
        classes=classes,
        patch=settings.patch,
        width_time=settings.width_time,
    )
    with _one_thread(), torch.random.fork_rng():
        torch.manual_seed(seed)
        network = build(shape)
        averaged = _descend(
            network,
            _batches(
                clips,
                labels,
                classes,
                tuple(joint_names),
                settings,
                has_depth=has_depth,
                seed=seed,
            ),
            settings,
            len(clips),
        )
    network.load_state_dict(averaged)
    return TrainedNetwork(network.eval(), shape, tuple(joint_names))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums in one order: the same seed gives the same weights.

    And nothing is lost: on two threads one window takes six times as much of the processor.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _descend(
    network: nn.Module,
    batches: Iterator[tuple[Tensor, Tensor]],
    settings: TrainingSettings,
    clips: int,
) -> dict[str, Tensor]:
    """Follow the gradient; the moving average of the weights comes back."""
    optimiser = torch.optim.AdamW(
        network.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    steps = settings.epochs * -(-clips // settings.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.learning_rate, total_steps=steps, pct_start=0.15
    )
    current = network.state_dict()
    averaged = {name: value.clone() for name, value in current.items()}
    network.train()
    for step, (streams, targets) in enumerate(batches):
        loss = -(targets * functional.log_softmax(network(streams), dim=1)).sum(dim=1).mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), settings.gradient_limit)
        optimiser.step()
        schedule.step()
        decay = min(settings.average_decay, (step + 1) / (step + _EMA_START))
        with torch.no_grad():
            torch._foreach_lerp_(list(averaged.values()), list(current.values()), 1.0 - decay)
    return averaged


def _batches(
    clips: NormalisedClips,
    labels: npt.NDArray[np.int64],
    classes: int,
    names: tuple[str, ...],
    settings: TrainingSettings,
    *,
    has_depth: bool,
    seed: int,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Augmented and mixed streams with soft targets, epoch after epoch."""
    rng = np.random.default_rng(seed)
    augment = Augmenter(settings.augmentation, has_depth=has_depth, seed=seed)
    streams = Streams(names, settings.dimensions)
    joints, masks = torch.from_numpy(clips.joints), torch.from_numpy(clips.mask)
    smooth = settings.label_smoothing
    targets = functional.one_hot(torch.from_numpy(labels), classes).float()
    targets = targets * (1.0 - smooth) + smooth / classes
    rarity = np.bincount(labels)[labels] ** -settings.balance
    for _ in range(settings.epochs):
        order = rng.permutation(len(labels))
        if settings.balance:
            order = rng.choice(len(labels), len(labels), p=rarity / rarity.sum())
        for begin in range(0, len(order), settings.batch_size):
            rows = torch.from_numpy(order[begin : begin + settings.batch_size])
            read = streams(*augment(joints[rows], masks[rows], NetworkShape.frames))
            yield _mix(read, targets[rows], settings.mixup, rng)


def _mix(
    streams: Tensor, targets: Tensor, alpha: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Mixup (Zhang et al., ICLR 2018): each clip blended with another, its target likewise."""
    if not alpha:
        return streams, targets
    share = float(rng.beta(alpha, alpha))
    other = torch.from_numpy(rng.permutation(len(streams)))
    return torch.lerp(streams[other], streams, share), torch.lerp(targets[other], targets, share)


def _even_rows(joints: Tensor, frames: int) -> Tensor:
    """[B, N, J, 3] to [B, frames, J, 3], evenly spaced over the clip."""
    return sample_rows(joints, torch.linspace(0.0, 1.0, frames).expand(len(joints), frames))
