"""Kinds of files beyond the usual ones: each gives the frames, times and sound that were put in."""

import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import hostile
import numpy as np
import pytest
from made_media import noise_free_scene, tone, write_video
from PIL import Image, ImageOps

from engines.contracts.media import SampleDocument
from engines.media.probe import probe
from engines.media.samples import SampleArchive

Decode = Callable[..., tuple[SampleDocument, Path]]

PICTURES = {
    "ten bits": ("a.mp4", "libx265", "yuv420p10le", (96, 64)),
    "4:4:4 of odd size": ("b.mp4", "libx264", "yuv444p", (97, 65)),
    "gray": ("c.mkv", "ffv1", "gray", (96, 64)),
    "sixteen bits gray": ("d.mkv", "ffv1", "gray16le", (96, 64)),
    "alpha": ("e.mov", "qtrle", "argb", (96, 64)),
    "alpha, ten bits": ("f.mov", "prores_ks", "yuva444p10le", (96, 64)),
    "raw": ("g.avi", "rawvideo", "rgb24", (96, 64)),
    "packed": ("h.avi", "rawvideo", "yuyv422", (96, 64)),
    "palette": ("i.gif", "gif", "rgb8", (96, 64)),
    "animated png": ("j.apng", "apng", "rgb24", (96, 64)),
    "one pixel": ("k.mkv", "ffv1", "yuv444p", (1, 1)),
    "very wide": ("l.mkv", "ffv1", "yuv444p", (3001, 5)),
    "windows media": ("m.wmv", "wmv2", "yuv420p", (96, 64)),
    "flash": ("n.flv", "flv", "yuv420p", (96, 64)),
    "program stream": ("o.mpg", "mpeg1video", "yuv420p", (96, 64)),
    "dvd": ("p.vob", "mpeg2video", "yuv420p", (96, 64)),
    "vp8": ("q.webm", "libvpx", "yuv420p", (96, 64)),
    "bare h264": ("r.h264", "libx264", "yuv420p", (96, 64)),
    "bare hevc": ("s.hevc", "libx265", "yuv420p", (96, 64)),
    "bare mpeg-2": ("t.m2v", "mpeg2video", "yuv420p", (96, 64)),
    "bare jpeg": ("u.mjpeg", "mjpeg", "yuv420p", (96, 64)),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_every_picture_at_its_time(kind: str, tmp_path: Path, decoded: Decode) -> None:
    name, codec, pixel_format, size = PICTURES[kind]
    path = write_video(
        tmp_path / name, noise_free_scene(1, 12, size), codec=codec, pix_fmt=pixel_format
    )
    document, out = decoded(path)
    assert document.verdict == "complete"
    assert document.video is not None
    assert (document.video.width, document.video.height) == size
    assert document.video.frames_decoded == 12
    assert document.video.variable_rate is False
    times = np.load(out / "pts.npy") * document.time_base_num / document.time_base_den
    assert np.abs(times - times[0] - np.arange(13) / 25).max() < 0.0015


SOUNDS = {
    "a.wav": "pcm_s24le",
    "b.wav": "adpcm_ms",
    "c.au": "pcm_mulaw",
    "d.aiff": "pcm_s16be",
    "e.flac": "flac",
    "f.m4a": "alac",
    "g.mp2": "mp2",
    "h.mp3": "libmp3lame",
    "i.aac": "aac",
    "j.wv": "wavpack",
    "k.caf": "pcm_s16le",
    "l.w64": "pcm_s16le",
    "m.mka": "aac",
}


@pytest.mark.parametrize("name", SOUNDS)
def test_all_of_the_sound(name: str, tmp_path: Path, decoded: Decode) -> None:
    path = write_video(tmp_path / name, [], audio=tone(440, 0.8), audio_codec=SOUNDS[name])
    document, out = decoded(path)
    assert document.verdict == "complete"
    assert document.video is None
    assert document.audio is not None
    # Coders work in blocks, and some have no way to say what they padded.
    assert 0.8 <= (document.audio.duration_s or 0) < 0.93
    sound = np.load(out / "audio.npy")[0]
    assert np.abs(sound[2000:10_000].astype(np.float64)).mean() > 1000


def test_a_turn_that_is_no_quarter_is_said_and_not_applied(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", noise_free_scene(1, 5, (96, 64)), rotation_deg=90)
    data = bytearray(path.read_bytes())
    part = round(65536 * 0.5**0.5)
    quarter = struct.pack(">9i", 0, 65536, 0, -65536, 0, 0, 64 << 16, 0, 1 << 30)
    assert data.count(quarter[:20]) == 1, "the muxer writes one quarter turn"
    at = data.find(quarter[:20])
    data[at : at + 36] = struct.pack(">9i", part, part, 0, -part, part, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    found = probe(path)
    assert found.video is not None
    assert (found.video.rotation_deg, found.video.width) == (0, 96)
    assert [p.code for p in found.problems] == ["irregular_orientation"]


def test_an_encrypted_track_beside_a_clear_one_is_left_out(tmp_path: Path, decoded: Decode) -> None:
    path = hostile.small_mp4(tmp_path)
    data = path.read_bytes()
    assert data.count(b"mp4a") >= 1
    path.write_bytes(data.replace(b"mp4a", b"enca"))
    document, _ = decoded(path)
    assert document.verdict == "partial"
    assert document.audio is None
    assert document.video is not None
    assert "encrypted_track" in {p.code for p in document.problems}


@pytest.mark.parametrize("times", [2, 3])
def test_joined_transport_streams_go_on(times: int, tmp_path: Path, decoded: Decode) -> None:
    one = write_video(
        tmp_path / "one.ts", noise_free_scene(1, 20, (96, 64)), audio=tone(440, 0.8)
    ).read_bytes()
    path = tmp_path / "all.ts"
    path.write_bytes(one * times)
    document, out = decoded(path)
    assert document.video is not None
    assert document.video.frames_decoded == 20 * times
    assert (np.diff(np.load(out / "pts.npy")) > 0).all()
    assert document.audio is not None
    assert abs((document.audio.duration_s or 0) - 0.9 * times) < 0.05 * times


def test_another_picture_size_in_the_middle(tmp_path: Path, decoded: Decode) -> None:
    small = write_video(tmp_path / "a.h264", noise_free_scene(1, 10, (96, 64))).read_bytes()
    large = write_video(tmp_path / "b.h264", noise_free_scene(2, 10, (160, 120))).read_bytes()
    path = tmp_path / "both.h264"
    path.write_bytes(small + large)
    document, _ = decoded(path, step_s=0.04, fixed=True)
    assert document.video is not None
    assert document.video.frames_decoded == 20
    assert len(document.samples) == 20


def test_a_transport_stream_from_its_middle(tmp_path: Path, decoded: Decode) -> None:
    path = write_video(tmp_path / "a.ts", noise_free_scene(1, 20, (96, 64)), audio=tone(440, 0.8))
    path.write_bytes(path.read_bytes()[100:])
    document, _ = decoded(path)
    assert document.video is not None
    assert document.video.frames_decoded == 20


def test_a_hole_of_minutes_stays_a_hole(tmp_path: Path, decoded: Decode) -> None:
    pts = [*range(0, 400, 40), *range(600_000, 600_400, 40)]
    path = write_video(
        tmp_path / "a.mkv", noise_free_scene(1, 20, (96, 64)), 25, pts=pts,
        time_base=Fraction(1, 1000),
    )  # fmt: skip
    document, out = decoded(path)
    assert np.load(out / "pts.npy")[:-1].tolist() == pts
    assert document.video is not None
    assert document.video.variable_rate


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_photographs_stand_upright(
    suffix: str, orientation: int, tmp_path: Path, decoded: Decode
) -> None:
    """All eight EXIF orientations, as another library turns and mirrors them."""
    path = tmp_path / f"a.{suffix}"
    exif = Image.Exif()
    exif[0x112] = orientation
    Image.fromarray(noise_free_scene(3, 1, (96, 64))[0]).save(path, exif=exif)
    with Image.open(path) as stored:
        upright = np.asarray(ImageOps.exif_transpose(stored).convert("RGB"), dtype=np.float64)
    document, out = decoded(path, long_edge=96)
    with SampleArchive(out / "samples.zip") as archive:
        shown = archive.read(archive.names[0])
    assert shown.shape == upright.shape
    assert np.abs(shown - upright).mean() < 9
    assert document.video is not None
    assert (document.video.width, document.video.height) == shown.shape[1::-1]


@pytest.mark.parametrize("behind", ["map", "film"])
def test_what_a_camera_puts_behind_its_picture_is_no_frame(
    behind: str, tmp_path: Path, decoded: Decode
) -> None:
    """Gain maps, depth maps, the second eye, short films: the file stays one picture."""
    path, other = tmp_path / "a.jpg", tmp_path / "b.jpg"
    exif = Image.Exif()
    exif[271] = "maker"
    Image.fromarray(noise_free_scene(1, 1, (96, 64))[0]).save(path, exif=exif)
    Image.new("L", (48, 32), 9).save(other)
    appended = other if behind == "map" else hostile.small_mp4(tmp_path)
    path.write_bytes(path.read_bytes() + appended.read_bytes())
    document, _ = decoded(path)
    assert document.media.kind == "image"
    assert document.verdict == "complete"
    assert document.video is not None
    assert (document.video.frames_decoded, document.video.width) == (1, 96)


def _program(path: Path, size: tuple[int, int], number: int, pitch_hz: float) -> list[bytes]:
    """Packets of a transport stream with one program, without its table of programs."""
    first_pid = str(0x100 * number)
    write_video(
        path,
        noise_free_scene(number, 25, size),
        audio=tone(pitch_hz, 1.0),
        container_options={
            "mpegts_service_id": str(number),
            "mpegts_pmt_start_pid": str(0x1000 + number),
            "mpegts_start_pid": first_pid,
        },
    )
    data = path.read_bytes()
    packets = [data[at : at + 188] for at in range(0, len(data), 188)]
    return [p for p in packets if int.from_bytes(p[1:3]) & 0x1FFF not in (0, 17)]


def _program_table(numbers: tuple[int, ...]) -> bytes:
    """The packet that names the programs (ISO/IEC 13818-1, 2.4.4.3), with its CRC."""
    body = b"".join(struct.pack(">HH", n, 0xE000 | (0x1000 + n)) for n in numbers)
    section = b"\0\xb0" + bytes([len(body) + 9]) + b"\0\1\xc1\0\0" + body
    crc = 0xFFFFFFFF
    for byte in section:
        crc ^= byte << 24
        for _ in range(8):
            crc = ((crc << 1) ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    packet = b"\x47\x40\0\x10\0" + section + struct.pack(">I", crc)
    return packet.ljust(188, b"\xff")


def test_the_sound_belongs_to_the_program_of_the_picture(tmp_path: Path) -> None:
    """Two programs in one transport stream: the larger picture is that of the second."""
    first = _program(tmp_path / "1.ts", (64, 48), 1, 400)
    second = _program(tmp_path / "2.ts", (128, 96), 2, 2000)
    path = tmp_path / "both.ts"
    path.write_bytes(b"".join([_program_table((1, 2)), *first, *second]))
    found = probe(path)
    assert found.video is not None
    assert found.audio is not None
    assert found.num_streams == 4
    assert (found.video.width, found.video.height) == (128, 96)
    assert found.audio.stream_index == found.video.stream_index + 1
