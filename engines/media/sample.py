"""Decode a file once, for everyone: sampled pictures, signals, thumbnails and sound."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from engines.contracts.media import MediaProbe, SampleDocument, SampleParams
from engines.media.container import open_media
from engines.media.document import assemble, write_blobs
from engines.media.limits import MediaLimits
from engines.media.onepass import OnePass, PassParams, ResumeFailedError
from engines.media.packets import NeedsSerialError
from engines.media.workspace import Workspace

WORK_DIRECTORY: Final = "work"
_HASH_BYTES = 1 << 16


def decode(
    path: Path,
    probe: MediaProbe,
    params: SampleParams,
    out_dir: Path,
    limits: MediaLimits = MediaLimits(),  # noqa: B008 (frozen)
) -> SampleDocument:
    """Decode ``path`` once and write the blobs of its SampleDocument.

    Args:
        path: the local file.
        probe: what ``engines.media.probe.probe`` said of it.
        params: sampling parameters.
        out_dir: receives samples.zip, signals.npy, pts.npy, thumbs.npy, thumb_frames.npy and
            audio.npy. A call that was killed leaves its checkpoints in ``work/`` there, and the
            next call with the same file, parameters and directory goes on from them.
        limits: bounds on errors, frames, material, output and time.

    Returns:
        The document; ``verdict`` is ``partial`` where something was damaged, cut off or left
        out, and ``problems`` say what and when.

    Raises:
        NothingDecodedError: not one picture or sample of sound decodes.
        RefusedError: as for ``probe``.
    """
    settings = PassParams(**params.model_dump(include=set(PassParams.__dataclass_fields__)))
    workspace = Workspace(
        out_dir / WORK_DIRECTORY, _identity(path, params), limits.max_output_bytes
    )
    try:
        document = _decode(path, probe, settings, out_dir, limits, workspace)
    except ResumeFailedError:
        workspace.clear()
        document = _decode(path, probe, settings, out_dir, limits, workspace)
    finally:
        workspace.close()
    workspace.remove()
    return document


def _identity(path: Path, params: SampleParams) -> str:
    """Hash of the parameters and of the ends of the file."""
    digest = hashlib.sha256(params.model_dump_json(exclude={"threads"}).encode())
    size = path.stat().st_size
    digest.update(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_HASH_BYTES))
        file.seek(max(0, size - _HASH_BYTES))
        digest.update(file.read(_HASH_BYTES))
    return digest.hexdigest()


def _decode(
    path: Path,
    probe: MediaProbe,
    params: PassParams,
    out_dir: Path,
    limits: MediaLimits,
    workspace: Workspace,
) -> SampleDocument:
    try:
        return _run(path, probe, params, out_dir, limits, workspace)
    except NeedsSerialError:
        # Damage: with one thread each error belongs to its packet, and no frame is lost.
        workspace.rewind()
        serial = replace(params, threads=1)
        return _run(path, probe, serial, out_dir, limits, workspace)


def _run(
    path: Path,
    probe: MediaProbe,
    params: PassParams,
    out_dir: Path,
    limits: MediaLimits,
    workspace: Workspace,
) -> SampleDocument:
    with open_media(path, limits) as (container, structure):
        one = OnePass(container, probe, params, limits, workspace)
        one.run()
    document = assemble(one, probe, structure, workspace)
    write_blobs(one, workspace, out_dir)
    return document
