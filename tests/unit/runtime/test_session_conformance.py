"""Every backend that runs here computes what torch float32 computes, for every batch length."""

import logging
import secrets

import numpy as np
import pytest

from engines.errors import EngineError, UsageError
from engines.runtime.backends import installed_backends, open_session
from engines.runtime.batching import BatchRunner
from engines.runtime.session import NetworkSource, Session, SessionOptions
from engines.vision.efficientnet_engine import (
    REFERENCE_TOLERANCE,
    checkpoint,
    network_source,
    reference,
)

BACKENDS = {
    "openvino": SessionOptions(),
    "onnxruntime": SessionOptions(),
    "torch": SessionOptions(),
    "openvino in three streams": SessionOptions(threads=3, streams=3),
}
ROWS = 10


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> NetworkSource:
    return network_source(tmp_path_factory.mktemp("networks"))


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Fresh noise for every run of the suite; one row is a plain red picture."""
    seed = secrets.randbits(64)
    logging.getLogger(__name__).warning("seed of the rows: %d", seed)
    noise = np.random.default_rng(seed).integers(0, 256, (ROWS, 224, 224, 3), dtype=np.uint8)
    noise[1] = (255, 0, 0)
    return noise


@pytest.fixture(scope="module")
def expected(rows: np.ndarray) -> dict[str, np.ndarray]:
    """From the torch module itself, not through any session."""
    import torch

    from engines.vision.efficientnet_torch import EfficientNetLite0

    with torch.inference_mode():
        logits, features = EfficientNetLite0(checkpoint())(torch.from_numpy(rows.copy()))
    return {"logits": logits.numpy(), "features": features.numpy()}


@pytest.fixture(scope="module", params=BACKENDS)
def session(request: pytest.FixtureRequest, source: NetworkSource) -> Session:
    opened = open_session(request.param.split()[0], source, BACKENDS[request.param])
    opened.warm()
    return opened


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_equals_torch_for_every_batch_and_a_short_last_one(
    session: Session, rows: np.ndarray, expected: dict[str, np.ndarray], batch: int
) -> None:
    outputs = BatchRunner(session, batch).run({"pixels": rows})
    for name, want in expected.items():
        np.testing.assert_allclose(outputs[name], want, atol=REFERENCE_TOLERANCE, rtol=0)


def test_a_row_does_not_depend_on_its_neighbours(session: Session, rows: np.ndarray) -> None:
    alone = session.run({"pixels": rows[:1]})["features"][0]
    first_of_eight = session.run({"pixels": rows[:8]})["features"][0]
    last_of_three = session.run({"pixels": rows[[5, 6, 0]]})["features"][2]
    for other in (first_of_eight, last_of_three):
        cosine = alone @ other / np.linalg.norm(alone) / np.linalg.norm(other)
        assert cosine >= 0.9999


@pytest.mark.parametrize(("precision", "least"), [("f16", 0.999), ("bf16", 0.99)])
def test_half_precision_keeps_its_vectors(
    source: NetworkSource,
    rows: np.ndarray,
    expected: dict[str, np.ndarray],
    precision: str,
    least: float,
) -> None:
    session = open_session("torch", source, SessionOptions(precision=precision, threads=1))
    features = session.run({"pixels": rows[:2]})["features"]
    want = expected["features"][:2]
    lengths = np.linalg.norm(features, axis=1) * np.linalg.norm(want, axis=1)
    assert ((features * want).sum(axis=1) / lengths).min() >= least


def test_a_result_is_not_overwritten_by_the_next(session: Session, rows: np.ndarray) -> None:
    first = session.run({"pixels": rows[:2]})["features"]
    kept = first.copy()
    session.run({"pixels": rows[2:4]})
    np.testing.assert_array_equal(first, kept)


def test_says_what_it_is(session: Session) -> None:
    info = session.describe()
    assert info.precision == "f32"
    assert info.device == "cpu"
    assert info.backend in info.provider
    assert len(info.weights_sha256) == 64


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"pixels": np.zeros((1, 192, 192, 3), np.uint8)}, "192"),
        ({"pixels": np.zeros((1, 224, 224, 3), np.float32)}, "float32"),
        ({"pixels": np.zeros((0, 224, 224, 3), np.uint8)}, "above zero"),
        ({"image": np.zeros((1, 224, 224, 3), np.uint8)}, "pixels"),
    ],
)
def test_input_of_another_kind_is_refused_before_launch(
    session: Session, batch: dict[str, np.ndarray], words: str
) -> None:
    with pytest.raises(EngineError, match=words):
        session.run(batch)


def test_kept_reference_is_what_torch_computes() -> None:
    import torch

    from engines.vision.efficientnet_torch import EfficientNetLite0

    kept = reference()
    with torch.inference_mode():
        logits, features = EfficientNetLite0(checkpoint())(
            torch.from_numpy(kept.inputs["pixels"].copy())
        )
    np.testing.assert_allclose(kept.outputs["logits"], logits.numpy(), atol=1e-4)
    np.testing.assert_allclose(kept.outputs["features"], features.numpy(), atol=1e-4)


def test_unknown_backend_names_those_that_exist(source: NetworkSource) -> None:
    with pytest.raises(UsageError, match="openvino, onnxruntime, torch, tensorrt"):
        open_session("caffe", source)


@pytest.mark.skipif("tensorrt" in installed_backends(), reason="tensorrt is installed")
def test_backend_that_is_not_installed_names_those_that_are(source: NetworkSource) -> None:
    with pytest.raises(UsageError, match="installed: openvino, onnxruntime, torch"):
        open_session("tensorrt", source)


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("onnxruntime", SessionOptions(precision="bf16")),
        ("torch", SessionOptions(precision="int8")),
        ("torch", SessionOptions(device="cuda:7")),
        ("onnxruntime", SessionOptions(device="cuda")),
        ("openvino", SessionOptions(device="npu")),
    ],
)
def test_precision_or_device_that_is_not_there_is_refused(
    source: NetworkSource, backend: str, options: SessionOptions
) -> None:
    with pytest.raises(UsageError):
        open_session(backend, source, options)
