"""Opens a session by the backend's name; each library is imported only when it is chosen."""

import importlib.util
from typing import get_args

from engines.errors import UsageError
from engines.runtime.session import Backend, NetworkSource, Session, SessionOptions

_MODULES: dict[Backend, str] = {
    "openvino": "openvino",
    "onnxruntime": "onnxruntime",
    "torch": "torch",
    "tensorrt": "tensorrt",
}


def installed_backends() -> tuple[Backend, ...]:
    """Backends whose library is installed, found without importing any."""
    return tuple(b for b, module in _MODULES.items() if importlib.util.find_spec(module))


def open_session(
    backend: str, source: NetworkSource, options: SessionOptions | None = None
) -> Session:
    """Load ``source`` on ``backend``.

    Raises:
        UsageError: no such backend, or its library, device or precision is not there; the
            message names what is.
        EngineError: the network does not load.
    """
    options = options or SessionOptions()
    if backend not in get_args(Backend):
        msg = f"no backend {backend!r}; there are: {', '.join(get_args(Backend))}"
        raise UsageError(msg)
    if backend not in installed_backends():
        msg = f"backend {backend!r} is not installed; installed: {', '.join(installed_backends())}"
        raise UsageError(msg)
    if backend == "openvino":
        from engines.runtime.openvino_session import OpenVinoSession

        return OpenVinoSession(source, options)
    if backend == "onnxruntime":
        from engines.runtime.ort_session import OrtSession

        return OrtSession(source, options)
    if backend == "torch":
        from engines.runtime.torch_session import TorchSession

        return TorchSession(source, options)
    from engines.runtime.tensorrt_session import TensorRtSession

    return TensorRtSession(source, options)
