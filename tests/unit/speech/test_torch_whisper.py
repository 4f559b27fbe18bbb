"""The bench's torch Whisper reads what CTranslate2 wrote."""

import struct

import numpy as np
import pytest

from engines.errors import EngineError
from flows.bench.perception_whisper import read_arrays, torch_whisper

WIDTH, WORDS, LAYERS = 64, 50_300, 2


def stored(arrays: dict[str, np.ndarray], version: int = 6) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    parts = [
        struct.pack("<I", version),
        text("WhisperSpec"),
        struct.pack("<II", 3, len(arrays) + 1),
    ]
    for name, array in arrays.items():
        data = array.astype("<f2").tobytes()
        shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        parts += [text(name), shape, struct.pack("<BI", 4, len(data)), data]
    parts += [text("encoder/num_heads"), struct.pack("<BBI", 0, 2, 2), b"\1\0"]
    return b"".join(parts)


def arrays() -> dict[str, np.ndarray]:
    """Every array of a small model, random."""
    shapes: dict[str, tuple[int, ...]] = {"decoder/embeddings/weight": (WORDS, WIDTH)}
    shapes |= {f"encoder/conv1/{k}": s for k, s in norm("weight", "bias", (WIDTH, 80, 3))}
    shapes |= {f"encoder/conv2/{k}": s for k, s in norm("weight", "bias", (WIDTH, WIDTH, 3))}
    for side, length in (("encoder", 1500), ("decoder", 448)):
        shapes[f"{side}/position_encodings/encodings"] = (length, WIDTH)
        shapes |= {f"{side}/layer_norm/{k}": s for k, s in norm("gamma", "beta", (WIDTH,))}
        blocks = {"self_attention": (3, 1)}
        blocks |= {"attention": (1, 2, 1)} if side == "decoder" else {}
        for layer in range(LAYERS):
            prefix = f"{side}/layer_{layer}"
            for block, parts in blocks.items():
                linear = {f"linear_{i}": (n * WIDTH, WIDTH) for i, n in enumerate(parts)}
                shapes |= of_block(f"{prefix}/{block}", linear)
            linear = {"linear_0": (4 * WIDTH, WIDTH), "linear_1": (WIDTH, 4 * WIDTH)}
            shapes |= of_block(f"{prefix}/ffn", linear)
    rng = np.random.default_rng(7)
    return {name: rng.normal(0, 0.1, shape) for name, shape in shapes.items()}


def norm(weight: str, bias: str, shape: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
    return [(weight, shape), (bias, shape[:1])]


def of_block(prefix: str, linear: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    found = {f"{prefix}/layer_norm/{k}": s for k, s in norm("gamma", "beta", (WIDTH,))}
    for name, shape in linear.items():
        found |= {f"{prefix}/{name}/{k}": s for k, s in norm("weight", "bias", shape)}
    return found


def test_every_array_finds_its_place() -> None:
    made = arrays()
    read = read_arrays(stored(made))
    assert read.keys() == made.keys()
    model = torch_whisper(read)
    block = model.model.decoder.layers[1].encoder_attn
    fused = read["decoder/layer_1/attention/linear_1/weight"]
    np.testing.assert_array_equal(block.k_proj.weight.detach().numpy(), fused[:WIDTH])
    np.testing.assert_array_equal(block.v_proj.weight.detach().numpy(), fused[WIDTH:])
    np.testing.assert_array_equal(
        model.proj_out.weight.detach().numpy(), read["decoder/embeddings/weight"]
    )


def test_what_is_missing_or_of_another_version_is_refused() -> None:
    made = arrays()
    del made["encoder/layer_1/ffn/linear_1/weight"]
    with pytest.raises(EngineError, match="fc2"):
        torch_whisper(read_arrays(stored(made)))
    with pytest.raises(EngineError, match="version 5"):
        read_arrays(stored(made, version=5))
