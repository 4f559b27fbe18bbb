"""A float ONNX network made INT8: what it computes in whole numbers is written into the graph.

Quantise/dequantise pairs (QDQ), which OpenVINO, ONNX Runtime and TensorRT all read. Activations
have one scale per tensor, weights one per output channel. Weights are not rounded each by itself:
the error of one is spread over those that follow, by the second moments of the inputs (Frantar et
al., "GPTQ", 2022). In the first layers, where nine weights cancel on flat surfaces, this is the
difference between a network that works and one that does not.

Processors without dot-product instructions for bytes (AVX2) add pairs of 8-bit products in 16 bits
and saturate. Weights of 7 bits cannot; depthwise convolutions are computed otherwise and keep 8.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from engines.runtime.calibration import Statistics

VERSION = 1
"""Part of the artifact's name: raise it whenever the graph that comes out changes."""
_LEVELS = 255
_DAMPING = 0.01
_DEAD = 1e-5
"""A channel whose largest weight is below this only hands on its bias."""
_TINY = 1e-9


@dataclass(frozen=True)
class Plan:
    """What becomes INT8, and how."""

    keep_float: tuple[str, ...] = ()
    """Outputs that begin with one of these stay as they are."""
    dense_bits: int = 7
    """Of weights in convolutions over several channels."""
    depthwise_bits: int = 8


def quantise(model: onnx.ModelProto, statistics: Statistics, plan: Plan) -> bytes:
    """The network with its convolutions and sums in INT8, serialised.

    Args:
        model: batch normalisation folded, every convolution with a bias.
        statistics: of the same network.
        plan: see ``Plan``.
    """
    return _Quantiser(model, statistics, plan).run()


def rounded_weights(
    weights: npt.NDArray[np.float32], moments: npt.NDArray[np.float64], bits: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Whole-number weights and their scales.

    Args:
        weights: float32 [out, ...].
        moments: [k, k], or [out, k, k] where each output channel has inputs of its own; k is the
            number of weights per output channel.
        bits: of a weight, its sign included.

    Returns:
        int8 of the same shape, float32 [out].
    """
    flat = weights.reshape(len(weights), -1).astype(np.float64)
    top = 2 ** (bits - 1) - 1
    largest = np.abs(flat).max(axis=1)
    scales = np.where(largest < _DEAD, 1.0, largest / top)
    stacked = moments if moments.ndim == flat.ndim + 1 else moments[None]
    size = flat.shape[1]
    damping = _DAMPING * np.einsum("...ii->...i", stacked).mean(axis=-1) + _TINY
    inverse = np.linalg.inv(stacked + damping[:, None, None] * np.eye(size))
    upper = np.linalg.cholesky((inverse + inverse.transpose(0, 2, 1)) / 2).transpose(0, 2, 1)
    whole = np.zeros_like(flat)
    for j in range(size):
        whole[:, j] = np.clip(np.round(flat[:, j] / scales), -top, top)
        error = (flat[:, j] - whole[:, j] * scales) / upper[:, j, j]
        flat[:, j + 1 :] -= error[:, None] * upper[:, j, j + 1 :]
    return whole.reshape(weights.shape).astype(np.int8), scales.astype(np.float32)


class _Quantiser:
    """Walks the graph once, in its order."""

    def __init__(self, model: onnx.ModelProto, statistics: Statistics, plan: Plan) -> None:
        self._model = onnx.ModelProto()
        self._model.CopyFrom(model)
        self._statistics = statistics
        self._plan = plan
        self._weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        self._new_weights: list[onnx.TensorProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._pairs: dict[str, str] = {}
        """Float tensor to its dequantised form."""

    def run(self) -> bytes:
        graph = self._model.graph
        for original in graph.node:
            node = onnx.NodeProto()
            node.CopyFrom(original)
            if node.op_type in {"Conv", "Add"} and not self._stays_float(node):
                self._quantise_inputs(node)
            self._nodes.append(node)
        used = {name for node in self._nodes for name in node.input}
        kept = [i for i in graph.initializer if i.name in used] + self._new_weights
        del graph.node[:], graph.initializer[:]
        graph.node.extend(self._nodes)
        graph.initializer.extend(kept)
        onnx.checker.check_model(self._model)
        return bytes(self._model.SerializeToString(deterministic=True))

    def _stays_float(self, node: onnx.NodeProto) -> bool:
        return bool(node.output[0].startswith(self._plan.keep_float))

    def _quantise_inputs(self, node: onnx.NodeProto) -> None:
        if node.op_type == "Conv":
            node.input[0] = self._activation(node.input[0])
            node.input[1] = self._weight(node)
            return
        for place, name in enumerate(node.input):
            node.input[place] = self._activation(name)

    def _activation(self, name: str) -> str:
        if name not in self._pairs:
            low, high = self._statistics.ranges[name]
            scale = max(high - low, _TINY) / _LEVELS
            zero = int(np.clip(round(-low / scale), 0, _LEVELS))
            parameters = [
                self._constant(f"{name}.scale", np.array(scale, np.float32)),
                self._constant(f"{name}.zero", np.array(zero, np.uint8)),
            ]
            self._add("QuantizeLinear", [name, *parameters], f"{name}.uint8")
            self._pairs[name] = self._add(
                "DequantizeLinear", [f"{name}.uint8", *parameters], f"{name}.dequantised"
            )
        return self._pairs[name]

    def _weight(self, node: onnx.NodeProto) -> str:
        name = node.input[1]
        depthwise = self._weights[name].shape[1] == 1
        bits = self._plan.depthwise_bits if depthwise else self._plan.dense_bits
        whole, scales = rounded_weights(
            self._weights[name], self._statistics.moments[node.output[0]], bits
        )
        inputs = [
            self._constant(f"{name}.int8", whole),
            self._constant(f"{name}.scale", scales),
            self._constant(f"{name}.zero", np.zeros(len(scales), np.int8)),
        ]
        return self._add("DequantizeLinear", inputs, f"{name}.dequantised", axis=0)

    def _constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self._new_weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _add(self, op: str, inputs: list[str], output: str, **attributes: int) -> str:
        self._nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output
