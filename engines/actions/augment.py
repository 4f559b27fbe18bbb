"""Makes other people, viewpoints and estimators out of the clips that are there."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Augmentation:
    """How far each change goes; all are drawn anew for every clip and epoch."""

    turn_degrees: float = 45.0
    """About the vertical, before depth is dropped; for clips with depth only."""
    tilt_degrees: float = 10.0
    """In the picture's plane."""
    crop: float = 0.25
    """Share of the clip that may be cut off, both ends together."""
    warp: float = 0.15
    """Depth of a smooth change of pace."""
    scale: float = 0.1
    """Of each axis."""
    shape: float = 0.1
    """Of each joint's distance from the centre: other bodies."""
    offset: float = 0.04
    """Constant error of each joint, torso lengths."""
    noise: float = 0.02
    """Error of each joint at each moment, torso lengths."""
    joint_dropout: float = 0.05
    """Share of joints that are unseen in a clip."""
    extend: float = 0.0
    """Share of the clip's length for which its first and its last pose may be held."""


class Augmenter:
    """Draws from a generator of its own: the same seed gives the same clips."""

    def __init__(self, settings: Augmentation, *, has_depth: bool, seed: int) -> None:
        self._settings = settings
        self._has_depth = has_depth
        self._random = torch.Generator().manual_seed(seed)

    def __call__(self, joints: Tensor, mask: Tensor, frames: int) -> tuple[Tensor, Tensor]:
        """[B, N, J, 3] and [B, J] to [B, frames, J, 3] and [B, J]."""
        joints = self._resample(joints, frames)
        if self._has_depth:
            angle = self._even(len(joints)) * math.radians(self._settings.turn_degrees)
            joints = _rotate(joints, angle, 0, 2)
        angle = self._even(len(joints)) * math.radians(self._settings.tilt_degrees)
        joints = _rotate(joints, angle, 0, 1)
        return self._disturb(joints, mask)

    def _even(self, *size: int) -> Tensor:
        """Uniform in [-1, 1)."""
        return torch.rand(*size, generator=self._random) * 2.0 - 1.0

    def _resample(self, joints: Tensor, frames: int) -> Tensor:
        count, settings = len(joints), self._settings
        span = settings.crop / 2.0 + settings.extend
        cut = torch.rand(count, 2, generator=self._random) * span - settings.extend
        even = torch.linspace(0.0, 1.0, frames)[None]
        waves = torch.randint(1, 3, (count, 1), generator=self._random) * math.pi
        depth = self._even(count, 1) * settings.warp / waves
        at = (even + depth * torch.sin(waves * even)).clamp(0.0, 1.0)
        at = cut[:, :1] + (1.0 - cut[:, 1:] - cut[:, :1]) * at
        return sample_rows(joints, at.clamp(0.0, 1.0))

    def _disturb(self, joints: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        batch, frames, count, axes = joints.shape
        settings = self._settings
        joints = joints * (1.0 + self._even(batch, 1, 1, axes) * settings.scale)
        joints = joints * (1.0 + self._even(batch, 1, count, 1) * settings.shape)
        constant = torch.randn(batch, 1, count, axes, generator=self._random)
        jitter = torch.randn(batch, frames, count, axes, generator=self._random)
        joints = joints + constant * settings.offset + jitter * settings.noise
        keep = torch.rand(batch, count, generator=self._random) >= settings.joint_dropout
        return joints, mask * keep


def sample_rows(joints: Tensor, at: Tensor) -> Tensor:
    """Linear interpolation of [B, N, J, 3] at shares ``at`` [B, T] of the clip's length."""
    where = at * (joints.shape[1] - 1)
    low = where.floor().long().clamp(0, joints.shape[1] - 2)
    share = (where - low)[..., None, None]
    batch = torch.arange(len(joints))[:, None]
    return joints[batch, low] * (1.0 - share) + joints[batch, low + 1] * share


def _rotate(joints: Tensor, angle: Tensor, first: int, second: int) -> Tensor:
    """Turn each clip by its own angle in the plane of two axes."""
    c, s = torch.cos(angle)[:, None, None], torch.sin(angle)[:, None, None]
    axes = list(joints.unbind(-1))
    axes[first], axes[second] = (
        axes[first] * c + axes[second] * s,
        axes[second] * c - axes[first] * s,
    )
    return torch.stack(axes, dim=-1)
