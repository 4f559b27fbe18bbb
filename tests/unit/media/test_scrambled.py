"""Transport streams with scrambled packets: called so, not tried; what is clear is used."""

from collections.abc import Callable
from pathlib import Path

import pytest
from made_media import noise_free_scene, tone, write_video

from engines.contracts.media import SampleDocument
from engines.errors import EncryptedError
from engines.media.probe import probe

Decode = Callable[..., tuple[SampleDocument, Path]]
PICTURE, SOUND = 0x100, 0x101


def _scrambled(data: bytes, pids: set[int], *, unit: bool = False, every: int = 1) -> bytes:
    """Scramble whole payloads, or (``unit``) what follows the head of each unit of the stream."""
    out, count = bytearray(data), 0
    for at in range(0, len(out), 188):
        if int.from_bytes(out[at + 1 : at + 3]) & 0x1FFF not in pids:
            continue
        count += 1
        if count % every:
            continue
        start = at + 4 + (1 + out[at + 4] if out[at + 3] & 0x20 else 0)
        if not unit:
            out[at + 3] |= 0x80
        elif out[at + 1] & 0x40:
            out[start + 6] |= 0x20
            start += 9 + out[start + 8]
        for i in range(start, at + 188):
            out[i] ^= 0x5A + i % 7
    return bytes(out)


@pytest.fixture(scope="module")
def clear(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("clear")
    scene = noise_free_scene(1, 50, (96, 64))
    return write_video(folder / "a.ts", scene, audio=tone(440, 2.0)).read_bytes()


@pytest.mark.parametrize("unit", [False, True])
def test_all_of_it(unit: bool, clear: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.ts"
    path.write_bytes(_scrambled(clear, {PICTURE, SOUND}, unit=unit))
    with pytest.raises(EncryptedError):
        probe(path)


def test_with_a_time_code_before_each_packet(clear: bytes, tmp_path: Path) -> None:
    data = _scrambled(clear, {PICTURE, SOUND})
    path = tmp_path / "a.m2ts"
    path.write_bytes(b"".join(bytes(4) + data[at : at + 188] for at in range(0, len(data), 188)))
    with pytest.raises(EncryptedError):
        probe(path)


@pytest.mark.parametrize("unit", [False, True])
def test_the_sound_alone(unit: bool, clear: bytes, tmp_path: Path, decoded: Decode) -> None:
    path = tmp_path / "a.ts"
    path.write_bytes(_scrambled(clear, {SOUND}, unit=unit))
    document, _ = decoded(path)
    assert document.verdict == "partial"
    assert document.audio is None
    assert document.video is not None
    assert document.video.frames_decoded == 50
    assert "encrypted_track" in {p.code for p in document.problems}


def test_parts_of_it(clear: bytes, tmp_path: Path, decoded: Decode) -> None:
    path = tmp_path / "a.ts"
    path.write_bytes(_scrambled(clear, {PICTURE}, every=3))
    document, _ = decoded(path)
    assert document.verdict == "partial"
    assert "encrypted_parts" in {p.code for p in document.problems}


def test_a_mark_alone_scrambles_nothing(clear: bytes, tmp_path: Path, decoded: Decode) -> None:
    out = bytearray(clear)
    for at in range(0, len(out), 188):
        out[at + 3] |= 0x80
    path = tmp_path / "a.ts"
    path.write_bytes(out)
    document, _ = decoded(path)
    assert document.verdict == "complete"
    assert document.video is not None
    assert document.video.frames_decoded == 50
