"""Whisper in plain torch, with the weights of a CTranslate2 file: the way a script runs it.

The packaged weights exist in CTranslate2's form alone. Its file is a list of named arrays, which
go into transformers' model one for one (queries, keys and values lie in one array there).
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import numpy.typing as npt
import torch
from faster_whisper.feature_extractor import FeatureExtractor
from transformers import (
    GenerationConfig,
    GenerationMixin,
    PreTrainedTokenizerFast,
    WhisperConfig,
)
from transformers import WhisperForConditionalGeneration as Whisper

from engines.errors import EngineError

Arrays = dict[str, npt.NDArray[np.float32]]

_VERSION = 6
_HALF = 4
"""CTranslate2's number for float16."""
_HEAD_WIDTH = 64
_PROMPT = (50258, 50259, 50359, 50363)
"""Start, English, transcribe, no times."""
_END = 50257
_MOST_TOKENS = 200


def read_arrays(data: bytes) -> Arrays:
    """The float16 arrays of a CTranslate2 ``model.bin`` of this version, as float32 by name.

    Raises:
        EngineError: another version.
    """
    reader = _Reader(data)
    version = reader.number("I")
    reader.text()
    reader.number("I")
    if version != _VERSION:
        msg = f"a CTranslate2 file of version {version}; {_VERSION} is known"
        raise EngineError(msg)
    found: Arrays = {}
    for _ in range(reader.number("I")):
        name = reader.text()
        shape = [reader.number("I") for _ in range(reader.number("B"))]
        kind = reader.number("B")
        content = reader.bytes(reader.number("I"))
        if kind == _HALF and shape:
            found[name] = np.frombuffer(content, "<f2").reshape(shape).astype(np.float32)
    return found


def torch_whisper(arrays: Arrays) -> Whisper:
    """Transformers' model with these weights, float32, in inference mode."""
    vocabulary, width = arrays["decoder/embeddings/weight"].shape
    layers = sum(n.startswith("encoder/") and n.endswith("ffn/linear_0/bias") for n in arrays)
    config = WhisperConfig(
        vocab_size=vocabulary,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=width // _HEAD_WIDTH,
        decoder_attention_heads=width // _HEAD_WIDTH,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
    )
    model = Whisper(config).eval()
    state = {name: torch.from_numpy(array.copy()) for name, array in _named(arrays, layers)}
    report = model.load_state_dict(state, strict=False)
    missing = set(report.missing_keys) - {"proj_out.weight"}
    if missing or report.unexpected_keys:
        msg = f"weights of Whisper: {sorted(missing)} missing, {report.unexpected_keys} unknown"
        raise EngineError(msg)
    model.tie_weights()
    return model


def transcriber(
    model: Whisper, tokenizer: bytes, beam_size: int
) -> Callable[[npt.NDArray[np.float32]], str]:
    """A function from float32 [n] at 16 kHz, up to 30 s, to its English text.

    Args:
        model: see ``torch_whisper``.
        tokenizer: content of its ``tokenizer.json``.
        beam_size: hypotheses followed.
    """
    extract = FeatureExtractor()
    with NamedTemporaryFile(suffix=".json") as file:
        Path(file.name).write_bytes(tokenizer)
        vocabulary = PreTrainedTokenizerFast(tokenizer_file=file.name)
    settings = GenerationConfig(
        num_beams=beam_size,
        max_new_tokens=_MOST_TOKENS,
        eos_token_id=_END,
        pad_token_id=_END,
        decoder_start_token_id=_PROMPT[0],
    )

    def run(signal: npt.NDArray[np.float32]) -> str:
        features = extract(np.pad(signal, (0, extract.n_samples - len(signal))))
        frames = features[:, : extract.nb_max_frames]
        with torch.inference_mode():
            tokens = GenerationMixin.generate(
                model,
                input_features=torch.from_numpy(np.ascontiguousarray(frames, np.float32))[None],
                decoder_input_ids=torch.tensor([_PROMPT]),
                generation_config=settings,
            )
        text = vocabulary.decode([t for t in tokens[0].tolist() if t < _END])
        return str(text).strip()

    return run


class _Reader:
    """Walks through little-endian bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self._data, self._at)
        self._at += struct.calcsize(f"<{kind}")
        return int(value)

    def text(self) -> str:
        return self.bytes(self.number("H"))[:-1].decode()

    def bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]


_PLAIN = {
    "layer_norm/gamma": "layer_norm.weight",
    "layer_norm/beta": "layer_norm.bias",
    "position_encodings/encodings": "embed_positions.weight",
    "embeddings/weight": "embed_tokens.weight",
    "conv1/weight": "conv1.weight",
    "conv1/bias": "conv1.bias",
    "conv2/weight": "conv2.weight",
    "conv2/bias": "conv2.bias",
}
_FFN = {"linear_0": "fc1", "linear_1": "fc2", "layer_norm": "final_layer_norm"}
_SPLIT = {
    ("self_attention", "linear_0"): ("q_proj", "k_proj", "v_proj"),
    ("self_attention", "linear_1"): ("out_proj",),
    ("attention", "linear_0"): ("q_proj",),
    ("attention", "linear_1"): ("k_proj", "v_proj"),
    ("attention", "linear_2"): ("out_proj",),
}
_BLOCKS = {"self_attention": "self_attn", "attention": "encoder_attn"}
_ENDS = {"gamma": "weight", "beta": "bias", "weight": "weight", "bias": "bias"}


def _named(arrays: Arrays, layers: int) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    """Arrays under transformers' names."""
    for name, array in arrays.items():
        side, _, rest = name.partition("/")
        if rest in _PLAIN:
            yield f"model.{side}.{_PLAIN[rest]}", array
            continue
        layer, block, part, end = rest.split("/")
        prefix = f"model.{side}.layers.{int(layer.removeprefix('layer_'))}"
        if block == "ffn":
            yield f"{prefix}.{_FFN[part]}.{_ENDS[end]}", array
        elif part == "layer_norm":
            yield f"{prefix}.{_BLOCKS[block]}_layer_norm.{_ENDS[end]}", array
        else:
            into = _SPLIT[block, part]
            for projection, piece in zip(into, np.split(array, len(into)), strict=True):
                if (projection, end) != ("k_proj", "bias"):
                    yield f"{prefix}.{_BLOCKS[block]}.{projection}.{end}", piece
