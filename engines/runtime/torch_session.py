"""torch, eager: the reference, and the way to run what does not export.

Importing this loads torch.
"""

from collections.abc import Mapping

import numpy as np
import torch

from engines.errors import EngineError, OutOfMemoryError, UsageError
from engines.runtime.session import (
    Array,
    NetworkSource,
    SessionInfo,
    SessionOptions,
    TensorSpec,
    check_batch,
    check_finite,
    says_out_of_memory,
    zeros_for,
)

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class TorchSession:
    """See ``Session``."""

    def __init__(self, source: NetworkSource, options: SessionOptions) -> None:
        """Make the module and put it on the device.

        Raises:
            UsageError: no module maker, a precision torch does not run here, no such device.
        """
        if source.make_torch is None:
            msg = f"{source.name} has no torch form; use another backend"
            raise UsageError(msg)
        if options.precision not in _DTYPES:
            msg = f"torch does not run precision {options.precision!r}; it runs: {list(_DTYPES)}"
            raise UsageError(msg)
        if options.device.startswith("cuda") and not torch.cuda.is_available():
            msg = f"torch sees no device {options.device!r} here; it has: cpu"
            raise UsageError(msg)
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        module = source.make_torch()
        if not isinstance(module, torch.nn.Module):
            msg = f"{source.name}: make_torch returned {type(module).__name__}, not a Module"
            raise EngineError(msg)
        self._source = source
        self._options = options
        self._device = torch.device(options.device)
        self._module = module.eval().to(self._device)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` must be given."""
        return self._source.inputs

    def run(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """See ``Session.run``."""
        check_batch(self.inputs, batch)
        try:
            results = self._forward(batch)
        except (RuntimeError, MemoryError) as error:
            message = f"{self._source.name} on torch: {error}"
            if says_out_of_memory(error):
                # ``from None`` drops the traceback, which would hold the tensors that filled it.
                raise OutOfMemoryError(message) from None
            raise EngineError(message) from error
        outputs = {
            name: np.array(tensor.float().cpu().numpy())
            for name, tensor in zip(self._source.outputs, results, strict=True)
        }
        check_finite(outputs, self._source.name)
        return outputs

    def _forward(self, batch: Mapping[str, Array]) -> tuple[torch.Tensor, ...]:
        dtype = _DTYPES[self._options.precision]
        tensors = [
            torch.from_numpy(np.array(batch[spec.name])).to(self._device) for spec in self.inputs
        ]
        with (
            torch.inference_mode(),
            torch.autocast(self._device.type, dtype, enabled=dtype != torch.float32),
        ):
            results = self._module(*tensors)
        return results if isinstance(results, tuple) else (results,)

    def warm(self) -> None:
        """See ``Session.warm``."""
        self.run(zeros_for(self.inputs))

    def describe(self) -> SessionInfo:
        """See ``Session.describe``."""
        return SessionInfo(
            backend="torch",
            provider=f"torch {torch.__version__} eager",
            device=self._options.device,
            precision=self._options.precision,
            threads=self._options.threads,
            weights_sha256=self._source.weights_sha256,
        )
