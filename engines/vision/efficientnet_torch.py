"""EfficientNet-Lite0 in plain torch: the reference that every faster engine is held against.

Importing this loads torch; only the benchmark, the conformance tests and a forced torch backend
do so.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.vision.efficientnet_lite import (
    BATCH_NORM_EPSILON,
    MEAN,
    NUM_CLASSES,
    NUM_FEATURES,
    STD,
    Block,
    blocks,
    same_padding,
)
from engines.vision.legacy_checkpoint import State


class _SameConv(nn.Conv2d):  # type: ignore[misc] # torch is not followed by mypy
    """Convolution that pads as TensorFlow's SAME does: the odd zero goes right and below."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's own name
        before, after = same_padding(self.kernel_size[0], self.stride[0])
        return super().forward(functional.pad(input, (before, after, before, after)))


class _InvertedResidual(nn.Module):  # type: ignore[misc]
    """One block; attribute names are those of the checkpoint."""

    def __init__(self, state: State, prefix: str, block: Block) -> None:
        super().__init__()
        self._block = block
        if block.expand:
            self._expand_conv = _conv(state, f"{prefix}._expand_conv")
            self._bn0 = _norm(state, f"{prefix}._bn0")
        self._depthwise_conv = _conv(state, f"{prefix}._depthwise_conv", block.stride)
        self._bn1 = _norm(state, f"{prefix}._bn1")
        self._project_conv = _conv(state, f"{prefix}._project_conv")
        self._bn2 = _norm(state, f"{prefix}._bn2")

    def forward(self, x: Tensor) -> Tensor:
        """float32 [n, c, h, w] in, [n, c', h / stride, w / stride] out."""
        y = x
        if self._block.expand:
            y = functional.relu6(self._bn0(self._expand_conv(y)))
        y = functional.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return y + x if self._block.residual else y


class EfficientNetLite0(nn.Module):  # type: ignore[misc]
    """uint8 [n, 224, 224, 3] RGB in; (logits [n, 1000], features [n, 1280]) float32 out."""

    def __init__(self, state: State) -> None:
        """Build and load in one step.

        Args:
            state: arrays by parameter name, see ``read_legacy_state``.
        """
        super().__init__()
        self._conv_stem = _conv(state, "_conv_stem", 2)
        self._bn0 = _norm(state, "_bn0")
        self._blocks = nn.Sequential(
            *(_InvertedResidual(state, f"_blocks.{i}", b) for i, b in enumerate(blocks()))
        )
        self._conv_head = _conv(state, "_conv_head")
        self._bn1 = _norm(state, "_bn1")
        self._fc = nn.Linear(NUM_FEATURES, NUM_CLASSES)
        self.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in state.items()})
        self.eval()

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and pooled features."""
        x = (pixels.permute(0, 3, 1, 2).float() - MEAN) / STD
        x = functional.relu6(self._bn0(self._conv_stem(x)))
        x = functional.relu6(self._bn1(self._conv_head(self._blocks(x))))
        features = x.mean((2, 3))
        return self._fc(features), features


def _conv(state: State, name: str, stride: int = 1) -> _SameConv:
    out_channels, in_channels, kernel, _ = state[f"{name}.weight"].shape
    groups = out_channels if in_channels == 1 else 1
    return _SameConv(
        in_channels * groups, out_channels, kernel, stride=stride, groups=groups, bias=False
    )


def _norm(state: State, name: str) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(state[f"{name}.weight"].shape[0], eps=BATCH_NORM_EPSILON)
