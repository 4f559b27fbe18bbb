"""INT8 for the default label model: calibrated on the user's own pictures, judged on others.

There is no labelled set to count right answers on. What can be had without labels: how often the
first class stays, how far the vectors turn, and the loss of accuracy to be expected if the float
model's probabilities are right, which is the mean of ``p(first class) - p(class that INT8 puts
first)``, both as the float model sees them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from engines.contracts.base import Contract
from engines.errors import EngineError
from engines.runtime.backends import open_session
from engines.runtime.calibration import Method, collect
from engines.runtime.conversion import converted
from engines.runtime.manifest import directory_revision
from engines.runtime.quantise import VERSION, Plan, quantise
from engines.runtime.session import NetworkSource, Session, SessionOptions, require_onnx
from engines.vision.calibration_set import CalibrationSet
from engines.vision.efficientnet_engine import softmax, views
from engines.vision.label_engine import Picture

MAX_EXPECTED_LOSS = 0.01
"""Of top-1 accuracy: one point."""
MIN_SURE_AGREEMENT = 0.97
"""Share of pictures with a clear first class (probability 0.4 and up) that keep it."""
MIN_COSINE = 0.98
"""Of feature vectors, the median."""
METHOD: Method = "percentile"
_SURE = 0.4
_BATCH = 4
PLAN = Plan(keep_float=("_conv_stem",))


class GateReport(Contract):
    """How a quantised network did against its float original, on pictures not calibrated on."""

    pictures: int
    agreement: float
    """Share of pictures whose first class stays."""
    sure_pictures: int
    sure_agreement: float
    """The same among pictures whose first class has a float probability of 0.4 and up."""
    expected_loss: float
    """Of top-1 accuracy, as a fraction; see the module."""
    score_drift: float
    """Mean absolute change of the first class's probability."""
    cosine: float
    """Median between the feature vectors."""

    @property
    def refusal(self) -> str | None:
        """Why the network is not to be used; None where it may."""
        if self.expected_loss >= MAX_EXPECTED_LOSS:
            return f"expected loss {self.expected_loss:.3f}, allowed is below {MAX_EXPECTED_LOSS}"
        if self.sure_agreement < MIN_SURE_AGREEMENT:
            return f"sure labels agree in {self.sure_agreement:.3f}, needed is {MIN_SURE_AGREEMENT}"
        if self.cosine < MIN_COSINE:
            return f"feature cosine {self.cosine:.3f}, needed is {MIN_COSINE}"
        return None


def quantised_source(
    source: NetworkSource, pictures: CalibrationSet, revision: str, cache_dir: Path
) -> NetworkSource:
    """The INT8 network for these pictures, made at the first call for a cache.

    Args:
        source: the float network.
        pictures: see ``CalibrationSet``.
        revision: hash of the pictures' directory.
        cache_dir: where artifacts are kept; the name holds the hash of weights and pictures.
    """
    recipe = {
        "weights": source.weights_sha256,
        "pictures": revision,
        "quantiser": str(VERSION),
        "method": METHOD,
        "plan": repr(PLAN),
        "onnxruntime": onnxruntime.__version__,
    }
    made = converted(
        cache_dir,
        f"{source.name}-int8",
        recipe,
        lambda: calibrated(source, pictures.calibration()),
        suffix=".onnx",
    )
    return replace(source, onnx_path=made.path)


def calibrated(source: NetworkSource, pictures: Iterable[Picture]) -> bytes:
    """The network in INT8, calibrated on ``pictures``: one view of each, the two kinds in turn."""
    model = onnx.load(require_onnx(source))
    seen = (views(picture)[index % 2] for index, picture in enumerate(pictures))
    rows = ({"pixels": np.stack(batch)} for batch in _batches(seen))
    return quantise(model, collect(model, rows, METHOD), PLAN)


def judge(quantised: Session, original: Session, pictures: Iterable[Picture]) -> GateReport:
    """Run both on the same pictures, as the engine does: two views, averaged.

    Raises:
        EngineError: no pictures.
    """
    pairs = [
        (_see(original, batch), _see(quantised, batch))
        for batch in _batches(iter(pictures), _BATCH)
    ]
    if not pairs:
        msg = "no pictures to judge a quantised network by"
        raise EngineError(msg)
    wanted, wanted_vectors = (np.concatenate([p[0][i] for p in pairs]) for i in range(2))
    found, found_vectors = (np.concatenate([p[1][i] for p in pairs]) for i in range(2))
    rows = np.arange(len(wanted))
    first, chosen = wanted.argmax(axis=1), found.argmax(axis=1)
    same = first == chosen
    sure = wanted.max(axis=1) >= _SURE
    lengths = np.linalg.norm(wanted_vectors, axis=1) * np.linalg.norm(found_vectors, axis=1)
    cosines = (wanted_vectors * found_vectors).sum(axis=1) / np.maximum(lengths, 1e-12)
    return GateReport(
        pictures=len(wanted),
        agreement=float(same.mean()),
        sure_pictures=int(sure.sum()),
        sure_agreement=float(same[sure].mean()) if sure.any() else 1.0,
        expected_loss=float((wanted[rows, first] - wanted[rows, chosen]).mean()),
        score_drift=float(np.abs(wanted[rows, first] - found[rows, first]).mean()),
        cosine=float(np.median(cosines)),
    )


def open_int8(
    source: NetworkSource, options: SessionOptions, backend: str, directory: Path, cache_dir: Path
) -> tuple[Session, GateReport]:
    """Calibrate if the cache has nothing fitting, load, and pass or fail the gate.

    Returns:
        The session, and the report that says whether it may be used.

    Raises:
        EngineError: too few pictures, or the backend cannot load the network.
    """
    pictures = CalibrationSet(directory)
    revision = directory_revision(directory)
    session = open_session(
        backend, quantised_source(source, pictures, revision, cache_dir), options
    )
    info = session.describe()
    recipe = {
        "weights": info.weights_sha256,
        "pictures": revision,
        "provider": info.provider,
        "gate": f"{VERSION} {METHOD} {PLAN}",
    }

    def measure() -> bytes:
        original = open_session(backend, source, replace(options, precision="f32"))
        return judge(session, original, pictures.gate()).model_dump_json().encode()

    kept = converted(cache_dir, f"{source.name}-int8-gate", recipe, measure, suffix=".report")
    return session, GateReport.model_validate_json(kept.path.read_bytes())


def _see(
    session: Session, pictures: list[Picture]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    rows = np.stack([view for picture in pictures for view in views(picture)])
    outputs = session.run({"pixels": rows})
    logits = outputs["logits"].astype(np.float32).reshape(len(pictures), 2, -1)
    features = outputs["features"].astype(np.float32).reshape(len(pictures), 2, -1)
    return softmax(logits).mean(axis=1), features.mean(axis=1)


def _batches(pictures: Iterator[Picture], size: int = _BATCH) -> Iterator[list[Picture]]:
    while batch := list(islice(pictures, size)):
        yield batch
