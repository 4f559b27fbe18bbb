"""The hostile inputs are what they claim to be: a careless reader falls for them."""

import struct
from collections.abc import Callable
from pathlib import Path

import av
import hostile
import pytest
from PIL import Image


def count_frames(path: Path) -> tuple[int, int]:
    """Decoded pictures, and packets that failed."""
    frames = failed = 0
    with av.open(str(path)) as container:
        for packet in container.demux(video=0):
            try:
                frames += len(packet.decode())
            except av.error.InvalidDataError:
                failed += 1
    return frames, failed


@pytest.mark.parametrize("name", sorted(hostile.REFUSED))
def test_makers_write_one_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = hostile.REFUSED[name](tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    first = path.read_bytes()
    assert hostile.REFUSED[name](tmp_path).read_bytes() == first


@pytest.mark.parametrize("name", ["zero_bytes", "random_bytes", "ftyp_only", "without_index"])
def test_no_reader_finds_media_in_these(tmp_path: Path, name: str) -> None:
    path = hostile.REFUSED[name](tmp_path)
    with pytest.raises((av.error.FFmpegError, IndexError)):
        count_frames(path)


@pytest.mark.parametrize(
    ("maker", "edge", "max_bytes"),
    [(hostile.gif_bomb, 65_535, 64), (hostile.png_bomb, 20_000, 250_000)],
)
def test_picture_bombs_claim_far_more_than_they_weigh(
    tmp_path: Path,
    maker: Callable[[Path], Path],
    edge: int,
    max_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    path = maker(tmp_path)
    assert path.stat().st_size < max_bytes
    # Pillow reads the header only: an oracle apart from the code that wrote it.
    with Image.open(path) as picture:
        assert picture.size == (edge, edge)


@pytest.mark.parametrize(
    ("maker", "secret"), [(hostile.concat_script, "secret.mp4"), (hostile.hls_m3u8, "secret.ts")]
)
def test_a_careless_reader_plays_the_file_that_a_playlist_names(
    tmp_path: Path, maker: Callable[[Path], Path], secret: str
) -> None:
    path = maker(tmp_path)
    with pytest.raises(av.error.FFmpegError):
        count_frames(path)
    hostile.small_mp4(tmp_path, secret)
    assert count_frames(path) == (50, 0)


def test_session_description_makes_a_reader_turn_to_the_network(tmp_path: Path) -> None:
    path = hostile.session_description(tmp_path)
    level = av.logging.get_level()
    av.logging.set_level(av.logging.ERROR)
    try:
        with av.logging.Capture() as messages, pytest.raises(av.error.InvalidDataError):
            av.open(str(path), options={"protocol_whitelist": "file"})
    finally:
        av.logging.set_level(level)
    # It was taken for SDP, and only the list of protocols kept FFmpeg from opening a port.
    assert any("'rtp' not on whitelist" in text for _, _, text in messages)


def test_truncated_gives_its_first_frames(tmp_path: Path) -> None:
    frames, _ = count_frames(hostile.truncated(tmp_path))
    assert 10 < frames < 50
    fewer, _ = count_frames(hostile.truncated(tmp_path, keep=0.3))
    assert 0 < fewer < frames


def test_damage_is_only_in_the_second_half_and_does_hurt(tmp_path: Path) -> None:
    whole = hostile.small_mp4(tmp_path).read_bytes()
    path = hostile.damaged(tmp_path)
    harmed = path.read_bytes()
    differing = [i for i, (a, b) in enumerate(zip(whole, harmed, strict=True)) if a != b]
    assert 30 < len(differing) <= 60
    assert min(differing) > len(whole) * 0.3
    frames, failed = count_frames(path)
    assert failed > 0
    assert 20 <= frames < 50


def test_trailing_garbage_and_wrong_suffix_decode_in_full(tmp_path: Path) -> None:
    assert count_frames(hostile.trailing_garbage(tmp_path)) == (50, 0)
    path = hostile.wrong_suffix(tmp_path)
    assert path.suffix == ".avi"
    assert count_frames(path) == (50, 0)
    with av.open(str(path)) as container:
        assert "matroska" in container.format.name


@pytest.mark.parametrize("name", hostile.ODD_NAMES)
def test_odd_names_hold_a_good_clip(tmp_path: Path, name: str) -> None:
    path = hostile.odd_name(tmp_path, name)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.stat().st_size > 1000


def test_claimed_hours_are_only_claims(tmp_path: Path) -> None:
    path = hostile.claims_hours(tmp_path)
    with av.open(str(path)) as container:
        assert container.duration / av.time_base == 100 * 3600
    assert count_frames(path) == (50, 0)


def test_claimed_hours_stand_in_every_header_of_an_mp4(tmp_path: Path) -> None:
    path = hostile.claims_hours_mp4(tmp_path)
    data = path.read_bytes()
    at = data.index(b"mvhd")
    scale, duration = struct.unpack_from(">II", data, at + 16)
    assert duration / scale == 20 * 3600
    assert count_frames(path) == (50, 0)


def test_external_reference_still_decodes_by_itself_and_names_the_url(tmp_path: Path) -> None:
    path = hostile.external_reference(tmp_path)
    assert path.read_bytes().count(b"http://127.0.0.1:9/secret.mp4") == 2
    assert count_frames(path) == (50, 0)


def test_cover_art_is_an_attached_picture(tmp_path: Path) -> None:
    with av.open(str(hostile.cover_art_m4a(tmp_path))) as container:
        picture = container.streams.video[0]
        assert picture.disposition & av.stream.Disposition.attached_pic
        assert container.streams.audio[0].duration * container.streams.audio[0].time_base > 1.9
