"""Converted and quantised networks: made once, kept under their recipe, with their lineage."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from engines.contracts.base import Contract
from engines.runtime.manifest import file_sha256


class ConversionRecord(Contract):
    """Beside every converted file, as ``NAME.json``: from what and how it was made."""

    name: str
    recipe: dict[str, str]
    """Hash of the source weights, converter and library versions, precision, calibration data."""
    sha256: str
    """Of the converted file; it is checked at every use."""
    size_bytes: int


class Converted(Contract):
    """A converted network that is ready to load."""

    path: Path
    record: ConversionRecord


def recipe_hash(recipe: dict[str, str]) -> str:
    """Hex SHA-256 over the sorted ingredients; two recipes that differ anywhere differ here."""
    digest = hashlib.sha256()
    for key in sorted(recipe):
        digest.update(f"{key}\0{recipe[key]}\n".encode())
    return digest.hexdigest()


def converted(
    cache_dir: Path, name: str, recipe: dict[str, str], make: Callable[[], bytes], *, suffix: str
) -> Converted:
    """The file that ``make`` produces for this recipe, made at most once per cache.

    Args:
        cache_dir: made if it is not there.
        name: first part of the file's name.
        recipe: everything that decides the result.
        make: called only when nothing fitting lies in the cache.
        suffix: of the file, e.g. ``.onnx``.

    Returns:
        Path and record. A file that no longer matches its record is made anew.
    """
    stem = f"{name}-{recipe_hash(recipe)[:16]}"
    path, side = cache_dir / f"{stem}{suffix}", cache_dir / f"{stem}.json"
    record = _read_record(side)
    known = record is not None and record.recipe == recipe and path.is_file()
    if record is not None and known and file_sha256(path) == record.sha256:
        return Converted(path=path, record=record)
    data = make()
    record = ConversionRecord(
        name=name, recipe=recipe, sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data)
    )
    cache_dir.mkdir(parents=True, exist_ok=True)
    # The record goes last: a process killed in between leaves a file that nobody trusts.
    write_atomically(path, data)
    write_atomically(side, record.model_dump_json(indent=1).encode())
    return Converted(path=path, record=record)


def write_atomically(path: Path, data: bytes) -> None:
    """Write so that a reader sees the old content or the new, also with several writers."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read_record(path: Path) -> ConversionRecord | None:
    try:
        return ConversionRecord.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
