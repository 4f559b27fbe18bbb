"""Sizes, tone mapping and the archive of samples."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from engines.errors import EngineError, UnsupportedCodecError
from engines.media.orientation import Orientation
from engines.media.pictures import (
    PictureMaker,
    encode_jpeg,
    has_known_matrix,
    sharpness_of,
    target_size,
)
from engines.media.samples import SampleArchive
from engines.media.sound import save_npy
from engines.media.tonemap import ToneMap


@pytest.mark.parametrize(
    ("size", "aspect", "edge", "wanted"),
    [
        ((640, 360), Fraction(1), 1280, (640, 360)),
        ((3840, 2160), Fraction(1), 1280, (1280, 720)),
        ((720, 576), Fraction(16, 15), 1280, (768, 576)),
        ((1, 1), Fraction(1), 1280, (1, 1)),
        ((4096, 16), Fraction(1), 1280, (1280, 5)),
        ((2, 16_000), Fraction(1), 1280, (1, 1280)),
    ],
)
def test_target_sizes(
    size: tuple[int, int], aspect: Fraction, edge: int, wanted: tuple[int, int]
) -> None:
    assert target_size(*size, aspect, edge) == wanted


@pytest.mark.parametrize("hdr", ["hdr10", "hlg", "dolby_vision"])
def test_tone_mapping_keeps_grey_grey_and_order(hdr: str) -> None:
    ramp = np.linspace(0, 65_535, 256).astype(np.uint16)
    out = ToneMap(hdr).apply(np.repeat(ramp[None, :, None], 3, axis=2))
    assert out.dtype == np.uint8
    assert int(np.abs(out[..., 0].astype(int) - out[..., 1]).max()) <= 2
    steps = np.diff(out[0, :, 1].astype(int))
    assert (steps >= 0).all()
    assert out[0, 0].max() == 0
    assert out[0, -1].min() == 255


def test_reference_white_is_bright_but_not_burnt_out() -> None:
    """203 cd/m2 is code 0.581 of PQ (ITU-R BT.2408)."""
    white = np.full((1, 1, 3), round(0.581 * 65_535), np.uint16)
    assert 150 <= int(ToneMap("hdr10").apply(white).mean()) <= 230


def test_sharpness_falls_with_blur() -> None:
    rng = np.random.default_rng(1)
    sharp = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    soft = (sharp.astype(int) + np.roll(sharp, 1, 0) + np.roll(sharp, 1, 1)) // 3
    assert sharpness_of(sharp) > 2 * sharpness_of(soft.astype(np.uint8))


def test_the_archive_says_what_is_wrong(tmp_path: Path) -> None:
    from zipfile import ZipFile

    path = tmp_path / "s.zip"
    with ZipFile(path, "w") as out:
        out.writestr("a.jpg", encode_jpeg(np.full((8, 8, 3), (200, 40, 10), np.uint8)))
        out.writestr("b.jpg", b"no picture")
    with SampleArchive(path) as archive:
        assert archive.names == ("a.jpg", "b.jpg")
        assert archive.read("a.jpg").mean(axis=(0, 1)) == pytest.approx((200, 40, 10), abs=4)
        with pytest.raises(EngineError, match="not a picture"):
            archive.read("b.jpg")
        with pytest.raises(EngineError, match="no sample"):
            archive.read("c.jpg")


@pytest.mark.parametrize("channels", [1, 2])
def test_sound_is_stored_by_channel(channels: int, tmp_path: Path) -> None:
    sound = np.arange(12, dtype=np.int16).reshape(-1, channels)
    raw = tmp_path / "raw"
    raw.write_bytes(sound.tobytes())
    save_npy(raw, tmp_path / "a.npy", channels)
    assert np.array_equal(np.load(tmp_path / "a.npy"), sound.T)


@pytest.mark.parametrize("matrix", [3, 8, 10, 12, 14, 15, 23])
def test_colours_of_a_matrix_that_nobody_converts_are_read_as_unspecified(matrix: int) -> None:
    grey = np.full((24, 32, 3), 128, np.uint8)
    frame = av.VideoFrame.from_ndarray(grey, format="rgb24").reformat(format="yuv420p")
    frame.colorspace = matrix
    assert not has_known_matrix(frame)
    maker = PictureMaker(Orientation(), Fraction(1), hdr=None, long_edge=32)
    assert np.abs(maker.picture(frame).astype(int) - 128).max() < 4
    assert maker.thumb(frame).shape == (27, 48, 4)


def test_pixels_that_the_scaler_cannot_read_are_refused_by_name() -> None:
    frame = av.VideoFrame(32, 24, "gray32le")
    maker = PictureMaker(Orientation(), Fraction(1), hdr=None, long_edge=32)
    with pytest.raises(UnsupportedCodecError, match="gray32le"):
        maker.picture(frame)
