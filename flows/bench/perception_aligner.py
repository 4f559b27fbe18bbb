"""A small aligner of words and regions, trained on made scenes and measured on others.

No image-text model is packaged anywhere, so the alignment code of ``engines.vision.alignment``
cannot be measured with CLIP's weights here. This is the smallest model that has the same form
(contextual token vectors, region vectors in one space, attention between them) and an exact truth.

``python -m flows.bench.perception_aligner`` trains it again (seeded, a CPU minute) and
writes the weights beside this file.
"""

import base64
import json
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.contracts.vision import Box
from engines.vision.alignment import entropy, inside, locate, token_attention
from flows.bench import BenchRow
from flows.bench.perception_scenes import WORDS, Scene, make_scene

MIN_RECALL = 0.82
MAX_ENTROPY = 1.35
_WEIGHTS = "perception_aligner.json"
_WIDTH = 48
_GRID = 8
_TRAIN_SEED, _TEST_SEED = 13, 1013
_STEPS, _BATCH, _POOL = 1500, 24, 3000
_TEXTS = 8
"""Asked of each scene in a step, with repeats where it has fewer objects."""
_RATE = 6e-3
_SHARPEN = 0.1
"""Weight of the entropy in the loss."""
_TEST_SCENES = 400


class Aligner(nn.Module):  # type: ignore[misc] # torch is not followed by mypy
    """Pictures to region vectors, two words to contextual token vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.regions = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, _WIDTH, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1),
        )
        self.words = nn.Embedding(len(WORDS), _WIDTH)
        self.context = nn.Sequential(
            nn.Linear(2 * _WIDTH, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH)
        )
        self.log_scale = nn.Parameter(torch.tensor(2.5))

    def cells(self, pixels: Tensor) -> Tensor:
        """Uint8 [n, 64, 64, 3] to [n, 8, 8, d]."""
        scaled = pixels.permute(0, 3, 1, 2).float() / 127.5 - 1
        return self.regions(scaled).permute(0, 2, 3, 1)

    def tokens(self, words: Tensor) -> Tensor:
        """Int64 [n, 2] to [n, 2, d]."""
        own = self.words(words)
        return self.context(torch.cat([own, own.mean(1, keepdim=True).expand_as(own)], dim=2))

    def forward(self, pixels: Tensor, words: Tensor) -> Tensor:
        """Attention [n * q, 64] for q texts of each picture, as ``token_attention`` has it."""
        keys = functional.normalize(self.cells(pixels).flatten(1, 2), dim=2)
        keys = keys.repeat_interleave(len(words) // len(keys), dim=0)
        queries = functional.normalize(self.tokens(words), dim=2)
        logits = self.log_scale.exp() * queries @ keys.transpose(1, 2)
        return logits.softmax(dim=2).mean(dim=1)


def train() -> Aligner:
    """The model after its fixed number of steps; the same weights each time on one machine."""
    torch.manual_seed(_TRAIN_SEED)
    rng = np.random.default_rng(_TRAIN_SEED)
    pool = [make_scene(rng) for _ in range(_POOL)]
    model = Aligner()
    optimiser = torch.optim.AdamW(model.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=_STEPS)
    for _ in range(_STEPS):
        pixels, words, masks = _batch(pool, rng)
        attention = model(pixels, words)
        hit = (attention * masks).sum(dim=1).clamp_min(1e-9)
        spread = -(attention * attention.clamp_min(1e-9).log()).sum(dim=1)
        loss = (-hit.log() + _SHARPEN * spread).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    model.eval()
    return model


def aligner_row() -> BenchRow:
    """The kept weights on scenes that training never drew, beside guessing by one word alone."""
    model = load()
    rng = np.random.default_rng(_TEST_SEED)
    scale = float(model.log_scale.detach().exp())
    hits, colour_hits, entropies, chance = [], [], [], []
    for scene in (make_scene(rng) for _ in range(_TEST_SCENES)):
        with torch.inference_mode():
            cells = model.cells(torch.from_numpy(scene.picture[None])).numpy()[0]
        for colour, shape, box in scene.objects:
            attention = token_attention(_tokens(model, colour, shape), cells, scale)
            hits.append(inside(locate(attention).top, box))
            entropies.append(entropy(attention))
            colour_hits.append(_one_word_right(scene, colour, box))
            chance.append(box.w * box.h)
    recall, mean_entropy = float(np.mean(hits)), float(np.mean(entropies))
    return BenchRow(
        name="alignment of words and regions, small trained model on made scenes",
        figures={
            "top1_region_recall": round(recall, 4),
            "attention_entropy_nats": round(mean_entropy, 3),
            "texts": len(hits),
            "baseline_by_colour_alone": round(float(np.mean(colour_hits)), 4),
            "baseline_chance": round(float(np.mean(chance)), 4),
            "uniform_entropy_nats": round(float(np.log(_GRID * _GRID)), 3),
        },
        must=f"recall >= {MIN_RECALL}, entropy <= {MAX_ENTROPY}",
        holds=recall >= MIN_RECALL and mean_entropy <= MAX_ENTROPY,
    )


def load() -> Aligner:
    """The kept weights."""
    stored = json.loads(files("flows.bench").joinpath(_WEIGHTS).read_text())
    model = Aligner()
    state = {
        name: torch.from_numpy(
            np.frombuffer(base64.b64decode(entry["f2"]), "<f2")
            .reshape(entry["shape"])
            .astype(np.float32)
        )
        for name, entry in stored["weights"].items()
    }
    model.load_state_dict(state)
    model.eval()
    return model


def save(model: Aligner, path: Path, seconds: float) -> None:
    """Weights as float16, with how they came about."""
    weights = {
        name: {
            "shape": list(tensor.shape),
            "f2": base64.b64encode(tensor.numpy().astype("<f2").tobytes()).decode(),
        }
        for name, tensor in model.state_dict().items()
    }
    record = {
        "seed": _TRAIN_SEED,
        "steps": _STEPS,
        "batch": _BATCH,
        "torch": torch.__version__,
        "seconds": round(seconds),
        "data": f"{_POOL} scenes of flows.bench.perception_scenes",
    }
    path.write_text(json.dumps({"record": record, "weights": weights}) + "\n")


def _batch(pool: Sequence[Scene], rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    scenes = [pool[i] for i in rng.integers(0, len(pool), _BATCH)]
    asked = [
        scene.objects[place]
        for scene in scenes
        for place in rng.integers(0, len(scene.objects), _TEXTS)
    ]
    return (
        torch.from_numpy(np.stack([scene.picture for scene in scenes])),
        torch.tensor([[WORDS.index(colour), WORDS.index(shape)] for colour, shape, _ in asked]),
        torch.from_numpy(np.stack([_mask(box) for _, _, box in asked])),
    )


def _mask(box: Box) -> npt.NDArray[np.float32]:
    """Cells whose middle lies in the region: float32 [64]."""
    middles = (np.arange(_GRID) + 0.5) / _GRID
    across = (middles >= box.x) & (middles <= box.x + box.w)
    down = (middles >= box.y) & (middles <= box.y + box.h)
    return (down[:, None] & across).reshape(-1).astype(np.float32)


def _tokens(model: Aligner, colour: str, shape: str) -> npt.NDArray[np.float32]:
    words = torch.tensor([[WORDS.index(colour), WORDS.index(shape)]])
    with torch.inference_mode():
        return np.asarray(model.tokens(words)[0].numpy(), np.float32)


def _one_word_right(scene: Scene, colour: str, box: Box) -> float:
    """Chance of hitting the region by taking any object of the right colour."""
    same = [b for c, _, b in scene.objects if c == colour]
    return float(box in same) / len(same)


def main() -> None:
    """Train and keep the weights."""
    started = time.process_time()
    model = train()
    save(model, Path(str(files("flows.bench").joinpath(_WEIGHTS))), time.process_time() - started)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
