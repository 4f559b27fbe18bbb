"""What flows through a convolutional network on real inputs: the numbers that INT8 is chosen by.

Ranges of tensors (min-max, percentile, or the range with the least Kullback-Leibler divergence,
as Migacz, "8-bit Inference with TensorRT", 2017), and second moments of what each convolution
takes in, which say how a rounding error of one weight can be made good by its neighbours.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper

from engines.errors import EngineError
from engines.runtime.session import Array

Method = Literal["minmax", "percentile", "entropy"]
PERCENTILE = 99.99
_VALUES = 1024
"""Taken of each tensor in each row, evenly spaced from a drawn start; extremes are exact."""
_PLACES = 96
"""Positions of each convolution's input per row that enter its moments."""
_MOMENT_ROWS = 64
"""More rows change the moments too little to pay for."""
_BINS = 1024
_ENTROPY_FLOOR = 99.9
"""Percentile below which the search does not clip: with less, a few strong values that carry the
answer weigh nothing against many weak ones."""
_LEVELS = 128
_QUANTISED = 255
_SEED = 16

Moments = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """Of one network over the calibration rows."""

    ranges: Mapping[str, tuple[float, float]]
    """By tensor: lower and upper end, zero always inside."""
    moments: Mapping[str, Moments]
    """By convolution's output: [k, k] second moments of its inputs, depthwise [c, k, k]."""
    rows: int


def collect(
    model: onnx.ModelProto, rows: Iterable[Mapping[str, Array]], method: Method
) -> Statistics:
    """Run the float network over ``rows`` and gather.

    Args:
        model: with float convolutions; inputs of any batch length.
        rows: batches of inputs, all of them read once.
        method: how the range of a tensor is chosen; one with bounds of its own (after a clip)
            always goes by its extremes.

    Raises:
        EngineError: there are no rows, or what flows is not finite.
    """
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    ranged = sorted(
        {node.input[0] for node in convolutions}
        | {node.output[0] for node in model.graph.node if node.op_type in {"Add", "Conv", "Clip"}}
    )
    session = _with_outputs(model, ranged)
    rng = np.random.default_rng(_SEED)
    drawn: dict[str, list[npt.NDArray[np.float32]]] = {name: [] for name in ranged}
    moments: dict[str, Moments] = {}
    count = 0
    for batch in rows:
        values = dict(zip(ranged, session.run(ranged, dict(batch)), strict=True))
        for name, value in values.items():
            drawn[name].append(_draw(value, rng))
        if count < _MOMENT_ROWS:
            for node in convolutions:
                found = _moments(node, model, values[node.input[0]], rng)
                moments[node.output[0]] = moments.get(node.output[0], 0.0) + found
        count += len(next(iter(batch.values())))
    if not count:
        msg = "no rows to calibrate on"
        raise EngineError(msg)
    bounded = {node.output[0] for node in model.graph.node if node.op_type == "Clip"}
    ranges = {
        name: _range(np.concatenate(values), "minmax" if name in bounded else method)
        for name, values in drawn.items()
    }
    if not all(np.isfinite(pair).all() for pair in ranges.values()):
        msg = "what flows through the network on the calibration rows is not finite"
        raise EngineError(msg)
    return Statistics(ranges, moments, count)


def _with_outputs(model: onnx.ModelProto, names: list[str]) -> onnxruntime.InferenceSession:
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    known = {output.name for output in watched.graph.output}
    watched.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in names
        if name not in known
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        watched.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _draw(value: npt.NDArray[np.float32], rng: np.random.Generator) -> npt.NDArray[np.float32]:
    flat = value.reshape(-1)
    step = max(1, len(flat) // (_VALUES * len(value)))
    # An odd step walks through all channels and places, whatever the powers of two in the shape.
    step += 1 - step % 2
    some = flat[int(rng.integers(step)) :: step]
    return np.concatenate([some, [flat.min(), flat.max()]]).astype(np.float32)


def _range(values: npt.NDArray[np.float32], method: Method) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if method == "percentile":
        low, high = (float(v) for v in np.percentile(values, [100 - PERCENTILE, PERCENTILE]))
    elif method == "entropy":
        limit = _least_divergence(np.abs(values))
        low, high = max(low, -limit), min(high, limit)
    return min(low, 0.0), max(high, 0.0)


def _least_divergence(sizes: npt.NDArray[np.float32]) -> float:
    """The clipping point whose quantised histogram is nearest to the true one."""
    counts, edges = np.histogram(sizes, bins=_BINS)
    counts[0] = 0  # exact zeros quantise to zero whatever the scale
    best, limit = np.inf, float(edges[-1])
    inside = np.searchsorted(edges, np.percentile(sizes, _ENTROPY_FLOOR))
    for stop in range(max(_LEVELS, int(inside)), _BINS + 1, 8):
        wanted = counts[:stop].astype(np.float64)
        wanted[-1] += counts[stop:].sum()
        parts = np.array_split(counts[:stop], _LEVELS)
        spread = [p.sum() / max(np.count_nonzero(p), 1) * (p > 0) for p in parts]
        have = np.concatenate(spread)
        seen = (wanted > 0) & (have > 0)
        lost = wanted[(wanted > 0) & (have == 0)].sum()
        p, q = wanted[seen] / wanted.sum(), have[seen] / max(have.sum(), 1)
        divergence = float((p * np.log(p / q)).sum()) + lost / wanted.sum()
        if divergence < best:
            best, limit = divergence, float(edges[stop])
    return limit


def _moments(
    node: onnx.NodeProto,
    model: onnx.ModelProto,
    value: npt.NDArray[np.float32],
    rng: np.random.Generator,
) -> Moments:
    """Sum over the drawn places of the outer product of what the kernel lies on, per place."""
    settings = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    kernel, stride = int(settings["kernel_shape"][0]), int(settings["strides"][0])
    top, left, bottom, right = settings["pads"]
    padded = np.pad(value, ((0, 0), (0, 0), (top, bottom), (left, right)))
    patches = sliding_window_view(padded, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    height, width = patches.shape[2:4]
    places = rng.integers(0, height * width, min(height * width, _PLACES))
    some = patches[:, :, places // width, places % width]
    channels, area = value.shape[1], kernel * kernel
    if int(settings.get("group", 1)) > 1:
        flat = some.transpose(1, 0, 2, 3, 4).reshape(channels, -1, area).astype(np.float64)
        depthwise: Moments = flat.transpose(0, 2, 1) @ flat / flat.shape[1]
        return depthwise
    rows = some.transpose(0, 2, 1, 3, 4).reshape(-1, channels * area).astype(np.float64)
    full: Moments = rows.T @ rows / len(rows)
    return full
