"""The default label model: its weights are read without torch, its pictures made as it learnt."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engines.contracts.vision import EmbedParams
from engines.errors import EngineError, UsageError
from engines.vision.efficientnet_engine import (
    EfficientNetEngine,
    checkpoint,
    class_names,
    resize,
    views,
)
from engines.vision.efficientnet_lite import build_onnx, same_padding
from engines.vision.label_engine import open_label_engine
from engines.vision.legacy_checkpoint import read_legacy_state

CHECKOUT = Path(__file__).resolve().parents[3]


def legacy(state: object) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(state, stream, _use_new_zipfile_serialization=False)
    return stream.getvalue()


def test_checkpoint_is_read_as_torch_reads_it() -> None:
    import torch

    whole = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    state = {"whole": whole, "turned": whole.T, "part": whole[1:3, 2:5], "count": torch.tensor(7)}
    read = read_legacy_state(legacy(state))
    for name, tensor in state.items():
        np.testing.assert_array_equal(read[name], tensor.numpy())
        assert read[name].dtype == tensor.numpy().dtype


class Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("__import__('os').environ.__setitem__('TAKEN_OVER', 'yes')",)


def test_checkpoint_cannot_run_code(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.delenv("TAKEN_OVER", raising=False)
    with pytest.raises(EngineError, match=r"may not contain \w+\.eval"):
        read_legacy_state(legacy({"a": Attack()}))
    assert "TAKEN_OVER" not in os.environ


@pytest.mark.parametrize("keep", [0, 10, 300, -5])
def test_cut_checkpoint_is_an_engine_error(keep: int) -> None:
    import torch

    data = legacy({"a": torch.zeros(100)})
    with pytest.raises(EngineError):
        read_legacy_state(data[:keep])


def test_another_network_is_not_converted() -> None:
    state = checkpoint()
    with pytest.raises(EngineError, match=r"_fc\.weight"):
        build_onnx({k: v for k, v in state.items() if k != "_fc.weight"})
    with pytest.raises(EngineError, match="10, 1280"):
        build_onnx({**state, "_fc.weight": np.zeros((10, 1280), np.float32)})


def test_conversion_is_the_same_bytes_each_time() -> None:
    state = checkpoint()
    assert build_onnx(state) == build_onnx(state)


def test_padding_is_that_of_tensorflow() -> None:
    # Output is ceil(n / stride); what is missing is split with the odd zero last.
    assert same_padding(3, 1) == (1, 1)
    assert same_padding(5, 1) == (2, 2)
    assert same_padding(3, 2) == (0, 1)
    assert same_padding(5, 2) == (1, 2)


def test_class_names_are_a_thousand_different_ones() -> None:
    names = class_names()
    assert len(names) == len(set(names)) == 1000
    known = {0: "tench", 207: "golden retriever", 657: "missile", 967: "espresso", 985: "daisy"}
    assert {i: names[i] for i in known} == known


def test_red_stays_in_channel_0() -> None:
    red = np.zeros((480, 640, 3), np.uint8)
    red[..., 0] = 255
    for view in views(red):
        assert view.shape == (224, 224, 3)
        assert (view == (255, 0, 0)).all()


@pytest.mark.parametrize("period", [2, 3, 8])
def test_fine_stripes_shrink_as_in_an_independent_resize(period: int) -> None:
    import torch
    from torch.nn.functional import interpolate

    stripes = np.zeros((1080, 1920, 3), np.uint8)
    stripes[:, ::period] = 255
    stripes[300:600] //= 2
    want = interpolate(
        torch.from_numpy(stripes).permute(2, 0, 1)[None].float(),
        (224, 224),
        mode="bicubic",
        antialias=True,
    )[0].permute(1, 2, 0)
    found = resize(stripes).astype(float)
    assert np.abs(found - want.clamp(0, 255).numpy()).mean() < 2


@pytest.mark.parametrize(
    "picture", [np.zeros((8, 8), np.uint8), np.zeros((8, 8, 4), np.uint8), np.zeros((8, 8, 3))]
)
def test_what_is_no_rgb_picture_is_refused(picture: np.ndarray) -> None:
    with pytest.raises(EngineError, match="uint8"):
        views(picture)


def test_one_pixel_high_pictures_have_views_too() -> None:
    for view in views(np.zeros((1, 900, 3), np.uint8)):
        assert view.shape == (224, 224, 3)


def test_unknown_model_names_what_exists(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="efficientnet-lite0"):
        open_label_engine(EmbedParams(model="resnet"), tmp_path)
    with pytest.raises(UsageError, match="own classes"):
        open_label_engine(EmbedParams(classes=("cat",)), tmp_path)


def test_a_warm_cache_neither_converts_nor_loads_torch(tmp_path: Path) -> None:
    EfficientNetEngine(EmbedParams(backend="onnxruntime"), tmp_path)
    script = (
        "import sys; from pathlib import Path; import numpy as np\n"
        "from engines.vision import efficientnet_engine as e\n"
        "from engines.contracts.vision import EmbedParams\n"
        "e.build_onnx = None\n"
        "engine = e.EfficientNetEngine(EmbedParams(backend='onnxruntime'), Path(sys.argv[1]))\n"
        "seen = engine.see([np.zeros((90, 160, 3), np.uint8)] * 3)\n"
        "assert seen.features.shape == (3, 1280), seen.features.shape\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
