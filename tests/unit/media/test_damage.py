"""Files that were cut off or damaged: what decodes is given, and what is lost is said."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_media import noise_free_scene, tone, write_video
from PIL import Image

from engines.contracts.media import SampleDocument
from engines.errors import UnsupportedCodecError
from engines.media.guard import forbidden_text
from engines.media.probe import probe

Decode = Callable[..., tuple[SampleDocument, Path]]
SCENE = noise_free_scene(1, 40, (96, 64))


def _codes(document: SampleDocument) -> set[str]:
    return {p.code for p in document.problems}


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_threads_lose_no_picture_before_the_cut(
    share: float, tmp_path: Path, decoded: Decode
) -> None:
    """A decoder with several threads drops the last pictures before a broken one, silently."""
    path = write_video(
        tmp_path / "a.mp4",
        SCENE,
        options={"bf": "3", "g": "12"},
        container_options={"movflags": "faststart"},
    )
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    documents = [decoded(path, threads=threads)[0] for threads in (0, 1)]
    counts = [d.video.frames_decoded for d in documents if d.video is not None]
    assert counts[0] == counts[1]
    assert documents[0].verdict == "partial"


CUT = {
    "a.gif": ("gif", "rgb8"),
    "a.wmv": ("wmv2", "yuv420p"),
    "a.aiff": ("pcm_s16be", ""),
    "a.au": ("pcm_s16be", ""),
    "a.opus": ("libopus", ""),
    "a.caf": ("pcm_s16le", ""),
    "a.w64": ("pcm_s16le", ""),
    "a.ts": ("libx264", "yuv420p"),
}


@pytest.mark.parametrize("name", CUT)
def test_an_early_end_is_said(name: str, tmp_path: Path, decoded: Decode) -> None:
    codec, pixels = CUT[name]
    path = tmp_path / name
    if pixels:
        write_video(path, SCENE, codec=codec, pix_fmt=pixels)
    else:
        write_video(path, [], audio=tone(440, 2.4), audio_codec=codec)
    data = path.read_bytes()
    document, _ = decoded(path)
    assert document.verdict == "complete"
    path.write_bytes(data + bytes(500))
    document, _ = decoded(path)
    assert document.verdict == "complete", "what follows the end does no harm"
    path.write_bytes(data[: len(data) // 2 - 7])
    document, _ = decoded(path)
    assert document.verdict == "partial"
    assert "truncated" in _codes(document)


def test_half_a_photograph_is_not_a_whole_one(tmp_path: Path, decoded: Decode) -> None:
    path = tmp_path / "a.jpg"
    Image.fromarray(SCENE[0]).save(path)
    assert decoded(path)[0].verdict == "complete"
    path.write_bytes(path.read_bytes()[:-300])
    assert "truncated" in _codes(decoded(path)[0])


def test_what_a_demuxer_cannot_find_again_is_said(tmp_path: Path, decoded: Decode) -> None:
    path = write_video(
        tmp_path / "a.webm", SCENE, codec="libvpx-vp9", audio=tone(440, 1.6), audio_codec="libopus"
    )
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + len(data) // 10] = bytes(len(data) // 10)
    path.write_bytes(data)
    document, _ = decoded(path)
    assert document.verdict == "partial"
    assert "unread" in _codes(document)


def test_lost_packets_are_named_though_the_pictures_decode(tmp_path: Path, decoded: Decode) -> None:
    path = write_video(tmp_path / "a.ts", noise_free_scene(1, 100, (160, 96)), audio=tone(440, 4.0))
    data = path.read_bytes()
    packets = [data[at : at + 188] for at in range(0, len(data), 188)]
    assert decoded(path)[0].verdict == "complete"
    chance = random.Random(5)
    path.write_bytes(b"".join(p for i, p in enumerate(packets) if i < 10 or chance.random() > 0.05))
    document, _ = decoded(path)
    assert document.verdict == "partial"
    assert [p for p in document.problems if p.code == "damaged" and p.start_s is not None]


def test_a_last_packet_that_is_short_is_no_damage(tmp_path: Path, decoded: Decode) -> None:
    """As written to a pipe: the length is not known beforehand."""
    path = write_video(tmp_path / "a.wav", [], audio=tone(440, 1.0), audio_codec="pcm_s16le")
    data = bytearray(path.read_bytes())
    at = data.index(b"data") + 4
    data[4:8] = data[at : at + 4] = b"\xff" * 4
    path.write_bytes(data)
    document, _ = decoded(path)
    assert document.verdict == "complete"
    assert document.audio is not None
    assert document.audio.duration_s == pytest.approx(1.0)


@pytest.mark.parametrize("suffix", ["caf", "w64"])
def test_sizes_beyond_all_files_do_not_end_the_reader(
    suffix: str, tmp_path: Path, decoded: Decode
) -> None:
    path = write_video(tmp_path / f"a.{suffix}", [], audio=tone(440, 1.0), audio_codec="pcm_s16le")
    path.write_bytes(path.read_bytes() + b"Z" * 20_000)
    document, _ = decoded(path)
    assert document.audio is not None
    assert document.audio.duration_s == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_jpeg_in_tiff_is_refused_and_not_shown_black(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tiff"
    picture = Image.fromarray(SCENE[0]).convert(mode)
    picture.save(path, compression="tiff_lzw")
    assert probe(path).media.kind == "image"
    picture.save(path, compression="jpeg")
    with pytest.raises(UnsupportedCodecError, match="JPEG"):
        probe(path)


def test_raw_pictures_may_spell_anything(tmp_path: Path, decoded: Decode) -> None:
    header = b"YUV4MPEG2 W96 H64 F25:1 Ip A1:1 C420jpeg\n"
    text = (b"\nfile 'x.mp4'\n#EXTM3U\nv=0\nm=audio\n" * 400)[: 96 * 64 * 3 // 2]
    path = tmp_path / "a.y4m"
    path.write_bytes(header + b"".join(b"FRAME\n" + text for _ in range(5)))
    document, out = decoded(path)
    assert document.video is not None
    assert document.video.frames_decoded == 5
    assert len(np.load(out / "pts.npy")) == 6
    assert forbidden_text(text) is not None
