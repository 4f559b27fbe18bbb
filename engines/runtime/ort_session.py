"""ONNX Runtime: runs wherever there is nothing faster, and on CUDA through its provider."""

from collections.abc import Mapping

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from engines.errors import EngineError, OutOfMemoryError, UsageError
from engines.runtime.session import (
    Array,
    NetworkSource,
    SessionInfo,
    SessionOptions,
    TensorSpec,
    check_batch,
    check_finite,
    require_onnx,
    says_out_of_memory,
    zeros_for,
)

_NATIVE_ERRORS = (
    ort_errors.Fail,
    ort_errors.RuntimeException,
    ort_errors.EPFail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NotImplemented,
    MemoryError,
)
_SEVERITY_ERROR = 3


class OrtSession:
    """See ``Session``."""

    def __init__(self, source: NetworkSource, options: SessionOptions) -> None:
        """Load the graph.

        Raises:
            UsageError: a precision other than the graph's own, or a device without provider.
            EngineError: the graph cannot be loaded.
        """
        if options.precision not in {"f32", "int8"}:
            msg = f"ONNX Runtime runs a graph as stored, f32 or int8, not {options.precision!r}"
            raise UsageError(msg)
        self._source = source
        self._options = options
        self._provider = _provider(options.device)
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = _SEVERITY_ERROR
        if options.threads is not None:
            settings.intra_op_num_threads = options.threads
        try:
            self._session = onnxruntime.InferenceSession(
                str(require_onnx(source)), settings, providers=[self._provider]
            )
        except _NATIVE_ERRORS as error:
            msg = f"ONNX Runtime cannot load {source.name}: {error}"
            raise EngineError(msg) from error
        if self._provider not in self._session.get_providers():
            # It falls back to the CPU without a word; a run must not claim a GPU it did not use.
            msg = f"ONNX Runtime fell back from {self._provider} to {self._session.get_providers()}"
            raise EngineError(msg)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` must be given."""
        return self._source.inputs

    def run(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """See ``Session.run``."""
        check_batch(self.inputs, batch)
        names = list(self._source.outputs)
        try:
            arrays = self._session.run(names, dict(batch))
        except _NATIVE_ERRORS as error:
            message = f"{self._source.name} on ONNX Runtime: {error}"
            if says_out_of_memory(error):
                raise OutOfMemoryError(message) from None
            raise EngineError(message) from error
        outputs = {name: np.asarray(a) for name, a in zip(names, arrays, strict=True)}
        check_finite(outputs, self._source.name)
        return outputs

    def warm(self) -> None:
        """See ``Session.warm``."""
        self.run(zeros_for(self.inputs))

    def describe(self) -> SessionInfo:
        """See ``Session.describe``."""
        return SessionInfo(
            backend="onnxruntime",
            provider=f"onnxruntime {onnxruntime.__version__} {self._provider}",
            device=self._options.device,
            precision=self._options.precision,
            threads=self._options.threads,
            weights_sha256=self._source.weights_sha256,
        )


def _provider(device: str) -> str:
    wanted = "CPUExecutionProvider" if device == "cpu" else "CUDAExecutionProvider"
    known = onnxruntime.get_available_providers()
    if wanted not in known:
        msg = f"ONNX Runtime here has no {wanted} for device {device!r}; it has: {known}"
        raise UsageError(msg)
    return wanted
