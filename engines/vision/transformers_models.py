"""Loading a transformers model from a local directory; nothing is fetched.

Importing this loads torch and transformers.
"""

from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForImageClassification
from transformers import AutoModelForVideoClassification as VideoClassification

from engines.errors import EngineError, ModelMissingError, UsageError

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
