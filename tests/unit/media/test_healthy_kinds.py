"""Healthy files that a check for damage could take for damaged ones, and bounds on those checks."""

import os
import struct
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from av.audio.frame import AudioFrame
from av.video.frame import VideoFrame

from engines.contracts.media import SampleParams
from engines.media.clock import Epochs
from engines.media.ends import early_end
from engines.media.joins import Joins
from engines.media.photographs import first_picture_end
from engines.media.probe import probe
from engines.media.sample import decode
from engines.media.transport import scrambled_pids

_RATE = 48_000


def _write(path: Path, pictures_s: float, *sounds_s: float, codec: str = "pcm_s16le") -> Path:
    """Pictures, and sounds of these lengths, one stream each."""
    rng = np.random.default_rng(3)
    options = {"movflags": "faststart"} if path.suffix == ".mov" else {}
    with av.open(str(path), "w", options=options) as container:
        video = container.add_stream("mpeg4", rate=25)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        sounds = [container.add_stream(codec, rate=_RATE, layout="mono") for _ in sounds_s]
        for number in range(round(pictures_s * 25)):
            picture = rng.integers(0, 255, (48, 64, 3)).astype(np.uint8)
            frame = VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = number
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
        for stream, length_s in zip(sounds, sounds_s, strict=True):
            for at in range(0, round(length_s * _RATE), 960):
                heard = rng.integers(-999, 999, (1, 960)).astype(np.int16)
                block = AudioFrame.from_ndarray(heard, format="s16", layout="mono")
                block.sample_rate, block.pts = _RATE, at
                container.mux(stream.encode(block))
            container.mux(stream.encode(None))
    return path


def _codes(path: Path, out: Path) -> tuple[set[str], str]:
    document = decode(path, probe(path), SampleParams(threads=1), out)
    return {p.code for p in document.problems}, document.verdict


def test_a_longer_sound_that_was_not_chosen_is_not_unread(tmp_path: Path) -> None:
    path = _write(tmp_path / "two.mkv", 2, 2, 6)
    codes, verdict = _codes(path, tmp_path / "out")
    assert "unread" not in codes
    assert verdict == "complete"


def test_a_cut_that_takes_sound_alone_is_told(tmp_path: Path) -> None:
    path = _write(tmp_path / "cut.mov", 1, 4)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 40_000])
    codes, verdict = _codes(path, tmp_path / "out")
    assert "truncated" in codes
    assert verdict == "partial"


def test_what_lies_behind_a_photograph_is_said(tmp_path: Path) -> None:
    plain = cv2.imencode(".jpg", np.full((48, 64, 3), 90, dtype=np.uint8))[1].tobytes()
    exif = b"Exif\0\0II*\0\x08\0\0\0" + bytes(6)
    photograph = plain[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + plain[2:]
    path = tmp_path / "photograph.jpg"
    path.write_bytes(photograph + plain)
    document = decode(path, probe(path), SampleParams(threads=1), tmp_path / "out")
    assert document.video is not None
    assert document.video.frames_decoded == 1
    (said,) = (p.message for p in document.problems if p.code == "behind_picture")
    assert said.startswith(f"{len(plain)} bytes")
    assert document.verdict == "complete"


class _Packet:
    """What ``Joins`` asks of a packet."""

    size, is_keyframe, duration = 1, False, 1

    def __init__(self, stream: int, time: int) -> None:
        self.stream_index, self.dts, self.pts = stream, time, time


class _Stream:
    def __init__(self, index: int) -> None:
        self.index, self.time_base = index, 1 / 25


def _arranged(
    monkeypatch: pytest.MonkeyPatch, packets: list[_Packet]
) -> tuple[list[_Packet], Epochs]:
    monkeypatch.setattr("engines.media.joins.time_base_of", lambda stream: stream.time_base)
    epochs = Epochs()
    joins = Joins([_Stream(0), _Stream(1)], epochs)  # type: ignore[list-item]
    arranged = list(joins.arrange(packets))  # type: ignore[arg-type]
    return [*arranged, *joins.flush()], epochs  # type: ignore[list-item]


def test_a_stream_far_ahead_of_the_other_makes_one_part_and_not_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = [_Packet(s, t) for t in range(250) for s in (0, 1)]
    ahead = [_Packet(1, t) for t in range(150)]
    behind = [_Packet(0, t) for t in range(100, 250)]
    last = [_Packet(s, t) for t in range(50) for s in (0, 1)]
    packets = [*first, *ahead, *behind, *last]
    arranged, epochs = _arranged(monkeypatch, packets)
    assert len(arranged) == len(packets)
    assert epochs.part_ends_s == pytest.approx([10.0, 10.0])


def test_held_packets_come_out_where_no_more_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    packets = [*(_Packet(s, t) for t in range(50) for s in (0, 1)), _Packet(1, 0), _Packet(1, 1)]
    assert _arranged(monkeypatch, packets)[0] == packets


def _transport(path: Path, *, flags: int, control: int, payload: bytes) -> set[int]:
    packet = bytes([0x47, 0x40 | flags | 1, 0x00, 0x10 | control]) + payload.ljust(184, b"\x55")
    path.write_bytes(packet * 40)
    with path.open("rb") as file:
        most, some = scrambled_pids(file.fileno(), path.stat().st_size)
    return most | some


def test_damaged_arrivals_and_units_without_flags_are_not_scrambled(tmp_path: Path) -> None:
    path, unit = tmp_path / "a.ts", b"\x00\x00\x01"
    assert _transport(path, flags=0, control=0xC0, payload=b"\x99\x98\x97")
    assert not _transport(path, flags=0x80, control=0xC0, payload=b"\x99\x98\x97")
    assert _transport(path, flags=0, control=0, payload=unit + b"\xe0\0\0\xb5\0\0")
    assert not _transport(path, flags=0, control=0, payload=unit + b"\xbf\0\0\xb5\0\0")


@pytest.mark.parametrize(
    "data",
    [
        b"RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0" + b"\xff" * 8 + bytes(64),
        b"FORM" + struct.pack(">I", 93) + b"AIFF" + bytes(88),
        bytes.fromhex("3026b2758e66cf11")
        + bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
        + bytes(24) + b"\xff" * 8 + bytes(40) + b"\x01" + bytes(32),
    ],
    ids=["rf64 of unknown length", "aiff without its pad", "asf that was broadcast"],
)  # fmt: skip
def test_a_length_that_is_void_is_no_early_end(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert early_end(file.fileno(), len(data)) is None


@pytest.mark.parametrize(
    ("head", "part"),
    [(b"\xff\xd8", b"\xff\xe0\0\x02"), (b"caff\0\x01\0\0", struct.pack(">4sq", b"free", 0))],
    ids=["jpeg", "caf"],
)
def test_millions_of_empty_parts_are_not_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: bytes, part: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(head + part * 100_000)
    reads, pread = 0, os.pread

    def counted(descriptor: int, length: int, offset: int) -> bytes:
        nonlocal reads
        reads += 1
        return pread(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", counted)
    with path.open("rb") as file:
        early_end(file.fileno(), path.stat().st_size)
        first_picture_end(file.fileno(), path.stat().st_size)
    assert reads < 3000
