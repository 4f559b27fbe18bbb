"""What may not be opened is refused before anything else happens, each with its own reason."""

import os
import socket
from pathlib import Path

import av
import hostile
import numpy as np
import pytest
from made_media import noise_free_scene, tone, write_video

from engines.contracts.media import SampleParams
from engines.errors import (
    EmptyInputError,
    EncryptedError,
    ForbiddenFormatError,
    LimitExceededError,
    NothingDecodedError,
    NotMediaError,
    RefusedError,
    UnsupportedCodecError,
    UsageError,
)
from engines.media.guard import forbidden_text
from engines.media.limits import MediaLimits
from engines.media.probe import probe
from engines.media.sample import decode

KINDS: dict[str, type[RefusedError]] = {
    "zero_bytes": EmptyInputError,
    "text_renamed": NotMediaError,
    "random_bytes": NotMediaError,
    "ftyp_only": NothingDecodedError,
    "hls_playlist": ForbiddenFormatError,
    "hls_m3u8": ForbiddenFormatError,
    "concat_script": ForbiddenFormatError,
    "session_description": ForbiddenFormatError,
    "dash_manifest": ForbiddenFormatError,
    "without_index": NothingDecodedError,
    "encrypted": EncryptedError,
    "animated_webp": UnsupportedCodecError,
}


@pytest.mark.parametrize("name", sorted(hostile.REFUSED))
def test_hostile_files_are_refused_with_their_reason(name: str, tmp_path: Path) -> None:
    path = hostile.REFUSED[name](tmp_path)
    with pytest.raises(RefusedError) as caught:
        decode(path, probe(path), SampleParams(), tmp_path / "out")
    assert isinstance(caught.value, KINDS.get(name, RefusedError))
    assert "\n" not in str(caught.value)


def test_the_truncated_upload_is_called_truncated(tmp_path: Path) -> None:
    with pytest.raises(NothingDecodedError, match="truncated"):
        probe(hostile.without_index(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
        b"\xef\xbb\xbf  \n#EXTM3U\n",
        b"ffconcat version 1.0\nfile x.mp4\n",
        b"v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
        b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"/>',
        b"http://127.0.0.1:9/a.mp4\n",
        b"[playlist]\nFile1=x.mp4\n",
        "#EXTM3U\n".encode("utf-16"),
    ],
)
def test_text_that_opens_something_else_is_forbidden(text: bytes) -> None:
    assert forbidden_text(text) is not None


def test_media_bytes_are_not_forbidden(tmp_path: Path) -> None:
    head = hostile.small_mp4(tmp_path).read_bytes()[:4096]
    assert forbidden_text(head) is None
    # A playlist inside the data of a real file is no playlist.
    assert forbidden_text(head[:32] + b"#EXTM3U\n" + head[32:]) is None


@pytest.mark.parametrize("kind", ["directory", "fifo", "socket", "missing"])
def test_only_regular_files_are_opened(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "it"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.relpath(path))
        listener.close()
    expected = UsageError if kind in ("missing", "socket") else NotMediaError
    with pytest.raises(expected):
        probe(path)


def test_bounds_hold_before_memory_is_taken(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", noise_free_scene(1, 3, (320, 240)))
    with pytest.raises(LimitExceededError, match="320 x 240"):
        probe(path, MediaLimits(max_side=319))
    with pytest.raises(LimitExceededError, match="pixels"):
        probe(path, MediaLimits(max_pixels=320 * 240 - 1))
    with pytest.raises(LimitExceededError, match="nested"):
        probe(path, MediaLimits(max_box_depth=2))


def test_a_codec_outside_the_list_is_named(tmp_path: Path) -> None:
    path = write_video(
        tmp_path / "a.wav", [], audio=tone(440, 0.3), audio_codec="adpcm_yamaha", audio_rate=22_050
    )
    with pytest.raises(UnsupportedCodecError, match="adpcm_yamaha"):
        probe(path)


def test_output_is_bounded(tmp_path: Path) -> None:
    path = hostile.small_mp4(tmp_path)
    with pytest.raises(LimitExceededError, match="write more than"):
        decode(
            path,
            probe(path),
            SampleParams(),
            tmp_path / "out",
            MediaLimits(max_output_bytes=50_000),
        )


def test_too_many_streams_are_refused_and_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "many.mkv"
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("pcm_s16le", rate=8000, layout="mono") for _ in range(70)]
        for stream in streams:
            silence = np.zeros((1, 800), np.int16)
            frame = av.AudioFrame.from_ndarray(silence, format="s16", layout="mono")
            frame.sample_rate = 8000
            container.mux(stream.encode(frame))
    with pytest.raises(LimitExceededError, match="streams"):
        probe(path)


def test_a_picture_that_grows_beyond_the_bound_is_refused(tmp_path: Path) -> None:
    parts = [
        write_video(tmp_path / f"{w}.mjpeg", noise_free_scene(1, 3, (w, 16)), codec="mjpeg")
        for w in (64, 320)
    ]
    path = tmp_path / "grows.mjpeg"
    path.write_bytes(b"".join(p.read_bytes() for p in parts))
    limits = MediaLimits(max_side=300)
    with pytest.raises(LimitExceededError, match="320 x 16"):
        decode(path, probe(path, limits), SampleParams(), tmp_path / "out", limits)
