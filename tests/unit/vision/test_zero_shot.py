"""CLIP and SigLIP from a directory give exactly what transformers itself gives."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_models import CLASSES, make_model

from engines.contracts.vision import EmbedParams
from engines.errors import EngineError, ModelMissingError, UsageError
from engines.runtime.manifest import directory_revision
from engines.vision.label_engine import open_label_engine
from engines.vision.zero_shot import ZeroShotEngine


@pytest.fixture(scope="module", params=["clip", "siglip"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / request.param, request.param)


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [
        rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
        for h, w in ((40, 60), (60, 40), (32, 32), (90, 50), (33, 34))
    ]


def pil_reference(picture: np.ndarray, kind: str) -> np.ndarray:
    """What the processor's configuration says, done by hand with PIL: float32 [3, 32, 32]."""
    image = Image.fromarray(picture)
    if kind == "siglip":
        small = image.resize((32, 32), Image.Resampling.BICUBIC)
        return ((np.asarray(small, np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)
    scale = 32 / min(image.size)
    size = tuple(int(side * scale) for side in image.size)
    small = np.asarray(image.resize(size, Image.Resampling.BICUBIC), np.float32)
    top, left = (small.shape[0] - 32) // 2, (small.shape[1] - 32) // 2
    mean = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
    std = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)
    return ((small[top : top + 32, left : left + 32] / 255 - mean) / std).transpose(2, 0, 1)


def test_equals_transformers_own_output(directory: Path, pictures: list[np.ndarray]) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    params = EmbedParams(model=str(directory), classes=CLASSES, batch_size=3)
    engine = open_label_engine(params, directory)
    assert isinstance(engine, ZeroShotEngine)
    seen = engine.see(pictures)

    model = AutoModel.from_pretrained(directory).eval()
    tokens = AutoTokenizer.from_pretrained(directory)(
        [f"a photo of {c}" for c in CLASSES],
        padding="max_length" if "siglip" in directory.name else True,
        return_tensors="pt",
    )
    pixels = torch.from_numpy(np.stack([pil_reference(p, directory.name) for p in pictures]))
    given = {"input_ids": tokens["input_ids"], "pixel_values": pixels}
    if "siglip" not in directory.name:
        given["attention_mask"] = tokens["attention_mask"]
    with torch.inference_mode():
        out = model(**given)
    logits = out.logits_per_image
    want = logits.sigmoid() if "siglip" in directory.name else logits.softmax(dim=1)
    np.testing.assert_allclose(engine.logits(seen.features), logits.numpy(), atol=1e-4)
    np.testing.assert_allclose(seen.probabilities, want.numpy(), atol=1e-5)
    units = seen.features / np.linalg.norm(seen.features, axis=1, keepdims=True)
    np.testing.assert_allclose(units, out.image_embeds.numpy(), atol=1e-5)
    np.testing.assert_allclose(
        engine.embed_texts([f"a photo of {c}" for c in CLASSES]),
        out.text_embeds.numpy(),
        atol=1e-5,
    )


def test_without_classes_there_are_vectors_alone(
    directory: Path, pictures: list[np.ndarray]
) -> None:
    seen = ZeroShotEngine(EmbedParams(model=str(directory))).see(pictures)
    assert seen.probabilities.shape == (5, 0)
    assert len(seen.features) == 5


@pytest.mark.parametrize("changed", ["preprocessor_config.json", "tokenizer.json"])
def test_revision_holds_every_part(directory: Path, tmp_path: Path, changed: str) -> None:
    copy = tmp_path / directory.name
    shutil.copytree(directory, copy)
    assert directory_revision(copy) == directory_revision(directory)
    content = json.loads((copy / changed).read_text())
    (copy / changed).write_text(json.dumps({**content, "note": 1}))
    assert directory_revision(copy) != directory_revision(directory)


def test_same_name_with_other_weights_is_another_revision(tmp_path: Path) -> None:
    one = make_model(tmp_path / "a" / "model", "clip", seed=1)
    two = make_model(tmp_path / "b" / "model", "clip", seed=2)
    assert directory_revision(one) != directory_revision(two)


def test_what_is_no_image_text_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError):
        ZeroShotEngine(EmbedParams(model=str(tmp_path)))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UsageError, match="bert"):
        ZeroShotEngine(EmbedParams(model=str(tmp_path)))


def test_missing_weights_and_prompts_without_a_place_are_named(
    directory: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no place"):
        ZeroShotEngine(EmbedParams(model=str(directory), classes=("x",), prompt="a photo"))
    with pytest.raises(UsageError, match="openvino"):
        ZeroShotEngine(EmbedParams(model=str(directory), backend="openvino"))
    (tmp_path / "config.json").write_text((directory / "config.json").read_text())
    with pytest.raises(ModelMissingError, match="incomplete"):
        ZeroShotEngine(EmbedParams(model=str(tmp_path)))


def test_a_processor_for_another_input_size_is_refused_before_launch(
    directory: Path, pictures: list[np.ndarray], tmp_path: Path
) -> None:
    copy = tmp_path / "model"
    shutil.copytree(directory, copy)
    config = json.loads((copy / "preprocessor_config.json").read_text())
    config["size"] = {"height": 48, "width": 48}
    config["crop_size"] = {"height": 48, "width": 48}
    (copy / "preprocessor_config.json").write_text(json.dumps(config))
    engine = ZeroShotEngine(EmbedParams(model=str(copy)))
    with pytest.raises(EngineError, match=r"48, 48\], the model takes float32"):
        engine.see(pictures)


def test_a_processor_that_is_not_known_is_named(directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(directory, copy)
    config = copy / "preprocessor_config.json"
    config.write_text('{"image_processor_type": "SamImageProcessor"}')
    with pytest.raises(UsageError, match="'SamImageProcessor'; known are: CLIP, Siglip"):
        ZeroShotEngine(EmbedParams(model=str(copy)))
    config.write_text("[]")
    with pytest.raises(EngineError, match="not an object"):
        ZeroShotEngine(EmbedParams(model=str(copy)))
    config.write_text("{")
    with pytest.raises(EngineError, match="not JSON"):
        ZeroShotEngine(EmbedParams(model=str(copy)))
    config.unlink()
    with pytest.raises(ModelMissingError, match=r"preprocessor_config\.json"):
        ZeroShotEngine(EmbedParams(model=str(copy)))
