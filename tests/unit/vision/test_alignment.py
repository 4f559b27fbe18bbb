"""Attention of words over regions: right place, right sharpness, and CLIP's own vectors."""

from pathlib import Path

import numpy as np
import pytest
from tiny_models import CLASSES, make_model

from engines.contracts.media import Sample
from engines.contracts.vision import Box, EmbedParams
from engines.vision.alignment import entropy, inside, locate, token_attention
from engines.vision.embed import embed
from engines.vision.zero_shot import ZeroShotEngine
from flows.bench.perception_aligner import aligner_row
from flows.bench.perception_scenes import make_scene


def test_attention_is_on_the_cells_that_are_like_the_tokens() -> None:
    cells = np.zeros((4, 6, 3), np.float32)
    cells[..., 0] = 1
    cells[1:3, 4] = (0, 5, 0)
    attention = token_attention(np.array([[0, 1, 0], [0, 2, 0]], np.float32), cells, 20.0)
    assert attention.sum() == pytest.approx(1)
    found = locate(attention)
    box = found.box
    assert (box.x, box.y, box.w, box.h) == pytest.approx((4 / 6, 0.25, 1 / 6, 0.5))
    assert inside(found.top, found.box)
    assert found.entropy == pytest.approx(np.log(2), abs=1e-3)


def test_entropy_goes_from_one_cell_to_all() -> None:
    assert entropy(np.full((7, 7), 1 / 49, np.float32)) == pytest.approx(np.log(49), abs=1e-5)
    assert entropy(np.eye(1, 49, dtype=np.float32)) == pytest.approx(0, abs=1e-9)


def test_a_separate_like_region_does_not_widen_the_box() -> None:
    attention = np.zeros((5, 5), np.float32)
    attention[0, 0], attention[4, 4] = 0.6, 0.4
    assert locate(attention).box == Box(x=0, y=0, w=0.2, h=0.2)


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_vectors_are_those_of_transformers(tmp_path: Path, kind: str) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    directory = make_model(tmp_path / kind, kind)
    engine = ZeroShotEngine(EmbedParams(model=str(directory), classes=CLASSES))
    picture = np.random.default_rng(3).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    cells = engine.see([picture]).cells
    assert cells is not None
    assert cells.shape[1:3] == (4, 4)

    model = AutoModel.from_pretrained(directory).eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    ids = tokenizer([CLASSES[1]], return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        hidden = model.text_model(ids).last_hidden_state[0, 1:-1]
        project = model.text_projection if kind == "clip" else model.text_model.head
        tokens = project(hidden)
        units = torch.nn.functional.normalize(tokens, dim=1)
        keys = torch.nn.functional.normalize(torch.from_numpy(cells[0]).flatten(0, 1), dim=1)
        scale = model.logit_scale.exp()
        want = (scale * units @ keys.T).softmax(1).mean(0).reshape(4, 4).numpy()
    found = engine.align(1, cells[0])
    assert found.entropy == pytest.approx(entropy(want), abs=1e-3)
    assert found.top == locate(want).top


def test_stage_stores_an_alignment_for_every_label(tmp_path: Path) -> None:
    directory = make_model(tmp_path / "clip", "clip")
    params = EmbedParams(
        model=str(directory), classes=CLASSES, keep_score=0.05, enter_score=0.05, lone_score=0.05
    )
    rng = np.random.default_rng(3)
    stream = (
        (
            Sample(name=f"{i}.jpg", frame=i, pts=i, end_pts=i + 1, motion=0, sharpness=0),
            rng.integers(0, 256, (32, 32, 3), dtype=np.uint8),
        )
        for i in range(6)
    )
    document, _ = embed(stream, 1, 4, params, directory)
    assert document.labels
    assert [a.label for a in document.alignments] == [
        f"label:{i}" for i in range(len(document.labels))
    ]
    assert {a.sample_name for a in document.alignments} <= {f"{i}.jpg" for i in range(6)}
    assert all(0 <= a.entropy <= np.log(16) + 1e-4 for a in document.alignments)


def test_scenes_have_apart_objects_that_differ() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        scene = make_scene(rng)
        assert len({(c, s) for c, s, _ in scene.objects}) == len(scene.objects) >= 2
        for _, _, box in scene.objects:
            assert 0 <= box.x <= box.x + box.w <= 1


def test_the_kept_aligner_finds_what_it_never_saw() -> None:
    row = aligner_row()
    assert row.holds, row.figures
    assert row.figures["top1_region_recall"] > row.figures["baseline_by_colour_alone"]
