"""Stores a trained network as one npz of half-precision arrays with its description inside."""

import io
import json
import zipfile
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import torch

from engines.actions.network import NetworkShape, SpaceTimeAttention
from engines.actions.training import TrainedNetwork
from engines.errors import EngineError

FORMAT: Final = 1
_ABOUT: Final = "about"


@dataclass(frozen=True)
class StoredModel:
    """A network, the names of its outputs, and from which probability on it is believed."""

    trained: TrainedNetwork
    classes: tuple[str, ...]
    min_probability: float
    """A window whose best class has less than this shows none of them."""


def to_bytes(model: StoredModel) -> bytes:
    """The same model gives the same bytes."""
    network = model.trained.network
    arrays = {
        name: value.numpy().astype(np.float16) for name, value in network.state_dict().items()
    }
    about = {
        "format": FORMAT,
        "shape": asdict(model.trained.shape),
        "joints": model.trained.joint_names,
        "classes": model.classes,
        "min_probability": model.min_probability,
    }
    arrays[_ABOUT] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def from_bytes(data: bytes) -> StoredModel:
    """Read what ``to_bytes`` wrote.

    Raises:
        EngineError: not such bytes, another format, or other arrays than the shape asks for.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(arrays.pop(_ABOUT).tobytes())
        if about["format"] != FORMAT:
            msg = f"action weights of format {about['format']}; this code reads {FORMAT}"
            raise EngineError(msg)
        network = SpaceTimeAttention(NetworkShape(**about["shape"]))
        state = {name: torch.from_numpy(v.astype(np.float32)) for name, v in arrays.items()}
        network.load_state_dict(state)
    except (KeyError, TypeError, ValueError, RuntimeError, OSError, zipfile.BadZipFile) as error:
        msg = f"these are no action weights: {' '.join(str(error).split())[:200]}"
        raise EngineError(msg) from error
    trained = TrainedNetwork(network.eval(), network.shape, tuple(about["joints"]))
    return StoredModel(trained, tuple(about["classes"]), float(about["min_probability"]))
