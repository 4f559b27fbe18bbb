"""Loading a transformers model from a local directory; nothing is fetched.

Importing this loads torch and transformers.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForImageClassification
from transformers import AutoModelForVideoClassification as VideoClassification

from engines.contracts.vision import EmbedParams
from engines.errors import EngineError, ModelMissingError, UsageError
from engines.runtime.batching import BatchRunner
from engines.runtime.session import NetworkSource, SessionOptions, TensorSpec
from engines.runtime.torch_session import TorchSession

_CLASSIFIERS = {
    "vit": AutoModelForImageClassification,
    "videomae": VideoClassification,
    "timesformer": VideoClassification,
}


def model_kind(path: Path) -> str:
    """``model_type`` of the directory's configuration, e.g. ``clip``.

    Raises:
        ModelMissingError: there is no configuration that transformers knows.
    """
    try:
        return str(AutoConfig.from_pretrained(path, local_files_only=True).model_type)
    except (OSError, ValueError) as error:
        msg = f"no model can be read from {path}: {error}"
        raise ModelMissingError(msg) from error


def load_model(path: Path, kinds: tuple[str, ...], *, classifier: bool = False) -> nn.Module:
    """The model in float32, in inference mode: precision is chosen by the session.

    Args:
        path: what ``save_pretrained`` wrote.
        kinds: values of ``model_type`` that the caller can use.
        classifier: with its classification head.

    Raises:
        UsageError: a model of another kind.
        ModelMissingError: a part is not there.
        EngineError: the weights do not fit the configuration.
    """
    kind = model_kind(path)
    if kind not in kinds:
        msg = f"{path} holds a {kind} model; this engine takes {', '.join(kinds)}"
        raise UsageError(msg)
    loader = _CLASSIFIERS[kind] if classifier else AutoModel
    try:
        model, report = loader.from_pretrained(
            path, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    except OSError as error:
        msg = f"the model in {path} is incomplete: {error}"
        raise ModelMissingError(msg) from error
    except RuntimeError as error:
        msg = f"the weights in {path} do not fit its config: {error}"
        raise EngineError(msg) from error
    if report["missing_keys"]:
        # transformers fills them with random numbers and goes on.
        msg = f"the weights in {path} lack {sorted(report['missing_keys'])[:3]}"
        raise ModelMissingError(msg)
    return model.eval().requires_grad_(False)


def open_tower(
    params: EmbedParams,
    revision: str,
    make_torch: Callable[[], nn.Module],
    *,
    pixels: tuple[int, ...],
    outputs: tuple[str, str],
) -> tuple[BatchRunner, str]:
    """A part of a directory's model in a session, and the name that its results carry.

    Args:
        params: directory, precision, threads, device and batch size.
        revision: hash of the directory's files.
        make_torch: makes the part.
        pixels: shape of one row of its input ``pixel_values``.
        outputs: names of what it gives.
    """
    path = Path(params.model)
    source = NetworkSource(
        name=path.name,
        onnx_path=None,
        weights_sha256=revision,
        inputs=(TensorSpec(name="pixel_values", dtype="float32", shape=(None, *pixels)),),
        outputs=outputs,
        make_torch=make_torch,
    )
    options = SessionOptions(
        precision=params.precision, threads=params.threads, device=params.device
    )
    session = TorchSession(source, options)
    info = session.describe()
    name = f"{path.name}@{revision[:12]} {info.provider} {info.precision}"
    return BatchRunner(session, params.batch_size), name
