"""TensorRT: engines built from ONNX for one GPU, kept under everything that they depend on.

Written against TensorRT 10; importing it loads ``tensorrt`` and torch, whose allocator holds the
buffers on the GPU. Where there is no GPU, opening one fails with what is missing.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorrt
import torch

from engines.errors import EngineError, OutOfMemoryError, UsageError
from engines.runtime.conversion import converted
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

_WORKSPACE_BYTES = 1 << 30
_FREE_AXIS = (16, 512, 2048)
"""Smallest, usual and largest length of an axis that the model leaves open."""


class TensorRtSession:
    """See ``Session``."""

    def __init__(self, source: NetworkSource, options: SessionOptions) -> None:
        """Take the engine from the cache or build it (minutes).

        Raises:
            UsageError: no GPU.
            EngineError: the network cannot be parsed or built.
        """
        if not torch.cuda.is_available():
            msg = "TensorRT needs an NVIDIA GPU; there is none here, use openvino or onnxruntime"
            raise UsageError(msg)
        self._source = source
        self._options = options
        self._device = torch.device(options.device if options.device != "cpu" else "cuda:0")
        self._logger = tensorrt.Logger(tensorrt.Logger.ERROR)
        plan = self._plan()
        self._engine = tensorrt.Runtime(self._logger).deserialize_cuda_engine(plan)
        if self._engine is None:
            msg = f"TensorRT {tensorrt.__version__} cannot load its own engine of {source.name}"
            raise EngineError(msg)
        self._context = self._engine.create_execution_context()
        self._stream = torch.cuda.Stream(self._device)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` must be given."""
        return self._source.inputs

    def run(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """See ``Session.run``; a batch above ``max_batch`` is refused before launch."""
        count = check_batch(self.inputs, batch)
        if count > self._options.max_batch:
            msg = f"a batch of {count}: this engine was built for at most {self._options.max_batch}"
            raise EngineError(msg)
        try:
            outputs = self._execute(batch)
        except (RuntimeError, MemoryError) as error:
            message = f"{self._source.name} on TensorRT: {error}"
            if says_out_of_memory(error):
                raise OutOfMemoryError(message) from None
            raise EngineError(message) from error
        check_finite(outputs, self._source.name)
        return outputs

    def _execute(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        with torch.cuda.stream(self._stream):
            # Held in a local until the stream is done: the engine knows bare addresses only.
            held = {
                name: torch.from_numpy(np.array(array)).to(self._device)
                for name, array in batch.items()
            }
            for name, tensor in held.items():
                self._context.set_input_shape(name, tuple(tensor.shape))
                self._context.set_tensor_address(name, tensor.data_ptr())
            results = {}
            for name in self._source.outputs:
                shape = tuple(self._context.get_tensor_shape(name))
                dtype = _torch_dtype(self._engine.get_tensor_dtype(name))
                results[name] = torch.empty(shape, dtype=dtype, device=self._device)
                self._context.set_tensor_address(name, results[name].data_ptr())
            if not self._context.execute_async_v3(self._stream.cuda_stream):
                msg = "execution was not enqueued"
                raise RuntimeError(msg)
            self._stream.synchronize()
            return {name: np.array(t.float().cpu().numpy()) for name, t in results.items()}

    def warm(self) -> None:
        """See ``Session.warm``."""
        self.run(zeros_for(self.inputs))

    def describe(self) -> SessionInfo:
        """See ``Session.describe``."""
        return SessionInfo(
            backend="tensorrt",
            provider=f"tensorrt {tensorrt.__version__}",
            device=str(self._device),
            precision=self._options.precision,
            threads=None,
            weights_sha256=self._source.weights_sha256,
        )

    def _plan(self) -> bytes:
        if self._options.cache_dir is None:
            return self._build()
        major, minor = torch.cuda.get_device_capability(self._device)
        recipe = {
            "weights": self._source.weights_sha256,
            "tensorrt": tensorrt.__version__,
            "gpu": f"{torch.cuda.get_device_name(self._device)} sm_{major}{minor}",
            "precision": self._options.precision,
            "max_batch": str(self._options.max_batch),
        }
        plan = converted(
            self._options.cache_dir, self._source.name, recipe, self._build, suffix=".plan"
        )
        return Path(plan.path).read_bytes()

    def _build(self) -> bytes:
        builder = tensorrt.Builder(self._logger)
        network = builder.create_network(
            1 << int(tensorrt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
        )
        parser = tensorrt.OnnxParser(network, self._logger)
        if not parser.parse_from_file(str(require_onnx(self._source))):
            reasons = "; ".join(str(parser.get_error(i)) for i in range(parser.num_errors))
            msg = f"TensorRT cannot parse {self._source.name}: {reasons}"
            raise EngineError(msg)
        config = builder.create_builder_config()
        config.set_memory_pool_limit(tensorrt.MemoryPoolType.WORKSPACE, _WORKSPACE_BYTES)
        # TF32 is on by default and rounds float32 products to 10 bits: not what f32 promises.
        config.clear_flag(tensorrt.BuilderFlag.TF32)
        if self._options.precision == "f16":
            config.set_flag(tensorrt.BuilderFlag.FP16)
        elif self._options.precision == "bf16":
            config.set_flag(tensorrt.BuilderFlag.BF16)
        elif self._options.precision == "int8":
            # The scales are in the graph, from this project's own calibration.
            config.set_flag(tensorrt.BuilderFlag.INT8)
        profile = builder.create_optimization_profile()
        for spec in self.inputs:
            profile.set_shape(spec.name, *profile_shapes(spec, self._options.max_batch))
        config.add_optimization_profile(profile)
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            msg = f"TensorRT cannot build {self._source.name} as {self._options.precision}"
            raise EngineError(msg)
        return bytes(plan)


def profile_shapes(spec: TensorSpec, max_batch: int) -> list[tuple[int, ...]]:
    """Smallest, usual and largest shape of one input."""
    batches = (1, max(1, max_batch // 2), max_batch)
    return [
        (batch, *(free if n is None else n for n in spec.shape[1:]))
        for batch, free in zip(batches, _FREE_AXIS, strict=True)
    ]


def _torch_dtype(dtype: tensorrt.DataType) -> torch.dtype:
    known = {
        tensorrt.float32: torch.float32,
        tensorrt.float16: torch.float16,
        tensorrt.bfloat16: torch.bfloat16,
        tensorrt.int32: torch.int32,
        tensorrt.int64: torch.int64,
    }
    if dtype not in known:
        msg = f"an output of type {dtype} is not understood; known: {list(known)}"
        raise EngineError(msg)
    return known[dtype]
