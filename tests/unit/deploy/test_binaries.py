"""The programs are the ones of the manifest, and others are refused."""

import importlib.metadata
import json
import os
import subprocess
from pathlib import Path

import pytest

from deploy.local.binaries import MANIFEST, copy_install, postgres_install, verified, weed_program
from engines.errors import ServiceUnavailableError


def test_installed_programs_are_the_expected_ones() -> None:
    assert weed_program().name == "weed"
    for name in ("postgres", "initdb"):
        program = postgres_install() / "bin" / name
        assert verified(name, program) == program


def test_the_manifest_names_the_installed_versions() -> None:
    for entry in json.loads(MANIFEST.read_bytes()).values():
        assert importlib.metadata.version(entry["distribution"]) == entry["version"]


def test_another_program_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "weed"
    program.write_bytes(weed_program().read_bytes()[:-1])
    with pytest.raises(ServiceUnavailableError, match=r"is not the expected program: SHA-256"):
        verified("weed", program)


def test_an_unknown_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "pdp11")
    with pytest.raises(ServiceUnavailableError, match="no checked program for pdp11"):
        weed_program()


def test_a_copy_runs_without_the_original(tmp_path: Path) -> None:
    install = copy_install(postgres_install(), tmp_path)
    assert copy_install(postgres_install(), tmp_path) == install
    for name in ("postgres", "initdb"):
        program = verified(name, install / "bin" / name)
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"{name} (PostgreSQL) 18.")
    others = [p for p in install.rglob("*") if not p.is_symlink() and not os.access(p, os.R_OK)]
    assert not others
    assert (install / "share" / "extension" / "vector.control").stat().st_mode & 0o004
