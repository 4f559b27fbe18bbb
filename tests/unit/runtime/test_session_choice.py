"""The fastest backend that agrees is chosen, once; converted networks are made once."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.errors import EngineError
from engines.runtime.choice import Choice, Reference, choose_session
from engines.runtime.conversion import converted, recipe_hash
from engines.runtime.session import NetworkSource, SessionOptions, TensorSpec


@pytest.fixture
def doubling(tmp_path: Path) -> NetworkSource:
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["y"])],
        "double",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(np.array(2, np.float32), "two")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "double.onnx")
    return NetworkSource(
        name="double",
        onnx_path=tmp_path / "double.onnx",
        weights_sha256="d" * 64,
        inputs=(TensorSpec(name="x", dtype="float32", shape=(None, 4)),),
        outputs=("y",),
    )


def reference(factor: float) -> Reference:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    return Reference({"x": x}, {"y": x * np.float32(factor)}, 1e-5)


def test_choice_is_measured_recorded_and_used_again(
    doubling: NetworkSource, tmp_path: Path
) -> None:
    def choose() -> Choice:
        session, choice = choose_session(
            doubling,
            SessionOptions(),
            reference(2),
            ("openvino", "onnxruntime", "tensorrt"),
            timing_rows={"x": np.ones((4, 4), np.float32)},
            cache_dir=tmp_path,
        )
        assert session.describe().backend == choice.backend
        return choice

    first = choose()
    by_name = {m.backend: m for m in first.measured}
    fastest = max(
        (m for m in first.measured if m.rows_per_s is not None), key=lambda m: m.rows_per_s or 0
    )
    assert first.backend == fastest.backend
    assert by_name["tensorrt"].rows_per_s is None
    assert by_name["tensorrt"].reason
    assert choose() == first


def test_a_backend_that_disagrees_is_not_used(doubling: NetworkSource, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="differs from the reference by"):
        choose_session(
            doubling,
            SessionOptions(),
            reference(2.01),
            ("openvino", "onnxruntime"),
            timing_rows={"x": np.ones((4, 4), np.float32)},
            cache_dir=tmp_path,
        )
    assert not list(tmp_path.glob("*choice*"))


def test_conversion_is_made_once_for_its_recipe(tmp_path: Path) -> None:
    made: list[str] = []

    def make(recipe: dict[str, str]) -> bytes:
        def run() -> bytes:
            made.append(recipe_hash(recipe))
            return repr(recipe).encode()

        return converted(tmp_path / "new", "net", recipe, run, suffix=".bin").path.read_bytes()

    recipe = {"weights": "a", "converter": "1"}
    assert make(recipe) == make(recipe)
    assert len(made) == 1
    make({**recipe, "converter": "2"})
    make({**recipe, "weights": "b"})
    assert len(set(made)) == 3


def test_a_damaged_conversion_is_made_again(tmp_path: Path) -> None:
    def get() -> Path:
        return converted(tmp_path, "net", {"w": "1"}, lambda: b"right", suffix=".bin").path

    path = get()
    path.write_bytes(b"wrong")
    assert get().read_bytes() == b"right"
    path.unlink()
    assert get().read_bytes() == b"right"


def test_a_failed_conversion_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> bytes:
        msg = "no"
        raise EngineError(msg)

    with pytest.raises(EngineError):
        converted(tmp_path, "net", {"w": "1"}, fail, suffix=".bin")
    assert not list(tmp_path.iterdir())
