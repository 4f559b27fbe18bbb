"""The two BlazePose networks as sessions: TFLite files that OpenVINO's own front end reads.

Each graph gets a free batch axis, takes uint8 pictures (the scaling is folded in) and loses the
heads that nobody asks for: the segmentation mask alone costs as much as the landmarks.
"""

from pathlib import Path
from typing import Final

import numpy as np
import openvino
from openvino import opset13
from openvino.preprocess import PrePostProcessor

from engines.actions.pose.describe import DETECTOR, LANDMARKS, NetworkName
from engines.contracts.base import Contract
from engines.runtime.manifest import revision, verified_path
from engines.runtime.openvino_session import OpenVinoSession
from engines.runtime.session import NetworkSource, Session, SessionOptions, TensorSpec

DETECTOR_SIZE: Final = 224
LANDMARK_SIZE: Final = 256
NUM_ANCHORS: Final = 2254
_FLAT_RANK = 3


class _Network(Contract):
    """What is particular to one of the files."""

    size: int
    outputs: dict[str, str]
    """Our name -> the file's."""
    mean: float
    scale: float
    """uint8 values become (value - mean) / scale."""


_NETWORKS: dict[NetworkName, _Network] = {
    DETECTOR: _Network(
        size=DETECTOR_SIZE,
        outputs={"boxes": "Identity", "scores": "Identity_1"},
        mean=127.5,
        scale=127.5,
    ),
    LANDMARKS: _Network(
        size=LANDMARK_SIZE,
        outputs={"landmarks": "Identity", "presence": "Identity_1", "world": "Identity_4"},
        mean=0.0,
        scale=255.0,
    ),
}


def open_network(name: NetworkName, *, device: str, threads: int | None) -> Session:
    """Check the file against its manifest, read and compile it.

    The session has one input ``picture``, uint8 [n, s, s, 3] RGB. Outputs of the detector:
    ``boxes`` float32 [n, 2254, 12] in pixels of its input relative to the anchors, ``scores``
    float32 [n, 2254, 1] logits. Of the landmark network: ``landmarks`` float32 [n, 195] (39 x
    (x, y, z in pixels, visibility and presence as logits)), ``presence`` float32 [n, 1]
    probability, ``world`` float32 [n, 117] (39 x (x, y, z) in metres).

    Args:
        name: ``DETECTOR`` or ``LANDMARKS``.
        device: what OpenVINO calls it, e.g. ``cpu``.
        threads: None lets OpenVINO decide.

    Raises:
        ModelMissingError, ModelHashError: the file is not there, or not the pinned bytes.
        UsageError: no such device.
        EngineError: the file cannot be read or compiled.
    """
    network, path = _NETWORKS[name], verified_path(name)
    shape = (None, network.size, network.size, 3)
    source = NetworkSource(
        name=name,
        onnx_path=None,
        weights_sha256=revision(name),
        inputs=(TensorSpec(name="picture", dtype="uint8", shape=shape),),
        outputs=tuple(network.outputs),
        make_openvino=lambda: _prepare(path, network),
    )
    return OpenVinoSession(source, SessionOptions(threads=threads, device=device))


def _prepare(path: Path, network: _Network) -> openvino.Model:
    """The graph of a file with a free batch axis, uint8 input and the wanted outputs only."""
    read = openvino.Core().read_model(path)
    outputs = [read.output(name) for name in network.outputs.values()]
    model = openvino.Model(outputs, read.get_parameters(), path.stem)
    _free_batch(model)
    model.reshape({model.input(0): [-1, network.size, network.size, 3]})
    model.input(0).tensor.set_names({"picture"})
    for output, name in zip(model.outputs, network.outputs, strict=True):
        output.tensor.set_names({name})
    steps = PrePostProcessor(model)
    steps.input().tensor().set_element_type(openvino.Type.u8)
    pixels = steps.input().preprocess().convert_element_type(openvino.Type.f32)
    pixels.mean(network.mean).scale(network.scale)
    return steps.build()


def _free_batch(model: openvino.Model) -> None:
    """Let the reshapes that flatten feature maps to rows of anchors keep any batch.

    The file was exported for one picture: its reshapes name a batch of 1.
    """
    for node in model.get_ordered_ops():
        if node.get_type_name() != "Reshape":
            continue
        shape = node.output(0).get_partial_shape()
        if shape.rank.get_length() != _FLAT_RANK:
            continue
        target = opset13.constant(np.array([0, -1, shape[2].get_length()], np.int64))
        flat = opset13.reshape(node.input_value(0), target, special_zero=True)
        flat.set_friendly_name(node.get_friendly_name())
        for consumer in node.output(0).get_target_inputs():
            consumer.replace_source_output(flat.output(0))
    model.validate_nodes_and_infer_types()
