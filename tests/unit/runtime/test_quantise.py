"""INT8 networks: near the float one, in whole numbers where they should be, on real backends."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.errors import EngineError
from engines.runtime.backends import open_session
from engines.runtime.calibration import collect
from engines.runtime.quantise import Plan, quantise, rounded_weights
from engines.runtime.session import NetworkSource, SessionOptions, TensorSpec


def small_network() -> onnx.ModelProto:
    """Convolution, depthwise, two projections and a sum, as the blocks of mobile networks are."""
    rng = np.random.default_rng(6)

    def conv(name: str, source: str, shape: tuple[int, ...], stride: int = 1) -> list[object]:
        weight = rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)
        bias = rng.normal(0, 0.2, shape[0]).astype(np.float32)
        kernel, pad = shape[2], shape[2] // 2
        weights.extend(
            [
                numpy_helper.from_array(weight, f"{name}.w"),
                numpy_helper.from_array(bias, f"{name}.b"),
            ]
        )
        return helper.make_node(
            "Conv",
            [source, f"{name}.w", f"{name}.b"],
            [name],
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=shape[0] if shape[1] == 1 else 1,
        )

    weights = [
        numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("lo", 0), ("hi", 6))
    ]
    nodes = [
        conv("stem", "x", (12, 3, 3, 3), 2),
        helper.make_node("Clip", ["stem", "lo", "hi"], ["stem.relu6"]),
        conv("depth", "stem.relu6", (12, 1, 3, 3)),
        helper.make_node("Clip", ["depth", "lo", "hi"], ["depth.relu6"]),
        conv("project", "depth.relu6", (12, 12, 1, 1)),
        helper.make_node("Add", ["project", "stem.relu6"], ["sum"]),
        conv("head", "sum", (20, 12, 1, 1)),
        helper.make_node("GlobalAveragePool", ["head"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 20, 1, 1])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def rows(count: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(count, 3, 1, 1)) + 0.3 * rng.normal(size=(count, 3, 32, 32))
    return flat.astype(np.float32)


def source(path: Path, data: bytes) -> NetworkSource:
    path.write_bytes(data)
    return NetworkSource(
        name="small",
        onnx_path=path,
        weights_sha256="5" * 64,
        inputs=(TensorSpec(name="x", dtype="float32", shape=(None, 3, 32, 32)),),
        outputs=("y",),
    )


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy"])
@pytest.mark.parametrize("backend", ["openvino", "onnxruntime"])
def test_int8_is_near_float_and_float_layers_stay(
    tmp_path: Path, method: str, backend: str
) -> None:
    model = small_network()
    statistics = collect(model, ({"x": rows(4, seed)} for seed in range(8)), method)
    assert statistics.rows == 32
    data = quantise(model, statistics, Plan(keep_float=("stem",)))
    types = {i.name: i.data_type for i in onnx.load_from_string(data).graph.initializer}
    whole = {name for name, kind in types.items() if kind == TensorProto.INT8}
    assert {n for n in whole if n.endswith(".int8")} == {
        f"{n}.w.int8" for n in ("depth", "project", "head")
    }
    assert "stem.w" in types
    options = SessionOptions(threads=1)
    plain = open_session(backend, source(tmp_path / "f.onnx", model.SerializeToString()), options)
    fast = open_session(
        backend, source(tmp_path / "q.onnx", data), replace(options, precision="int8")
    )
    assert fast.describe().precision == "int8"
    fresh = {"x": rows(9, seed=77)}
    want, have = plain.run(fresh)["y"], fast.run(fresh)["y"]
    assert 0 < np.abs(want - have).max() < 0.15 * want.std() + 0.05


def test_bytes_are_the_same_each_time() -> None:
    model = small_network()

    def made() -> bytes:
        statistics = collect(model, [{"x": rows(4)}], "percentile")
        return quantise(model, statistics, Plan())

    assert made() == made()


def test_rounding_minds_what_flows_in() -> None:
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(6, 1, 3, 3)).astype(np.float32)
    inputs = 5 + rng.normal(size=(6, 500, 9))  # nearly flat, as most of a picture is
    moments = inputs.transpose(0, 2, 1) @ inputs / 500
    whole, scales = rounded_weights(weights, moments, 7)
    assert np.abs(whole).max() <= 63
    plain = np.round(weights.reshape(6, 9) / scales[:, None])

    def error(chosen: np.ndarray) -> float:
        off = chosen.reshape(6, 9) * scales[:, None] - weights.reshape(6, 9)
        return float(((inputs @ off[:, :, None]) ** 2).mean())

    assert error(whole.astype(float)) < 0.5 * error(plain)


def test_a_dead_channel_stays_dead() -> None:
    weights = np.full((2, 4, 1, 1), 1e-9, np.float32)
    weights[1] = 0.5
    whole, scales = rounded_weights(weights, np.eye(4), 8)
    assert (whole[0] == 0).all()
    assert scales[0] == 1
    np.testing.assert_allclose(whole[1] * scales[1], weights[1])


def test_outliers_widen_minmax_alone() -> None:
    model = small_network()
    batch = rows(16)
    batch[0, :, 0, 0] = 400
    width = {}
    for method in ("minmax", "percentile", "entropy"):
        low, high = collect(model, [{"x": batch}], method).ranges["x"]
        width[method] = high - low
    assert width["minmax"] > 400
    assert width["percentile"] < width["minmax"]
    assert width["entropy"] < width["minmax"]


def test_nothing_to_calibrate_on_is_refused() -> None:
    with pytest.raises(EngineError, match="no rows"):
        collect(small_network(), [], "minmax")
    with pytest.raises(EngineError, match="not finite"):
        collect(small_network(), [{"x": np.full((1, 3, 32, 32), np.nan, np.float32)}], "minmax")
