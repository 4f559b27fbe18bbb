"""EfficientNet-Lite0 as an ONNX graph, built from its checkpoint without a deep-learning library.

Architecture: Tan and Le, "EfficientNet", 2019, in the Lite form of the TensorFlow TPU models
(ReLU6 instead of swish, no squeeze-and-excitation, stem and head not scaled). Batch normalisation
is folded into the convolutions: exact in inference, since its statistics are constants then.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from engines.errors import EngineError
from engines.vision.legacy_checkpoint import State

CONVERTER_VERSION = 1
"""Part of the artifact's name: raise it whenever the graph that comes out changes."""

IMAGE_SIZE = 224
NUM_CLASSES = 1000
NUM_FEATURES = 1280
MEAN = 127.0
"""Of all three channels, as the Lite models were trained (not the usual ImageNet means)."""
STD = 128.0
BATCH_NORM_EPSILON = 1e-3
_OPSET = 17

_STAGES = (
    # kernel, stride, expansion, channels, repeats
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)


@dataclass(frozen=True)
class Block:
    """One inverted residual block."""

    kernel: int
    stride: int
    expand: bool
    residual: bool


def blocks() -> tuple[Block, ...]:
    """The sixteen blocks in order."""
    found: list[Block] = []
    for kernel, stride, expansion, _channels, repeats in _STAGES:
        found.append(Block(kernel, stride, expansion > 1, residual=False))
        found.extend([Block(kernel, 1, expansion > 1, residual=True)] * (repeats - 1))
    return tuple(found)


def same_padding(kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after, as TensorFlow's SAME pads an even size: the odd one goes last."""
    total = kernel - stride if stride > 1 else kernel - 1
    return total // 2, total - total // 2


class _Graph:
    """Collects nodes and weights; each method returns the name of its output."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def array(self, name: str) -> npt.NDArray[np.float32]:
        if name not in self._state:
            msg = f"the checkpoint has no {name}: not an EfficientNet-Lite0"
            raise EngineError(msg)
        return self._state[name].astype(np.float32, copy=False)

    def conv_bn(self, source: str, conv: str, norm: str, *, stride: int = 1, relu: bool) -> str:
        """Convolution with its batch normalisation folded in, and ReLU6 if asked for."""
        weight = self.array(f"{conv}.weight").astype(np.float64)
        scale = self.array(f"{norm}.weight").astype(np.float64) / np.sqrt(
            self.array(f"{norm}.running_var").astype(np.float64) + BATCH_NORM_EPSILON
        )
        bias = self.array(f"{norm}.bias") - self.array(f"{norm}.running_mean") * scale
        folded = (weight * scale[:, None, None, None]).astype(np.float32)
        kernel = weight.shape[2]
        before, after = same_padding(kernel, stride)
        depthwise = weight.shape[1] == 1
        out = self.add(
            "Conv",
            [
                source,
                self.constant(f"{conv}.folded", folded),
                self.constant(f"{conv}.bias", bias.astype(np.float32)),
            ],
            f"{conv}.out",
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=weight.shape[0] if depthwise else 1,
        )
        return self.add("Clip", [out, "zero", "six"], f"{conv}.relu6") if relu else out


def build_onnx(state: State) -> bytes:
    """The network as a serialised ONNX model.

    Input ``pixels``: uint8 [n, 224, 224, 3] RGB; normalisation is part of the graph, so that no
    caller can get it wrong. Outputs: ``logits`` float32 [n, 1000] and ``features`` float32
    [n, 1280], the pooled penultimate layer.

    Raises:
        EngineError: the state is not that of an EfficientNet-Lite0.
    """
    graph = _Graph(state)
    graph.constant("zero", np.array(0, np.float32))
    graph.constant("six", np.array(6, np.float32))
    x = _normalise(graph)
    x = graph.conv_bn(x, "_conv_stem", "_bn0", stride=2, relu=True)
    for index, block in enumerate(blocks()):
        x = _block(graph, x, f"_blocks.{index}", block)
    x = graph.conv_bn(x, "_conv_head", "_bn1", relu=True)
    pooled = graph.add("GlobalAveragePool", [x], "pooled")
    graph.add("Flatten", [pooled], "features", axis=1)
    weight, bias = graph.array("_fc.weight"), graph.array("_fc.bias")
    if weight.shape != (NUM_CLASSES, NUM_FEATURES):
        msg = f"the classifier has shape {weight.shape}, not {(NUM_CLASSES, NUM_FEATURES)}"
        raise EngineError(msg)
    graph.add(
        "Gemm",
        ["features", graph.constant("fc.weight", weight), graph.constant("fc.bias", bias)],
        "logits",
        transB=1,
    )
    return _serialise(graph)


def _normalise(graph: _Graph) -> str:
    x = graph.add("Cast", ["pixels"], "pixels.float", to=TensorProto.FLOAT)
    x = graph.add("Sub", [x, graph.constant("mean", np.array(MEAN, np.float32))], "pixels.centred")
    scale = graph.constant("scale", np.array(1 / STD, np.float32))
    x = graph.add("Mul", [x, scale], "pixels.scaled")
    return graph.add("Transpose", [x], "pixels.nchw", perm=[0, 3, 1, 2])


def _block(graph: _Graph, source: str, name: str, block: Block) -> str:
    x = source
    if block.expand:
        x = graph.conv_bn(x, f"{name}._expand_conv", f"{name}._bn0", relu=True)
    x = graph.conv_bn(x, f"{name}._depthwise_conv", f"{name}._bn1", stride=block.stride, relu=True)
    x = graph.conv_bn(x, f"{name}._project_conv", f"{name}._bn2", relu=False)
    return graph.add("Add", [x, source], f"{name}.sum") if block.residual else x


def _serialise(graph: _Graph) -> bytes:
    pixels = helper.make_tensor_value_info(
        "pixels", TensorProto.UINT8, ["n", IMAGE_SIZE, IMAGE_SIZE, 3]
    )
    outputs = [
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", NUM_CLASSES]),
        helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", NUM_FEATURES]),
    ]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "efficientnet-lite0", [pixels], outputs, graph.weights),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=8,
        producer_name="reelgraph",
        producer_version=str(CONVERTER_VERSION),
    )
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))
