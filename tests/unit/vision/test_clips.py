"""Models of clips: real runs of samples in, transformers' own numbers out."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_models import LENGTH, make_clip_model

from engines.contracts.media import Sample
from engines.contracts.vision import EmbedParams
from engines.errors import EngineError, ModelMissingError, UsageError
from engines.vision.clips import ClipEngine, windows
from engines.vision.embed import embed
from engines.vision.label_engine import open_label_engine
from engines.vision.temporal import attend


@pytest.fixture(scope="module", params=["videomae", "videomae-cls", "timesformer"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clip_model(tmp_path_factory.mktemp("clips") / request.param, request.param)


def pictures(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(8)
    return list(rng.integers(0, 256, (count, 40, 60, 3), dtype=np.uint8))


def stream(count: int):
    for i, picture in enumerate(pictures(count)):
        yield (
            Sample(
                name=f"{i}.jpg", frame=i, pts=i * 100, end_pts=i * 100 + 10, motion=0, sharpness=0
            ),
            picture,
        )


def test_equals_transformers_own_output(directory: Path) -> None:
    import torch
    from transformers import AutoModelForVideoClassification

    engine = open_label_engine(EmbedParams(model=str(directory), batch_size=2), directory)
    assert isinstance(engine, ClipEngine)
    assert engine.classes == ("wave", "jump", "sit")
    clips = [pictures(48)[i : i + LENGTH] for i in (0, 16, 32)]
    seen = engine.see(clips)

    model = AutoModelForVideoClassification.from_pretrained(directory).eval()
    rows = [
        [
            np.asarray(Image.fromarray(p).resize((48, 32), Image.Resampling.BILINEAR))[:, 8:40]
            for p in clip
        ]
        for clip in clips
    ]
    pixels = (np.array(rows) / 127.5 - 1).transpose(0, 1, 4, 2, 3).astype(np.float32)
    with torch.inference_mode():
        want = model(torch.from_numpy(pixels)).logits.softmax(1).numpy()
        by_hand = model.classifier(torch.from_numpy(seen.features)).softmax(1).numpy()
    np.testing.assert_allclose(seen.probabilities, want, atol=1e-5)
    np.testing.assert_allclose(by_hand, want, atol=1e-5)


def test_a_clip_is_different_samples_in_order_and_none_is_left_out() -> None:
    for count in (16, 17, 24, 39, 100):
        clips = list(windows(range(count), LENGTH, 8))
        for clip, items in clips:
            assert list(clip.indices) == items
            assert len(set(items)) == LENGTH
            assert clip.padding == 0
        assert {i for clip, _ in clips for i in clip.indices} == set(range(count))


def test_short_video_repeats_its_last_sample_and_says_so(directory: Path) -> None:
    ((clip, items),) = windows(range(5), LENGTH, 8)
    assert items == [0, 1, 2, 3, 4, *[4] * 11]
    assert (clip.padding, clip.middle) == (11, 2)
    assert list(windows(iter(()), LENGTH, 8)) == []
    ((alone, _),) = windows(range(1), LENGTH, 8)
    assert (alone.indices, alone.middle) == ((0,) * LENGTH, 0)
    params = EmbedParams(model=str(directory), keep_score=0.01, enter_score=0.01, lone_score=0.01)
    document, vectors = embed(stream(5), 1, 1000, params, directory)
    assert "repeated 11 times" in document.degraded[0]
    assert len(vectors) == 1
    assert document.embedded[0].sample_name == "2.jpg"


def test_stage_gives_a_vector_and_labels_for_every_clip(directory: Path) -> None:
    params = EmbedParams(model=str(directory), keep_score=0.01, enter_score=0.01, lone_score=0.01)
    document, vectors = embed(stream(36), 1, 1000, params, directory, end_pts=3600)
    assert [e.sample_name for e in document.embedded] == ["7.jpg", "15.jpg", "23.jpg", "27.jpg"]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert document.dimension == 24
    assert document.labels[0].span.start_pts == 0
    assert document.labels[0].span.end_pts == 3600
    assert not document.degraded


def test_what_does_not_fit_is_refused_before_launch(directory: Path, tmp_path: Path) -> None:
    engine = ClipEngine(EmbedParams(model=str(directory)))
    with pytest.raises(EngineError, match="a clip of 5 pictures"):
        engine.see([pictures(5)])
    with pytest.raises(UsageError, match="openvino"):
        ClipEngine(EmbedParams(model=str(directory), backend="openvino"))
    with pytest.raises(UsageError, match="of its own"):
        ClipEngine(EmbedParams(model=str(directory), classes=("a",)))
    with pytest.raises(UsageError, match="hop 17"):
        list(windows(range(20), LENGTH, 17))
    (tmp_path / "config.json").write_text((directory / "config.json").read_text())
    with pytest.raises(ModelMissingError):
        ClipEngine(EmbedParams(model=str(tmp_path)))


def test_weights_without_a_head_are_not_filled_with_random_numbers(tmp_path: Path) -> None:
    from transformers import VideoMAEConfig, VideoMAEImageProcessorPil, VideoMAEModel

    small = {"image_size": 32, "num_frames": LENGTH, "hidden_size": 24, "num_hidden_layers": 1}
    config = VideoMAEConfig(**small, num_attention_heads=4, intermediate_size=48)
    VideoMAEModel(config).save_pretrained(tmp_path)
    VideoMAEImageProcessorPil().save_pretrained(tmp_path)
    with pytest.raises(ModelMissingError, match="lack"):
        ClipEngine(EmbedParams(model=str(tmp_path)))


def test_vit_equals_transformers_own_output(tmp_path: Path) -> None:
    import torch
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

    torch.manual_seed(4)
    small = {"image_size": 32, "patch_size": 16, "hidden_size": 24, "num_hidden_layers": 2}
    config = ViTConfig(**small, num_attention_heads=4, intermediate_size=48, num_labels=4)
    model = ViTForImageClassification(config).eval()
    model.save_pretrained(tmp_path)
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    shown = [p[:32, :32] for p in pictures(5)]
    engine = open_label_engine(EmbedParams(model=str(tmp_path), batch_size=2), tmp_path)
    assert not isinstance(engine, ClipEngine)
    seen = engine.see(shown)
    pixels = (np.array(shown) / 127.5 - 1).transpose(0, 3, 1, 2).astype(np.float32)
    with torch.inference_mode():
        want = model(torch.from_numpy(pixels)).logits.softmax(1).numpy()
    np.testing.assert_allclose(seen.probabilities, want, atol=1e-5)


@pytest.mark.parametrize("reach", [1, 3, 50])
def test_windowed_attention_is_masked_full_attention(reach: int) -> None:
    import torch
    from torch.nn.functional import normalize, scaled_dot_product_attention

    vectors = np.random.default_rng(1).normal(size=(37, 8)).astype(np.float32)
    units = normalize(torch.from_numpy(vectors), dim=1)
    place = torch.arange(len(units))
    near = (place[:, None] - place).abs() <= reach
    full = scaled_dot_product_attention(
        units[None], units[None], units[None], attn_mask=near[None], scale=20.0
    )
    want = normalize(full[0], dim=1).numpy()
    np.testing.assert_allclose(attend(vectors, reach), want, atol=1e-5)


def test_memory_of_windowed_attention_grows_with_length_not_its_square() -> None:
    import tracemalloc

    peaks = []
    for count in (2000, 8000):
        vectors = np.random.default_rng(1).normal(size=(count, 32)).astype(np.float32)
        tracemalloc.start()
        attend(vectors, 16)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 5 * peaks[0]
