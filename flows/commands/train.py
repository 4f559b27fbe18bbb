"""train: make the weights that ship anew, with their record and manifest."""

import hashlib
from functools import partial
from importlib.metadata import version
from pathlib import Path

from engines.actions.classify import DEFAULT_MODEL, RULES_FILE, WEIGHTS_FILE
from engines.actions.estimated import seen_by_estimator
from engines.actions.shipping import LICENCE, record_bytes, train_shipment
from engines.errors import UsageError
from engines.runtime.manifest import InputSpec, ModelFile, ModelManifest, ModelPart
from flows.commands.output import say
from flows.cores import on_every_core

WHAT = ("actions",)
_FOLDER = "actions/weights"


def train(what: str, skeletons: Path, out: Path, *, seed: int) -> None:
    """Train, and write weights, rules, record and manifest below ``out``.

    The same files, seed and versions give the same weights on the same kind of processor.

    Args:
        what: ``actions``.
        skeletons: directory with the skeleton sets.
        out: directory; made if it is not there.
        seed: of everything random.

    Raises:
        UsageError: nothing of this name can be trained, or a file is missing.
    """
    if what not in WHAT:
        msg = f"nothing called {what!r} can be trained; there is: {', '.join(WHAT)}"
        raise UsageError(msg)
    shipment = train_shipment(
        skeletons,
        name=DEFAULT_MODEL,
        seed=seed,
        see_all=partial(on_every_core, seen_by_estimator),
        say=say,
    )
    stored = {
        f"{DEFAULT_MODEL}.npz": shipment.weights,
        f"{DEFAULT_MODEL}-rules.json": shipment.rules,
        f"{DEFAULT_MODEL}-record.json": record_bytes(shipment.record),
    }
    manifest = _manifest(
        {WEIGHTS_FILE: f"{DEFAULT_MODEL}.npz", RULES_FILE: f"{DEFAULT_MODEL}-rules.json"}, stored
    )
    stored[f"{DEFAULT_MODEL}.json"] = manifest.model_dump_json(indent=2).encode() + b"\n"
    out.mkdir(parents=True, exist_ok=True)
    for name, data in stored.items():
        (out / name).write_bytes(data)
        say(f"{out / name}: {len(data)} bytes")


def _manifest(files: dict[str, str], stored: dict[str, bytes]) -> ModelManifest:
    return ModelManifest(
        name=DEFAULT_MODEL,
        distributions=(f"reelgraph=={version('reelgraph')}",),
        version="1",
        licence=LICENCE,
        source="trained by this project's own command, reelgraph train actions",
        input=InputSpec(
            kind="joints",
            layout="btjd",
            dtype="float32",
            shape=(None, 32, 14, 2),
            note="the shared thirteen joints and the centre's path, torso lengths, x right, y down",
        ),
        files=tuple(
            ModelFile(
                name=name,
                parts=(ModelPart(package="engines", path=f"{_FOLDER}/{path}"),),
                size_bytes=len(stored[path]),
                sha256=hashlib.sha256(stored[path]).hexdigest(),
            )
            for name, path in files.items()
        ),
    )
