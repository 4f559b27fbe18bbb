"""Manifests pin what a loader may open; nothing else passes."""

import hashlib
import importlib
import re
import sys
from pathlib import Path

import pytest

from engines.errors import EngineError, ModelHashError, ModelMissingError, UsageError
from engines.runtime import manifest as manifests
from engines.runtime.manifest import (
    ModelFile,
    ModelManifest,
    directory_revision,
    file_sha256,
    is_available,
    load_manifest,
    manifest_names,
    package_dir,
    revision,
    verified_bytes,
    verified_files,
    verified_path,
)

WEIGHTS = b"0123456789" * 50
CONFIG = b'{"size": 3}'


def _file(name: str, data: bytes, parts: list[str], package: str) -> ModelFile:
    return ModelFile.model_validate(
        {
            "name": name,
            "parts": [{"package": package, "path": path} for path in parts],
            "size_bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable package that holds weights, in one piece and in two; importing it fails."""
    root = tmp_path / "weights_pkg"
    root.mkdir()
    (root / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (root / "model.bin").write_bytes(WEIGHTS)
    (root / "config.json").write_bytes(CONFIG)
    (root / "model.bin.part1").write_bytes(WEIGHTS[:123])
    (root / "model.bin.part2").write_bytes(WEIGHTS[123:])
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return root


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    """Serve a manifest made here under the name ``made``."""

    def _use(*files: ModelFile) -> None:
        base = load_manifest("silero-vad").model_dump()
        made = ModelManifest.model_validate(base | {"name": "made", "files": files})
        monkeypatch.setattr(manifests, "load_manifest", lambda name: {"made": made}[name])

    return _use


@pytest.mark.parametrize("name", manifest_names())
def test_every_shipped_manifest_is_valid_and_says_where_it_comes_from(name):
    shipped = load_manifest(name)
    assert shipped.name == name
    assert shipped.licence
    assert shipped.source
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", pin) for pin in shipped.distributions)
    assert len({file.name for file in shipped.files}) == len(shipped.files)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(UsageError, match="silero-vad"):
        load_manifest("no-such-model")


def test_installed_small_model_passes_its_hash():
    path = verified_path("silero-vad")
    assert (
        hashlib.sha256(path.read_bytes()).hexdigest() == load_manifest("silero-vad").files[0].sha256
    )


def test_package_is_found_without_importing_it(package, use):
    use(_file("model.bin", WEIGHTS, ["model.bin"], "weights_pkg"))
    assert verified_path("made") == package / "model.bin"
    assert "weights_pkg" not in sys.modules
    assert package_dir("weights_pkg") == package


def test_several_files_give_their_directory(package, use):
    use(
        _file("model.bin", WEIGHTS, ["model.bin"], "weights_pkg"),
        _file("config.json", CONFIG, ["config.json"], "weights_pkg"),
    )
    assert verified_path("made") == package
    assert verified_files("made") == {
        "model.bin": package / "model.bin",
        "config.json": package / "config.json",
    }


def test_parts_are_put_together_in_memory_and_hashed_as_a_whole(package, use):
    use(_file("model.bin", WEIGHTS, ["model.bin.part1", "model.bin.part2"], "weights_pkg"))
    assert verified_bytes("made") == {"model.bin": WEIGHTS}
    with pytest.raises(EngineError, match="2 parts"):
        verified_files("made")


@pytest.mark.parametrize("read", [verified_path, verified_bytes])
def test_one_changed_byte_is_refused_even_after_a_good_read(package, use, read):
    use(_file("model.bin", WEIGHTS, ["model.bin"], "weights_pkg"))
    read("made")
    (package / "model.bin").write_bytes(WEIGHTS[:-1] + b"X")
    with pytest.raises(ModelHashError, match=r"model\.bin of made"):
        read("made")


def test_missing_package_and_missing_file_are_told_apart(package, use):
    use(_file("model.bin", WEIGHTS, ["model.bin"], "no_such_package_here"))
    with pytest.raises(ModelMissingError, match="no_such_package_here, which is not installed"):
        verified_path("made")
    assert not is_available("made")
    use(_file("model.bin", WEIGHTS, ["gone.bin"], "weights_pkg"))
    with pytest.raises(ModelMissingError, match=r"gone\.bin is missing"):
        verified_path("made")
    assert not is_available("made")


def test_availability_looks_at_sizes(package, use):
    use(_file("model.bin", WEIGHTS, ["model.bin"], "weights_pkg"))
    assert is_available("made")
    (package / "model.bin").write_bytes(WEIGHTS[:-1])
    assert not is_available("made")


def test_revision_follows_each_file_and_its_name(package, use):
    seen = set()
    for files in (
        (_file("model.bin", WEIGHTS, ["model.bin"], "weights_pkg"),),
        (_file("model.bin", CONFIG, ["model.bin"], "weights_pkg"),),
        (_file("other.bin", WEIGHTS, ["model.bin"], "weights_pkg"),),
        (
            _file("model.bin", WEIGHTS, ["model.bin"], "weights_pkg"),
            _file("config.json", CONFIG, ["config.json"], "weights_pkg"),
        ),
    ):
        use(*files)
        seen.add(revision("made"))
    assert len(seen) == 4


def test_directory_revision_sees_weights_tokenizer_and_config(tmp_path):
    for name in ("model.bin", "tokenizer.json", "sub/config.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("a")
    seen = {directory_revision(tmp_path)}
    assert directory_revision(tmp_path) in seen
    for name in ("model.bin", "tokenizer.json", "sub/config.json"):
        (tmp_path / name).write_text("bb")
        seen.add(directory_revision(tmp_path))
    assert len(seen) == 4


def test_directory_without_files_or_absent_is_missing(tmp_path):
    with pytest.raises(ModelMissingError, match="empty"):
        directory_revision(tmp_path)
    with pytest.raises(ModelMissingError, match="no model directory"):
        directory_revision(tmp_path / "absent")
    with pytest.raises(ModelMissingError, match="no model file"):
        file_sha256(tmp_path / "absent.bin")
