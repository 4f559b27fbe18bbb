"""OpenVINO: the fastest of the backends on the CPUs that were measured."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import openvino

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

_PRECISION_HINTS = {"f32": "f32", "bf16": "bf16", "f16": "f16", "int8": "f32"}
"""int8 is a property of the quantised graph; what stays floating in it runs as f32."""


class OpenVinoSession:
    """See ``Session``."""

    def __init__(self, source: NetworkSource, options: SessionOptions) -> None:
        """Read and compile.

        Raises:
            UsageError: the device does not do this precision.
            EngineError: the network cannot be read or compiled.
        """
        self._source = source
        self._options = options
        core = openvino.Core()
        device = options.device.upper()
        _check_precision(core, device, options.precision)
        properties: dict[str, object] = {
            # Left alone, some CPUs run f32 networks in bf16 without saying so.
            "INFERENCE_PRECISION_HINT": _PRECISION_HINTS[options.precision],
            "PERFORMANCE_HINT": "LATENCY",
            **options.extra,
        }
        if options.streams > 1:
            properties["NUM_STREAMS"] = options.streams
        if options.threads is not None:
            properties["INFERENCE_NUM_THREADS"] = options.threads
        try:
            make = source.make_openvino
            model = core.read_model(require_onnx(source)) if make is None else make()
            self._compiled = core.compile_model(model, device, properties)
        except RuntimeError as error:
            msg = f"OpenVINO cannot compile {source.name} for {device}: {error}"
            raise EngineError(msg) from error
        self._requests = [
            self._compiled.create_infer_request() for _ in range(max(1, options.streams))
        ]

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` must be given."""
        return self._source.inputs

    def run(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """See ``Session.run``."""
        count = check_batch(self.inputs, batch)
        parts = min(count, len(self._requests))
        edges = [count * i // parts for i in range(parts + 1)]
        started: list[openvino.InferRequest] = []
        problem: RuntimeError | MemoryError | None = None
        for request, low, high in zip(self._requests, edges, edges[1:], strict=False):
            rows = {name: array[low:high] for name, array in batch.items()}
            problem = _failure(partial(request.start_async, rows, share_inputs=True))
            if problem is not None:
                break
            started.append(request)
        for request in started:
            # Every part is waited for: a request that still works cannot be given the next batch.
            problem = _failure(request.wait) or problem
        if problem is not None:
            message = f"{self._source.name} on OpenVINO: {problem}"
            if says_out_of_memory(problem):
                raise OutOfMemoryError(message) from None
            raise EngineError(message) from problem
        # Copies: a request writes the next result into the same memory.
        outputs = {
            name: np.concatenate([request.get_tensor(name).data for request in started])
            for name in self._source.outputs
        }
        check_finite(outputs, self._source.name)
        return outputs

    def warm(self) -> None:
        """See ``Session.warm``."""
        self.run(zeros_for(self.inputs))

    def describe(self) -> SessionInfo:
        """See ``Session.describe``."""
        return SessionInfo(
            backend="openvino",
            provider=f"openvino {openvino.__version__.split('-')[0]}",
            device=self._options.device,
            precision=self._options.precision,
            threads=self._options.threads,
            weights_sha256=self._source.weights_sha256,
        )


def _failure(step: Callable[[], object]) -> RuntimeError | MemoryError | None:
    """Do a step of a request; what it failed with."""
    try:
        step()
    except (RuntimeError, MemoryError) as error:
        return error
    return None


def _check_precision(core: openvino.Core, device: str, precision: str) -> None:
    if device not in core.available_devices:
        msg = f"OpenVINO has no device {device!r} here; there are: {core.available_devices}"
        raise UsageError(msg)
    known = {c.lower() for c in core.get_property(device, "OPTIMIZATION_CAPABILITIES")}
    wanted = {"f32": "fp32", "f16": "fp16"}.get(precision, precision)
    if wanted not in known:
        msg = f"OpenVINO's {device} does not do precision {precision!r}; it does: {sorted(known)}"
        raise UsageError(msg)
