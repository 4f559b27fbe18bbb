"""One way to run a network, whatever library runs it.

A ``Session`` takes named arrays with the batch on axis 0 and returns named arrays that the
caller owns (copies: a later run never changes them). Backends: OpenVINO, ONNX Runtime, torch,
TensorRT; ``engines.runtime.backends`` opens them by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from engines.contracts.base import Contract
from engines.errors import EngineError, NotFiniteError, UsageError

Array = npt.NDArray[np.generic]
Backend = Literal["openvino", "onnxruntime", "torch", "tensorrt"]
Precision = Literal["f32", "bf16", "f16", "int8"]


class TensorSpec(Contract):
    """One input as the model wants it."""

    name: str
    dtype: str
    """A numpy name, e.g. ``uint8``."""
    shape: tuple[int | None, ...]
    """None where the axis may have any length; axis 0 is the batch."""


class SessionInfo(Contract):
    """What is running, for lineage."""

    backend: Backend
    provider: str
    """The library with its version, and its execution provider where it has several."""
    device: str
    precision: Precision
    """Of the arithmetic, as it was asked for explicitly: no backend is left to choose."""
    threads: int | None
    """None where the library decides."""
    weights_sha256: str


@dataclass(frozen=True)
class NetworkSource:
    """Where a backend finds the network: an ONNX file, and for torch a maker of the module."""

    name: str
    onnx_path: Path | None
    """None for a network that runs on torch alone."""
    weights_sha256: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    make_torch: Callable[[], object] | None = None
    """Makes the ``torch.nn.Module`` with the same inputs, and outputs as a tuple in this order;
    called by the torch backend only."""
    make_openvino: Callable[[], object] | None = None
    """Makes the ``openvino.Model`` with inputs and outputs of these names, for files that OpenVINO
    reads and ONNX Runtime does not; called by the OpenVINO backend only, before ``onnx_path``."""


@dataclass(frozen=True)
class SessionOptions:
    """How to run it."""

    precision: Precision = "f32"
    threads: int | None = None
    streams: int = 1
    """Parts of a batch that are computed side by side, each on its share of the threads. A small
    network gains little from several threads on one row and all from as many rows at a time.
    OpenVINO does this; the other backends compute a batch as a whole."""
    device: str = "cpu"
    cache_dir: Path | None = None
    """Where a backend may keep compiled engines; None keeps nothing."""
    max_batch: int = 32
    """Largest batch that a backend with fixed profiles must take."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Further properties of the backend's own, e.g. OpenVINO's."""


class Session(Protocol):
    """A loaded network."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` must be given."""
        ...

    def run(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """Compute one batch.

        Args:
            batch: an array for every input, all with the same length on axis 0.

        Returns:
            Every output by name, batch on axis 0, in memory of its own on the CPU.

        Raises:
            EngineError: an input is missing or of another shape or type than the model's.
            OutOfMemoryError: this batch does not fit; a smaller one may.
            NotFiniteError: NaN or infinity came out.
        """
        ...

    def warm(self) -> None:
        """Compute once on zeros, so that the first real batch does not pay for start-up."""
        ...

    def describe(self) -> SessionInfo:
        """What is running."""
        ...


def check_batch(specs: tuple[TensorSpec, ...], batch: Mapping[str, Array]) -> int:
    """Hold a batch to the model's inputs before any native code sees it.

    Returns:
        The batch length.

    Raises:
        EngineError: names the input, what it is and what it should be.
    """
    if set(batch) != {spec.name for spec in specs}:
        msg = f"inputs {sorted(batch)} given, the model takes {sorted(s.name for s in specs)}"
        raise EngineError(msg)
    lengths = {array.shape[0] if array.ndim else 0 for array in batch.values()}
    if len(lengths) != 1 or 0 in lengths:
        msg = f"a batch needs one length above zero for all inputs, not {sorted(lengths)}"
        raise EngineError(msg)
    for spec in specs:
        array = batch[spec.name]
        fits = array.ndim == len(spec.shape) and all(
            want is None or have == want for have, want in zip(array.shape, spec.shape, strict=True)
        )
        if not fits or array.dtype != np.dtype(spec.dtype):
            want = ", ".join("any" if n is None else str(n) for n in spec.shape)
            msg = (
                f"input {spec.name} is {array.dtype} {list(array.shape)}, "
                f"the model takes {spec.dtype} [{want}]"
            )
            raise EngineError(msg)
    return int(lengths.pop())


def require_onnx(source: NetworkSource) -> Path:
    """The network's ONNX file.

    Raises:
        UsageError: it has none.
    """
    if source.onnx_path is None:
        msg = f"{source.name} has no ONNX form; it runs on the backend torch"
        raise UsageError(msg)
    return source.onnx_path


def check_finite(outputs: Mapping[str, Array], source: str) -> None:
    """Let no NaN or infinity pass: one bad vector spoils every later comparison.

    Raises:
        NotFiniteError: names the network, the output and how many rows are bad.
    """
    for name, array in outputs.items():
        if not np.issubdtype(array.dtype, np.floating):
            continue
        finite = np.isfinite(array)
        if not finite.all():
            bad = int((~finite.reshape(len(array), -1).all(axis=1)).sum())
            msg = f"{source}: {name} is not finite in {bad} of {len(array)} rows"
            raise NotFiniteError(msg)


def zeros_for(
    specs: tuple[TensorSpec, ...], *, length: int = 1, free: int = 32
) -> dict[str, Array]:
    """A batch of zeros that fits; axes of any length get ``free``."""
    return {
        spec.name: np.zeros(
            (length, *(free if n is None else n for n in spec.shape[1:])), np.dtype(spec.dtype)
        )
        for spec in specs
    }


_MEMORY_MARKS = (
    "out of memory",
    "not enough memory",
    "bad_alloc",
    "failed to allocate",
    "alloc_failed",
)


def says_out_of_memory(error: BaseException) -> bool:
    """Whether a native library's error means that memory ran out.

    Each library has its own class and wording; only the wording is common.
    """
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(mark in text for mark in _MEMORY_MARKS)
