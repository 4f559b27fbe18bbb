"""A small space-time attention network over joints: attention among joints, then over time.

    clips [B, T, J, 3] and mask [B, J]
      -> streams: joints, bones, velocities, and whether the joint was seen   [B, T, J, 3 D + 1]
      -> patches of a few moments, one token per joint                        [B, T / P, J, d]
      -> attention among the joints of a patch
      -> one token per patch                                                  [B, T / P, D]
      -> attention over time -> mean and maximum -> logits                    [B, C]

The order space-then-time is that of factorised encoders (Arnab et al., ViViT, ICCV 2021); bones and
velocities as further streams follow Shi et al. (2s-AGCN, CVPR 2019), put together at the input
since several networks would cost several times as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.actions.skeleton import PARENTS

VELOCITY_GAIN = 4.0
"""Brings steps between moments to about the size of positions."""
_CENTRES = {
    "shoulder_center": ("left_shoulder", "right_shoulder"),
    "hip_center": ("left_hip", "right_hip"),
}


@dataclass(frozen=True)
class NetworkShape:
    """Everything that is needed to build the network again."""

    joints: int
    """With the row of the centre's path."""
    dimensions: int
    """2 for x and y, 3 with depth."""
    classes: int
    frames: int = 32
    patch: int = 4
    width_space: int = 32
    width_time: int = 128
    blocks_space: int = 1
    blocks_time: int = 2
    heads: int = 4
    dropout: float = 0.1
    dropout_head: float = 0.3


class Block(nn.Module):  # type: ignore[misc]
    """Pre-norm self-attention and a two-layer network, both with a residual."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_feed = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width),
            nn.GELU(),
            nn.Linear(2 * width, width),
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, N, d] to [B, N, d]."""
        batch, count, width = tokens.shape
        split = self.qkv(self.norm_attention(tokens))
        split = split.view(batch, count, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        mixed = mixed.transpose(1, 2).reshape(batch, count, width)
        tokens = tokens + self.drop(self.out(mixed))
        return tokens + self.drop(self.feed(self.norm_feed(tokens)))


class SpaceTimeAttention(nn.Module):  # type: ignore[misc]
    """See the module's docstring."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.shape = shape
        d, wide = shape.width_space, shape.width_time
        self.embed = nn.Linear((3 * shape.dimensions + 1) * shape.patch, d)
        self.joint = nn.Parameter(torch.randn(1, 1, shape.joints, d) * 0.02)
        self.space = nn.ModuleList(
            Block(d, shape.heads, shape.dropout) for _ in range(shape.blocks_space)
        )
        self.norm_space = nn.LayerNorm(d)
        self.gather = nn.Linear(shape.joints * d, wide)
        self.moment = nn.Parameter(torch.randn(1, shape.frames // shape.patch, wide) * 0.02)
        self.time = nn.ModuleList(
            Block(wide, shape.heads, shape.dropout) for _ in range(shape.blocks_time)
        )
        self.norm_time = nn.LayerNorm(wide)
        self.drop = nn.Dropout(shape.dropout_head)
        self.head = nn.Linear(2 * wide, shape.classes)

    def forward(self, streams: Tensor) -> Tensor:
        """Streams [B, T, J, 3 D + 1] to logits [B, C]."""
        batch, frames, joints, channels = streams.shape
        patch = self.shape.patch
        steps = frames // patch
        tokens = streams.view(batch, steps, patch, joints, channels).transpose(2, 3)
        tokens = self.embed(tokens.reshape(batch, steps, joints, patch * channels)) + self.joint
        tokens = tokens.flatten(0, 1)
        for block in self.space:
            tokens = block(tokens)
        moments = self.gather(self.norm_space(tokens).flatten(1))
        moments = moments.view(batch, steps, -1) + self.moment
        for block in self.time:
            moments = block(moments)
        moments = self.norm_time(moments)
        pooled = torch.cat([moments.mean(dim=1), moments.amax(dim=1)], dim=1)
        logits: Tensor = self.head(self.drop(pooled))
        return logits


class Streams(nn.Module):  # type: ignore[misc]
    """Joints, bones and velocities side by side."""

    parents: Tensor

    def __init__(self, names: Sequence[str], dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions
        self.register_buffer("parents", parent_rows(names), persistent=False)

    def forward(self, joints: Tensor, mask: Tensor) -> Tensor:
        """[B, T, J, 3] and [B, J] to [B, T, J, 3 D + 1]."""
        x = joints[..., : self.dimensions]
        bones = x - x[:, :, self.parents].mean(dim=3)
        steps = functional.pad(x[:, 1:] - x[:, :-1], (0, 0, 0, 0, 1, 0)) * VELOCITY_GAIN
        seen = mask[:, None, :, None].expand(-1, x.shape[1], -1, 1)
        return torch.cat([x, bones, steps, torch.ones_like(seen)], dim=-1) * seen


def parent_rows(names: Sequence[str]) -> Tensor:
    """int64 [J + 1, 2]: the two joints whose mean each joint hangs on; the path on itself."""
    rows = {name: row for row, name in enumerate(names)}
    path = len(rows)
    pairs = []
    for name in names:
        above = PARENTS.get(name, "")
        if above in rows:
            pairs.append((rows[above], rows[above]))
        elif above in _CENTRES:
            left, right = _CENTRES[above]
            pairs.append((rows[left], rows[right]))
        else:
            pairs.append((path, path))
    return torch.tensor([*pairs, (path, path)])
