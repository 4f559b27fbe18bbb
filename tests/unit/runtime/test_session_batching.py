"""Out of memory, numbers that are none, and padding."""

import gc
import weakref
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from engines.errors import EngineError, NotFiniteError, OutOfMemoryError, UsageError
from engines.runtime.backends import open_session
from engines.runtime.batching import BatchRunner, batches_by_length
from engines.runtime.session import (
    Array,
    NetworkSource,
    SessionInfo,
    TensorSpec,
    says_out_of_memory,
)


class Scarce:
    """A session with room for ``room`` rows, which watches what is still alive at each call."""

    inputs = (TensorSpec(name="x", dtype="float32", shape=(None, 2)),)

    def __init__(self, room: int) -> None:
        self.room = room
        self.tried: list[int] = []
        self._big: weakref.ref[np.ndarray] | None = None
        self.leaked = False

    def run(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        if self._big is not None:
            gc.collect()
            self.leaked |= self._big() is not None
            self._big = None
        rows = batch["x"]
        self.tried.append(len(rows))
        if len(rows) > self.room:
            big = np.zeros((len(rows), 1000), np.float32)
            self._big = weakref.ref(big)
            msg = "CUDA out of memory"
            raise OutOfMemoryError(msg)
        return {"y": rows * 2}

    def warm(self) -> None:
        self.run({"x": np.zeros((1, 2), np.float32)})

    def describe(self) -> SessionInfo:
        return SessionInfo(
            backend="torch",
            provider="scarce",
            device="cpu",
            precision="f32",
            threads=1,
            weights_sha256="0",
        )


def test_batch_is_halved_until_it_fits_and_stays_so() -> None:
    session = Scarce(room=4)
    runner = BatchRunner(session, 32)
    rows = np.arange(600, dtype=np.float32).reshape(300, 2)
    outputs = runner.run({"x": rows})
    np.testing.assert_array_equal(outputs["y"], rows * 2)
    assert session.tried[:4] == [32, 16, 8, 4]
    assert set(session.tried[4:]) == {4}
    assert not session.leaked
    runner.run({"x": rows[:8]})
    assert session.tried[-2:] == [4, 4]


def test_halving_stops_at_one_and_says_so() -> None:
    session = Scarce(room=0)
    with pytest.raises(OutOfMemoryError, match="does not fit"):
        BatchRunner(session, 8).run({"x": np.zeros((20, 2), np.float32)})
    assert session.tried == [8, 4, 2, 1]


def test_batch_below_one_is_refused() -> None:
    with pytest.raises(UsageError):
        BatchRunner(Scarce(1), 0)


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes",
        "std::bad_alloc",
        "Failed to allocate memory for requested buffer of size 12",
    ],
)
def test_the_libraries_ways_of_saying_that_memory_ran_out(text: str) -> None:
    assert says_out_of_memory(RuntimeError(text))
    assert not says_out_of_memory(RuntimeError("shape mismatch"))


@pytest.fixture
def logarithm(tmp_path) -> NetworkSource:
    """A network that gives NaN for negative numbers."""
    graph = helper.make_graph(
        [helper.make_node("Log", ["x"], ["y"])],
        "log",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "log.onnx"
    onnx.save(model, path)
    return NetworkSource(
        name="log",
        onnx_path=path,
        weights_sha256="0",
        inputs=(TensorSpec(name="x", dtype="float32", shape=(None, 2)),),
        outputs=("y",),
    )


@pytest.mark.parametrize("backend", ["openvino", "onnxruntime"])
def test_nan_never_passes(logarithm: NetworkSource, backend: str) -> None:
    session = open_session(backend, logarithm)
    fine = session.run({"x": np.ones((3, 2), np.float32)})["y"]
    np.testing.assert_allclose(fine, 0)
    rows = np.array([[1, 1], [-1, 1], [2, 2]], np.float32)
    with pytest.raises(NotFiniteError, match="1 of 3 rows"):
        session.run({"x": rows})


@pytest.mark.parametrize("backend", ["openvino", "onnxruntime"])
def test_a_file_that_is_no_network_is_an_engine_error(
    logarithm: NetworkSource, backend: str
) -> None:
    assert logarithm.onnx_path is not None
    logarithm.onnx_path.write_bytes(b"not a network")
    with pytest.raises(EngineError, match="log"):
        open_session(backend, logarithm)


def test_network_without_onnx_says_where_it_runs(logarithm: NetworkSource) -> None:
    source = NetworkSource("only-torch", None, "0", logarithm.inputs, ("y",))
    with pytest.raises(UsageError, match="torch"):
        open_session("openvino", source)


@given(
    lengths=st.lists(st.integers(1, 500), max_size=40),
    max_items=st.integers(1, 9),
    multiple=st.integers(1, 64),
    max_waste=st.floats(0, 0.5),
)
def test_length_batches_hold_everything_once_within_the_waste(
    lengths: list[int], max_items: int, multiple: int, max_waste: float
) -> None:
    batches = batches_by_length(
        lengths, max_items=max_items, multiple=multiple, max_waste=max_waste
    )
    assert sorted(i for b in batches for i in b.indices) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch.indices) <= max_items
        assert batch.length % multiple == 0
        assert batch.length >= max(lengths[i] for i in batch.indices)
        used = sum(lengths[i] for i in batch.indices)
        assert batch.waste == pytest.approx(1 - used / (batch.length * len(batch.indices)))
        if len(batch.indices) > 1:
            assert batch.waste <= max_waste + 1e-9
