"""The maker of test media is itself held to what it promises, by decoding what it wrote."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import pytest
from made_media import (
    click_train,
    cut_sequence,
    draw_text,
    noise_free_scene,
    silence,
    text_clip,
    tone,
    vfr_clip,
    write_video,
)

SIZE = (160, 120)
N = 30
CLICK_S = 0.5


def decode_times(path: Path) -> list[Fraction]:
    with av.open(str(path)) as container:
        return [frame.pts * frame.time_base for frame in container.decode(video=0)]


def decode_pictures(path: Path) -> list[npt.NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def first_loud_s(path: Path, threshold: float = 0.3) -> float:
    """Time on the container's clock of the first sample above the threshold."""
    resampler = av.AudioResampler(format="flt", layout="mono")
    with av.open(str(path)) as container:
        for frame in container.decode(audio=0):
            for part in resampler.resample(frame):
                loud = np.flatnonzero(np.abs(part.to_ndarray()[0]) > threshold)
                if loud.size:
                    return float(part.time) + float(loud[0]) / int(part.sample_rate)
    pytest.fail(f"no loud sample in {path.name}")


@pytest.fixture(scope="module")
def pictures() -> list[npt.NDArray[np.uint8]]:
    return noise_free_scene(1, N, SIZE)


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "audio_codec"),
    [
        ("a.mp4", "libx264", "yuv420p", "aac"),
        ("a.mov", "libx264", "yuv420p", "pcm_s16le"),
        ("ten_bit.mp4", "libx264", "yuv420p10le", "aac"),
        ("a.mkv", "libx264", "yuv444p", "flac"),
        ("a.webm", "libvpx-vp9", "yuv420p", "libopus"),
        ("a.avi", "mjpeg", "yuvj420p", "pcm_u8"),
        ("b.avi", "mpeg4", "yuv420p", "pcm_s16le"),
        ("lossless.mkv", "ffv1", "bgr0", "flac"),
    ],
)
def test_every_frame_and_the_sound_come_back_on_time(
    tmp_path: Path,
    pictures: list[npt.NDArray[np.uint8]],
    name: str,
    codec: str,
    pix_fmt: str,
    audio_codec: str,
) -> None:
    path = write_video(
        tmp_path / name,
        pictures,
        25,
        codec=codec,
        pix_fmt=pix_fmt,
        audio=click_train([CLICK_S], 1.2),
        audio_codec=audio_codec,
    )
    times = decode_times(path)
    assert times == [Fraction(i, 25) for i in range(N)]
    assert first_loud_s(path) == pytest.approx(CLICK_S, abs=0.002)
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.name in {codec, "h264", "vp9"}


@pytest.mark.parametrize(
    ("name", "codec", "audio_codec"),
    [("a.mpg", "mpeg2video", "mp2"), ("a.ts", "libx264", "aac")],
)
def test_program_streams_shift_picture_and_sound_together(
    tmp_path: Path,
    pictures: list[npt.NDArray[np.uint8]],
    name: str,
    codec: str,
    audio_codec: str,
) -> None:
    path = write_video(
        tmp_path / name,
        pictures,
        codec=codec,
        audio=click_train([CLICK_S], 1.2),
        audio_codec=audio_codec,
    )
    times = decode_times(path)
    assert len(times) == N
    # The MP2 encoder's own delay (481 samples of 16 kHz) is not compensated in MPEG streams.
    assert first_loud_s(path) - float(times[0]) == pytest.approx(CLICK_S, abs=0.035)


def test_lossless_codec_keeps_every_pixel(
    tmp_path: Path, pictures: list[npt.NDArray[np.uint8]]
) -> None:
    path = write_video(tmp_path / "l.mkv", pictures, codec="ffv1", pix_fmt="bgr0")
    assert np.array_equal(np.stack(decode_pictures(path)), np.stack(pictures))


@pytest.mark.parametrize("codec", ["libx264", "mjpeg"])
def test_colours_survive(tmp_path: Path, codec: str) -> None:
    red = np.zeros((120, 160, 3), np.uint8)
    red[..., 0] = 220
    suffix = ".avi" if codec == "mjpeg" else ".mp4"
    path = write_video(tmp_path / f"red{suffix}", [red] * 3, codec=codec)
    assert np.abs(decode_pictures(path)[1].astype(int) - red).max() <= 6


def test_open_gop_with_b_frames_reorders_but_loses_nothing(
    tmp_path: Path, pictures: list[npt.NDArray[np.uint8]]
) -> None:
    path = write_video(
        tmp_path / "open.mp4",
        pictures,
        options={"bf": "3", "g": "10", "b_strategy": "0", "x264-params": "open-gop=1:scenecut=0"},
    )
    assert decode_times(path) == [Fraction(i, 25) for i in range(N)]
    with av.open(str(path)) as container:
        packets = [p for p in container.demux(video=0) if p.pts is not None]
    key_times = [p.pts for p in packets if p.is_keyframe]
    assert len(key_times) == 3
    # Open GOP: some picture is sent after a key picture and shown before it.
    seen_key = -1
    leading = 0
    for packet in packets:
        seen_key = packet.pts if packet.is_keyframe else seen_key
        leading += packet.pts < seen_key
    assert leading > 0


def test_variable_frame_rate_is_exact_in_mp4_and_rounded_in_matroska(tmp_path: Path) -> None:
    exact, wanted = vfr_clip(tmp_path / "v.mp4")
    assert [float(t) for t in decode_times(exact)] == wanted
    rounded, _ = vfr_clip(tmp_path / "v.mkv")
    assert [float(t) for t in decode_times(rounded)] == pytest.approx(wanted, abs=0.0006)
    gaps = np.diff(wanted)
    assert gaps.min() == pytest.approx(1 / 60)
    assert gaps.max() == pytest.approx(2.0)


def test_last_frame_lasts_one_nominal_frame(
    tmp_path: Path, pictures: list[npt.NDArray[np.uint8]]
) -> None:
    path = write_video(tmp_path / "n.mp4", pictures, Fraction(30000, 1001))
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.duration * stream.time_base == N * Fraction(1001, 30000)


@pytest.mark.parametrize("start_s", [0.0, 1.5, 4.087])
@pytest.mark.parametrize("name", ["late.mp4", "late.mkv"])
def test_sound_starts_where_asked(
    tmp_path: Path, pictures: list[npt.NDArray[np.uint8]], name: str, start_s: float
) -> None:
    path = write_video(
        tmp_path / name, pictures, audio=click_train([0.25], 1.0), audio_start_s=start_s
    )
    assert decode_times(path)[0] == 0
    assert first_loud_s(path) == pytest.approx(start_s + 0.25, abs=0.002)


def test_sound_before_zero_is_cut_off_by_the_edit_list(
    tmp_path: Path, pictures: list[npt.NDArray[np.uint8]]
) -> None:
    path = write_video(
        tmp_path / "early.mp4", pictures, audio=click_train([0.5], 1.0), audio_start_s=-0.25
    )
    assert first_loud_s(path) == pytest.approx(0.25, abs=0.002)


@pytest.mark.parametrize("rotation_deg", [0, 90, 180, 270])
def test_rotation_is_stored_and_pictures_stay_as_coded(
    tmp_path: Path, pictures: list[npt.NDArray[np.uint8]], rotation_deg: int
) -> None:
    path = write_video(tmp_path / "r.mp4", pictures[:3], rotation_deg=rotation_deg)
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
    assert frame.rotation % 360 == -rotation_deg % 360
    assert (frame.width, frame.height) == SIZE


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_channels_come_back_in_order(tmp_path: Path, channels: int) -> None:
    sound = np.stack([tone(440, 0.3, level=0.1 * (c + 1)) for c in range(channels)])
    path = write_video(tmp_path / "c.mkv", [], audio=sound, audio_codec="flac")
    with av.open(str(path)) as container:
        assert not container.streams.video
        blocks = [f.to_ndarray().reshape(-1, channels) for f in container.decode(audio=0)]
    decoded = np.concatenate(blocks).astype(np.float64)
    decoded /= -float(np.iinfo(blocks[0].dtype).min)
    assert np.abs(decoded).max(axis=0) == pytest.approx(0.1 * np.arange(1, channels + 1), abs=0.002)
    assert decoded.shape[0] == sound.shape[1]


def test_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    made = [
        write_video(
            tmp_path / name, noise_free_scene(3, 10, SIZE), audio=tone(440, 0.4)
        ).read_bytes()
        for name in ("one.mp4", "two.mp4")
    ]
    assert made[0] == made[1]


def test_odd_names_are_only_names(tmp_path: Path, pictures: list[npt.NDArray[np.uint8]]) -> None:
    path = write_video(tmp_path / "- a $(b) ; 🎬 %d.mp4", pictures[:4])
    assert len(decode_times(path)) == 4
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_nothing_to_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to write"):
        write_video(tmp_path / "x.mp4", [])


def test_pts_must_match_frames(tmp_path: Path, pictures: list[npt.NDArray[np.uint8]]) -> None:
    with pytest.raises(ValueError, match="4 frames but 5 pts"):
        write_video(tmp_path / "x.mp4", pictures[:4], pts=[0, 1, 2, 3, 4])
    with pytest.raises(ValueError, match="more frames than pts"):
        write_video(tmp_path / "y.mp4", pictures[:4], pts=[0, 1])


def test_scenes_move_smoothly_and_cuts_do_not() -> None:
    frames, cuts = cut_sequence([12, 9, 15], SIZE, seed=4)
    assert cuts == [12, 21]
    assert len(frames) == 36
    steps = np.array(
        [np.abs(a.astype(int) - b).mean() for a, b in zip(frames[1:], frames[:-1], strict=True)]
    )
    inside = np.delete(steps, [c - 1 for c in cuts])
    assert inside.min() > 0
    assert steps[[c - 1 for c in cuts]].min() > 5 * inside.max()


def test_text_is_drawn_where_asked_and_the_original_is_untouched() -> None:
    plain = np.full((120, 160, 3), 90, np.uint8)
    written = draw_text(plain, "GATE 7", (20, 30), 24)
    assert plain.min() == plain.max() == 90
    rows, columns = np.nonzero((written != plain).any(axis=2))
    assert 14 <= columns.min() <= 20
    assert 24 <= rows.min() <= 45
    assert (written == 255).all(axis=2).sum() > 50


def test_text_clip_shows_its_lines_only_in_their_spans(tmp_path: Path) -> None:
    path = text_clip(tmp_path / "t.mp4", [("HELLO", 10, 20)], n=30, size=(320, 180))
    frames = decode_pictures(path)
    white = [int((f.min(axis=2) > 235).sum()) for f in frames]
    assert len(frames) == 30
    assert all(w > 100 for w in white[10:20])
    assert all(w == 0 for w in white[:10] + white[20:])


def test_sounds_have_the_length_and_pitch_asked_for() -> None:
    sound = tone(1000, 0.5, rate=8000)
    assert sound.shape == (4000,)
    assert sound.dtype == np.float32
    assert np.argmax(np.abs(np.fft.rfft(sound))) * 2 == 1000
    assert not silence(0.25).any()
    assert silence(0.25).shape == (4000,)


def test_clicks_begin_on_their_sample() -> None:
    sound = click_train([0.1, 0.9], 1.0)
    assert sound.shape == (16000,)
    assert not sound[:1600].any()
    assert sound[1600] == pytest.approx(0.8)
    assert not sound[2000:14400].any()
    assert sound[14400] == pytest.approx(0.8)
