"""INT8 by the user's own pictures is used past its gate only."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import cv2
import numpy as np
import pytest

from engines.contracts.media import Sample
from engines.contracts.vision import EmbedParams
from engines.errors import EngineError, ModelMissingError, UsageError
from engines.runtime.backends import open_session
from engines.runtime.session import NetworkSource, SessionInfo, SessionOptions, TensorSpec
from engines.vision.calibration_set import CalibrationSet
from engines.vision.describe import describe_embed
from engines.vision.efficientnet_engine import EfficientNetEngine, network_source
from engines.vision.efficientnet_int8 import GateReport, calibrated, judge
from engines.vision.embed import embed


class Scripted:
    """Logits that depend on the mean of the picture, turned for a share of them."""

    inputs = (TensorSpec(name="pixels", dtype="uint8", shape=(None, 224, 224, 3)),)

    def __init__(self, turn_every: int = 0) -> None:
        self.turn_every = turn_every

    def run(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        kind = batch["pixels"][:, 100, 100, 0].astype(int)
        logits = np.zeros((len(kind), 1000), np.float32)
        turned = (kind % self.turn_every == 0) if self.turn_every else np.zeros(len(kind), bool)
        logits[np.arange(len(kind)), np.where(turned, 999, kind)] = 9
        features = np.eye(256, dtype=np.float32)[kind] + 0.1
        return {"logits": logits, "features": features}

    def warm(self) -> None: ...

    def describe(self) -> SessionInfo:
        return SessionInfo(
            backend="torch",
            provider="s",
            device="cpu",
            precision="f32",
            threads=1,
            weights_sha256="0",
        )


def plain_pictures(count: int) -> Iterator[np.ndarray]:
    for i in range(count):
        yield np.full((60, 80, 3), i, np.uint8)


def test_gate_counts_what_changes() -> None:
    same = judge(Scripted(), Scripted(), plain_pictures(100))
    assert same.refusal is None
    assert (same.agreement, same.expected_loss, same.pictures) == (1, 0, 100)
    turned = judge(Scripted(turn_every=10), Scripted(), plain_pictures(100))
    assert turned.agreement == pytest.approx(0.9)
    assert turned.sure_agreement == pytest.approx(0.9)
    assert turned.expected_loss == pytest.approx(0.1, abs=0.02)
    assert "expected loss" in (turned.refusal or "")
    with pytest.raises(EngineError, match="no pictures"):
        judge(Scripted(), Scripted(), iter(()))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"expected_loss": 0.01}, "expected loss"),
        ({"sure_agreement": 0.96}, "sure labels"),
        ({"cosine": 0.9}, "cosine"),
    ],
)
def test_each_bound_refuses_by_itself(changed: dict[str, float], words: str) -> None:
    fine = GateReport(
        pictures=200,
        agreement=0.97,
        sure_pictures=100,
        sure_agreement=0.99,
        expected_loss=0.002,
        score_drift=0.02,
        cosine=0.995,
    )
    assert fine.refusal is None
    assert words in (fine.model_copy(update=changed).refusal or "")


def jpeg(value: int) -> bytes:
    done, data = cv2.imencode(".jpg", np.full((16, 16, 3), value % 256, np.uint8))
    assert done
    return bytes(data)


def test_pictures_come_from_files_and_archives_and_never_twice(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "samples.zip", "w") as archive:
        for i in range(600):
            archive.writestr(f"{i:04d}.jpg", jpeg(i))
    for i in range(300):
        (tmp_path / f"own{i:03d}.jpg").write_bytes(jpeg(i))
    (tmp_path / "notes.txt").write_text("not a picture")
    pictures = CalibrationSet(tmp_path)
    assert len(list(pictures.calibration())) == 512
    assert 200 <= len(list(pictures.gate())) <= 256
    assert not set(pictures._calibration) & set(pictures._gate)


def test_too_few_pictures_or_none_are_said(tmp_path: Path) -> None:
    (tmp_path / "one.jpg").write_bytes(jpeg(1))
    with pytest.raises(EngineError, match="has 1 pictures; INT8 needs 512"):
        CalibrationSet(tmp_path)
    with pytest.raises(ModelMissingError):
        CalibrationSet(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="calibration"):
        EfficientNetEngine(EmbedParams(precision="int8"), tmp_path)
    base = describe_embed(EmbedParams(precision="int8", calibration=str(tmp_path)))
    (tmp_path / "two.jpg").write_bytes(jpeg(2))
    other = describe_embed(EmbedParams(precision="int8", calibration=str(tmp_path)))
    assert base.model_revision != other.model_revision


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> NetworkSource:
    return network_source(tmp_path_factory.mktemp("networks"))


def test_a_refused_network_is_not_used_and_the_document_says_so(
    network: NetworkSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is given here; what it does to the stage is real."""
    report = GateReport(
        pictures=200,
        agreement=0.2,
        sure_pictures=50,
        sure_agreement=0.1,
        expected_loss=0.3,
        score_drift=0.4,
        cosine=0.5,
    )
    monkeypatch.setattr(
        "engines.vision.efficientnet_int8.open_int8", lambda *_: (Scripted(), report)
    )
    params = EmbedParams(precision="int8", calibration=str(tmp_path), threads=1)
    sample = Sample(name="0.jpg", frame=0, pts=0, end_pts=1, motion=0, sharpness=0)
    picture = np.random.default_rng(1).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    assert network.onnx_path is not None
    document, _ = embed(iter([(sample, picture)]), 1, 25, params, network.onnx_path.parent)
    assert document.degraded == (
        "INT8 did not pass its gate (expected loss 0.300, allowed is below 0.01); f32 is used",
    )
    assert document.model.endswith("f32")


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("bad", ["faint noise", "black"])
def test_a_bad_calibration_is_refused(
    corpus_dir: Path, network: NetworkSource, tmp_path: Path, bad: str
) -> None:
    import av

    rng = np.random.default_rng(4)
    faint = rng.normal(128, 4, (12, 64, 64, 3)).clip(0, 255).astype(np.uint8)
    made = faint * (bad == "faint noise")
    path = tmp_path / "bad.onnx"
    path.write_bytes(calibrated(network, iter(made)))
    real = []
    for name in ("act_archery.avi", "scene_toddler_reads.mp4", "scene_bottles.mp4"):
        with av.open(str(corpus_dir / "real" / name), metadata_errors="ignore") as container:
            frames = enumerate(container.decode(video=0))
            real += [f.to_ndarray(format="rgb24") for i, f in frames if i % 20 == 0 and i < 120]
    options = SessionOptions(threads=1)
    original = open_session("openvino", network, options)
    quantised = open_session(
        "openvino", replace(network, onnx_path=path), replace(options, precision="int8")
    )
    assert judge(quantised, original, real).refusal is not None
