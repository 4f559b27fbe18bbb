"""CLIP and SigLIP from a directory give exactly what transformers itself gives."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from engines.contracts.vision import EmbedParams
from engines.errors import ModelMissingError, UsageError
from engines.runtime.manifest import directory_revision
from engines.vision.label_engine import open_label_engine
from engines.vision.zero_shot import ZeroShotEngine

pytestmark = pytest.mark.skipif(
    find_spec("torchvision") is None,
    reason="the processors of CLIP and SigLIP need torchvision, which the install leaves out",
)

CLASSES = ("a cat", "a dog", "the sea")


def save_tokenizer(path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<s>", "</s>", "<unk>", "a", "photo", "of", "cat", "dog", "the", "sea"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=12,
    ).save_pretrained(path)


def make_model(path: Path, kind: str, seed: int = 0) -> Path:
    import torch
    from transformers import (
        CLIPConfig,
        CLIPImageProcessorPil,
        CLIPModel,
        SiglipConfig,
        SiglipImageProcessorPil,
        SiglipModel,
    )

    torch.manual_seed(seed)
    tower = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    text = {**tower, "vocab_size": 11, "max_position_embeddings": 12, "eos_token_id": 2}
    text |= {"bos_token_id": 1, "pad_token_id": 0}
    vision = {**tower, "image_size": 32, "patch_size": 8}
    if kind == "clip":
        config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
        model, processor = (
            CLIPModel(config),
            CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=32),
        )
    else:
        model = SiglipModel(SiglipConfig(text_config=text, vision_config=vision))
        processor = SiglipImageProcessorPil(size={"height": 32, "width": 32})
    model.save_pretrained(path)
    processor.save_pretrained(path)
    save_tokenizer(path)
    return path


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


def test_equals_transformers_own_output(directory: Path, pictures: list[np.ndarray]) -> None:
    import torch
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

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
    pixels = AutoImageProcessor.from_pretrained(directory, backend="pil")(
        pictures, return_tensors="pt"
    )["pixel_values"]
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
    import shutil

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
