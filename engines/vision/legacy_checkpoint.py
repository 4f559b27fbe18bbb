"""Reads a state dictionary that ``torch.save`` wrote in its old (non-zip) format, without torch.

Loading torch costs seconds of CPU and hundreds of MB in a process that otherwise never needs it,
and unpickling a file from a stranger may run code. This reader does neither: its unpickler knows
exactly three harmless names and refuses every other.

Layout (torch/serialization.py, ``_legacy_save``): pickles of a magic number, a protocol number,
the writer's sizes, the object whose storages are persistent ids, and the list of storage keys;
then for each key an int64 element count and the raw little-endian elements.
"""

import io
import pickle
from collections import OrderedDict
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from engines.errors import EngineError

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_NUM_PREAMBLE = 3
_DTYPES: dict[str, np.dtype[np.generic]] = {
    "FloatStorage": np.dtype("<f4"),
    "LongStorage": np.dtype("<i8"),
}

State = dict[str, npt.NDArray[np.generic]]
"""Arrays by parameter name: float32, and int64 for counters."""


class _Storage(NamedTuple):
    key: str
    dtype: np.dtype[np.generic]
    size: int


class _Tensor(NamedTuple):
    """A view into a storage that has not been read yet."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def _rebuild_tensor(
    storage: _Storage, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: object
) -> _Tensor:
    return _Tensor(storage, offset, shape, stride)


class _StateUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _DTYPES:
            return name
        msg = f"a checkpoint may not contain {module}.{name}"
        raise pickle.UnpicklingError(msg)

    def persistent_load(self, pid: tuple[str, str, str, str, int, object]) -> _Storage:
        kind, dtype_name, key, _location, size, _view = pid
        if kind != "storage":
            msg = f"unknown persistent id {kind!r}"
            raise pickle.UnpicklingError(msg)
        return _Storage(key, _DTYPES[dtype_name], size)


def read_legacy_state(data: bytes) -> State:
    """The arrays of a checkpoint by parameter name.

    Args:
        data: the whole file; float32 and int64 tensors are understood.

    Returns:
        Contiguous arrays, float32 or int64, in the shapes that were saved.

    Raises:
        EngineError: not this format, something else than tensors in it, or cut short.
    """
    stream = io.BytesIO(data)
    try:
        preamble = [_StateUnpickler(stream).load() for _ in range(_NUM_PREAMBLE)]
        if preamble[:2] != [_MAGIC, _PROTOCOL]:
            msg = "not a legacy torch checkpoint"
            raise EngineError(msg)
        tensors = _StateUnpickler(stream).load()
        keys = _StateUnpickler(stream).load()
        sizes = {t.storage.key: t.storage for t in tensors.values()}
        storages = {key: _read_storage(stream, sizes[key]) for key in keys}
    except (pickle.UnpicklingError, EOFError, KeyError, ValueError, TypeError) as error:
        msg = f"the checkpoint cannot be read: {error}"
        raise EngineError(msg) from error
    return {name: _view(tensor, storages[tensor.storage.key]) for name, tensor in tensors.items()}


def _read_storage(stream: BinaryIO, storage: _Storage) -> npt.NDArray[np.generic]:
    count = int(np.frombuffer(stream.read(8), "<i8", count=1)[0])
    if count != storage.size:
        msg = f"storage {storage.key} has {count} elements, {storage.size} were announced"
        raise ValueError(msg)
    raw = stream.read(count * storage.dtype.itemsize)
    return np.frombuffer(raw, storage.dtype, count=count)


def _view(tensor: _Tensor, storage: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    last = tensor.offset + sum(
        (n - 1) * step for n, step in zip(tensor.shape, tensor.stride, strict=True)
    )
    if tensor.offset < 0 or last >= storage.size or min(tensor.stride, default=1) < 0:
        msg = f"a tensor of shape {tensor.shape} lies outside its storage"
        raise EngineError(msg)
    steps = tuple(step * storage.itemsize for step in tensor.stride)
    view = np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, steps)
    return np.ascontiguousarray(view).reshape(tensor.shape)
