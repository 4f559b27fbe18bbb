"""What the containers' own structure gives away, within bounds."""

import os
import struct
from pathlib import Path

import hostile
import pytest
from made_media import noise_free_scene, tone, write_video

from engines.errors import LimitExceededError
from engines.media.limits import MediaLimits
from engines.media.structure import Structure, read_structure


def _read(path: Path, limits: MediaLimits | None = None) -> Structure:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return read_structure(descriptor, path.stat().st_size, limits or MediaLimits())
    finally:
        os.close(descriptor)


def _box(name: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">I4s", 8 + len(body), name) + body


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "avi"])
def test_an_early_end_is_seen_in_three_containers(suffix: str, tmp_path: Path) -> None:
    codec = "mpeg4" if suffix == "avi" else "libx264"
    path = write_video(tmp_path / f"a.{suffix}", noise_free_scene(1, 20, (96, 64)), codec=codec)
    assert _read(path).truncated is None
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * 0.6)])
    assert _read(path).truncated is not None


def test_references_and_codecs_are_named(tmp_path: Path) -> None:
    found = _read(hostile.external_reference(tmp_path, "http://127.0.0.1:9/x"))
    assert found.external_references == ["http://127.0.0.1:9/x"]
    assert "avc1" in found.sample_entries
    assert not _read(hostile.small_mp4(tmp_path)).external_references


@pytest.mark.parametrize("codes", [(b"encv",), (b"enca",), (b"avc1", b"encv")])
def test_encrypted_samples_are_seen(codes: tuple[bytes, ...], tmp_path: Path) -> None:
    entries = b"".join(_box(code, bytes(78)) for code in codes)
    stsd = _box(b"stsd", bytes(4) + struct.pack(">I", len(codes)) + entries)
    tree = stsd
    for name in (b"stbl", b"minf", b"mdia", b"trak", b"moov"):
        tree = _box(name, tree)
    path = tmp_path / "e.mp4"
    path.write_bytes(_box(b"ftyp", b"isom" + bytes(4)) + tree)
    assert _read(path).encrypted


def test_nesting_is_bounded(tmp_path: Path) -> None:
    tree = b""
    for _ in range(40):
        tree = _box(b"udta", tree)
    path = tmp_path / "deep.mp4"
    path.write_bytes(_box(b"ftyp", bytes(8)) + _box(b"moov", tree))
    with pytest.raises(LimitExceededError, match="nested"):
        _read(path)


@pytest.mark.parametrize("size", [0, 1, 7, 0xFFFFFFFF])
def test_absurd_sizes_end_the_walk(size: int, tmp_path: Path) -> None:
    path = tmp_path / "absurd.mp4"
    path.write_bytes(_box(b"ftyp", bytes(8)) + struct.pack(">I4s", size, b"moov") + bytes(64))
    assert _read(path).kind == "iso"


def test_many_boxes_end_the_walk(tmp_path: Path) -> None:
    path = tmp_path / "many.mp4"
    path.write_bytes(_box(b"ftyp", bytes(8)) + _box(b"free") * 60_000)
    assert _read(path).kind == "iso"


def test_a_stream_written_without_a_length_is_not_truncated(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.wav", [], audio=tone(440, 0.2), audio_codec="pcm_s16le")
    data = bytearray(path.read_bytes())
    data[4:8] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    assert _read(path).truncated is None
