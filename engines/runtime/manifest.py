"""Which weights an engine uses: where they lie, what they must hash to, under which licence.

The embedded default models arrive inside installed packages, several of them re-uploads by one
publisher. So each has a manifest (``manifests/NAME.json``) that pins the package and the SHA-256
of every file the loader opens, and nothing is loaded that does not match:

    path = verified_path("silero-vad")          # Path of the one file, or the model's directory
    files = verified_files("whisper-tiny.en")   # {"model.bin": Path, "config.json": Path ...}
    data = verified_bytes("whisper-base")       # the same in memory, parts put together
    key = revision("silero-vad")                # goes into cache keys; reads the manifest only

A package is found by its import spec and never imported here: importing it may load a whole
framework. A model in a directory of the user's own has no manifest: ``directory_revision`` hashes
what lies there.
"""

import hashlib
import importlib.util
from collections.abc import Iterable
from functools import cache
from importlib.resources import files as resource_files
from pathlib import Path

from pydantic import Field, ValidationError

from engines.contracts.base import Contract
from engines.errors import EngineError, ModelHashError, ModelMissingError, UsageError

_CHUNK_BYTES = 1 << 20
_HEX_SHA256 = r"^[0-9a-f]{64}$"


class EngineDescription(Contract):
    """What would compute, told without loading it: the recipe's part of a cache key."""

    engine: str
    """Name and version of the code, e.g. ``faster-whisper 1.2.1``."""
    model: str
    """Name of the manifest, or of the user's directory."""
    model_revision: str
    """Hex SHA-256 over the hashes of all weight, tokenizer and preprocessor files."""
    device: str
    threads: int = Field(ge=1)
    degraded: tuple[str, ...] = ()
    """Each entry says what is weaker than asked for, and why."""


class ModelPart(Contract):
    """One file as it is stored in a package."""

    package: str
    """Import name of the top-level package that holds it."""
    path: str
    """Relative to that package's directory, with ``/``."""


class ModelFile(Contract):
    """One file as the loader wants it: one stored part, or several to be put end to end."""

    name: str
    """What the loader calls it, e.g. ``model.bin``."""
    parts: tuple[ModelPart, ...] = Field(min_length=1)
    size_bytes: int = Field(gt=0)
    sha256: str = Field(pattern=_HEX_SHA256)
    """Of the whole, after the parts are put together."""


class InputSpec(Contract):
    """What the model takes; a loader refuses a model whose spec does not fit its code."""

    kind: str
    """``audio``, ``image``, ``clip`` or ``tokens``."""
    layout: str
    """Axes, e.g. ``n`` samples or ``nchw``."""
    dtype: str
    shape: tuple[int | None, ...]
    """None where the axis may have any length."""
    sample_rate_hz: int | None = None
    note: str = ""
    """Value range, normalisation, order of colours."""


class ModelManifest(Contract):
    """Everything that is known of one packaged model."""

    name: str
    distributions: tuple[str, ...]
    """What to install, pinned: ``name==version``."""
    version: str
    licence: str
    """As the package or its origin states it; says so where nothing is stated."""
    source: str
    """Where the weights come from, in words."""
    input: InputSpec
    files: tuple[ModelFile, ...] = Field(min_length=1)


def manifest_names() -> tuple[str, ...]:
    """Names of all packaged models, sorted."""
    folder = resource_files("engines.runtime").joinpath("manifests")
    return tuple(
        sorted(
            entry.name.removesuffix(".json")
            for entry in folder.iterdir()
            if entry.name.endswith(".json")
        )
    )


@cache
def load_manifest(name: str) -> ModelManifest:
    """The manifest called ``name``; nothing of the model is read.

    Raises:
        UsageError: no such manifest; the message names those that exist.
        EngineError: the manifest does not hold what it must.
    """
    names = manifest_names()
    if name not in names:
        msg = f"no model manifest {name!r}; there are: {', '.join(names)}"
        raise UsageError(msg)
    entry = resource_files("engines.runtime").joinpath("manifests", f"{name}.json")
    try:
        manifest = ModelManifest.model_validate_json(entry.read_bytes())
    except ValidationError as error:
        msg = f"the manifest of {name} is not valid: {error}"
        raise EngineError(msg) from error
    if manifest.name != name:
        msg = f"the manifest {name}.json calls itself {manifest.name!r}"
        raise EngineError(msg)
    return manifest


def package_dir(package: str) -> Path | None:
    """Directory of an installed top-level package, found without importing it; or None."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def is_available(name: str) -> bool:
    """Whether every file of the model is in place with the right size; hashes are not read."""
    try:
        return all(
            sum(p.stat().st_size for p in _part_paths(file)) == file.size_bytes
            for file in load_manifest(name).files
        )
    except ModelMissingError:
        return False


def revision(name: str) -> str:
    """Hex SHA-256 over the names and hashes of the model's files, for cache keys.

    Taken from the manifest, not from the disk: ``verified_*`` holds the disk to it at use.
    """
    manifest = load_manifest(name)
    return _digest((file.name, file.sha256) for file in manifest.files)


def verified_files(name: str) -> dict[str, Path]:
    """Paths of the model's files by name, each checked against its SHA-256.

    Raises:
        ModelMissingError: a file or its package is not installed.
        ModelHashError: a file differs from the manifest.
        EngineError: a file is stored in parts (use ``verified_bytes``).
    """
    found: dict[str, Path] = {}
    for file in load_manifest(name).files:
        paths = _part_paths(file)
        if len(paths) > 1:
            msg = f"{file.name} of {name} is stored in {len(paths)} parts: read it as bytes"
            raise EngineError(msg)
        _check(name, file, _hash_paths(paths))
        found[file.name] = paths[0]
    return found


def verified_path(name: str) -> Path:
    """The model's one file, or the directory that holds all its files, after the hash check.

    Raises:
        ModelMissingError, ModelHashError, EngineError: as ``verified_files``; EngineError also
            when the files lie in several directories.
    """
    paths = list(verified_files(name).values())
    if len(paths) == 1:
        return paths[0]
    parents = {path.parent for path in paths}
    if len(parents) > 1:
        msg = f"the files of {name} lie in {len(parents)} directories: use verified_files"
        raise EngineError(msg)
    return parents.pop()


def verified_bytes(name: str) -> dict[str, bytes]:
    """Contents of the model's files by name, parts put together, the very bytes being checked.

    Raises:
        ModelMissingError: a file or its package is not installed.
        ModelHashError: a file differs from the manifest.
    """
    contents: dict[str, bytes] = {}
    for file in load_manifest(name).files:
        data = b"".join(path.read_bytes() for path in _part_paths(file))
        _check(name, file, hashlib.sha256(data).hexdigest())
        contents[file.name] = data
    return contents


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file; asked again, it is read again only if size or time changed.

    Raises:
        ModelMissingError: no such file.
    """
    return _hash_paths((path,))


def directory_revision(path: Path) -> str:
    """Hex SHA-256 over relative names and hashes of all files below a model directory.

    Weights, tokenizer, preprocessor and config all count: each changes what comes out.

    Raises:
        ModelMissingError: not a directory, or nothing in it.
    """
    if not path.is_dir():
        msg = f"no model directory {path}"
        raise ModelMissingError(msg)
    entries = sorted(entry for entry in path.rglob("*") if entry.is_file())
    if not entries:
        msg = f"the model directory {path} is empty"
        raise ModelMissingError(msg)
    return _digest((entry.relative_to(path).as_posix(), file_sha256(entry)) for entry in entries)


def _part_paths(file: ModelFile) -> tuple[Path, ...]:
    paths = []
    for part in file.parts:
        root = package_dir(part.package)
        if root is None:
            msg = f"{file.name} needs the package {part.package}, which is not installed"
            raise ModelMissingError(msg)
        path = root / part.path
        if not path.is_file():
            msg = f"{part.path} is missing from the installed package {part.package}"
            raise ModelMissingError(msg)
        paths.append(path)
    return tuple(paths)


def _check(name: str, file: ModelFile, sha256: str) -> None:
    if sha256 != file.sha256:
        msg = f"{file.name} of {name} has SHA-256 {sha256}, its manifest says {file.sha256}"
        raise ModelHashError(msg)


def _hash_paths(paths: tuple[Path, ...]) -> str:
    stamps = []
    for path in paths:
        try:
            stat = path.stat()
        except FileNotFoundError as error:
            msg = f"no model file {path}"
            raise ModelMissingError(msg) from error
        stamps.append((path, stat.st_size, stat.st_mtime_ns))
    return _hash_stamped(tuple(stamps))


@cache
def _hash_stamped(stamps: tuple[tuple[Path, int, int], ...]) -> str:
    """Size and time are part of the memo key: a file changed in place is hashed again."""
    digest = hashlib.sha256()
    for path, _, _ in stamps:
        with path.open("rb") as stream:
            while block := stream.read(_CHUNK_BYTES):
                digest.update(block)
    return digest.hexdigest()


def _digest(pairs: Iterable[tuple[str, str]]) -> str:
    digest = hashlib.sha256()
    for name, sha256 in pairs:
        digest.update(f"{name}\0{sha256}\n".encode())
    return digest.hexdigest()
