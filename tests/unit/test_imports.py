"""What a path loads: a command that needs no model loads none."""

import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

HEAVY = {"torch", "transformers", "openvino", "onnxruntime", "faster_whisper", "ctranslate2"}
SERVICES = {"prefect", "sqlalchemy", "psycopg", "minio"}
MODELS = HEAVY | {"rapidocr", "onnx", "tensorrt"}


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after ``code``."""
    program = f"{code}\nimport sys; print(' '.join({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        # reelgraph --help
        ("import flows.cli", HEAVY | SERVICES | {"av", "cv2", "numpy"}),
        # reelgraph inspect
        ("import flows.commands.inspect", MODELS | SERVICES),
        # reelgraph run: it starts a run and watches Postgres
        ("import flows.commands.run", MODELS | {"prefect", "av", "cv2"}),
        # the decoding child
        ("import tasks.compute.media", MODELS | SERVICES),
        # the flow's own process: decoders and models live in its children
        ("import flows.process_video", MODELS | {"av", "cv2"}),
        # the model child: it holds no connection
        ("import tasks.compute.vision, tasks.compute.speech", {"torch", *SERVICES}),
        # the upload receiver
        ("import flows.receiver", MODELS | {"av", "cv2"}),
    ],
    ids=["help", "inspect", "run", "decode child", "flow process", "model child", "receiver"],
)
def test_no_heavy_library_where_it_is_not_used(code, forbidden):
    assert not loaded_by(code) & forbidden


@pytest.mark.parametrize("package", ["flows", "tasks", "engines"])
def test_our_packages_have_one_owner(package):
    assert set(packages_distributions()[package]) == {"reelgraph"}
