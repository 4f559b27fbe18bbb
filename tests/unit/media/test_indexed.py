"""Index and skip gives the very pictures of a linear pass, for far fewer packets."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from made_media import noise_free_scene, write_video

from engines.media.container import open_media
from engines.media.indexed import decode_wanted, plan, read_index, sample_pictures
from engines.media.limits import MediaLimits
from engines.media.probe import probe
from engines.media.streams import open_decoder, video_stream

LIMITS = MediaLimits()

KINDS: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "h264": ("mp4", "libx264", {"bf": "2", "g": "30"}),
    "h264 pyramid": (
        "mp4",
        "libx264",
        {"x264-params": "bframes=8:b-adapt=0:b-pyramid=normal:keyint=60"},
    ),
    "h264 open group": (
        "mkv",
        "libx264",
        {"x264-params": "bframes=5:b-pyramid=normal:keyint=30:open-gop=1:scenecut=0"},
    ),
    "h264 stream": ("ts", "libx264", {"bf": "2", "g": "25"}),
    "hevc open group": (
        "mp4",
        "libx265",
        {"x265-params": "log-level=error:keyint=40:bframes=4:open-gop=1", "preset": "fast"},
    ),
    "vp9": ("webm", "libvpx-vp9", {"g": "40", "auto-alt-ref": "1", "lag-in-frames": "12"}),
    "av1": ("mp4", "libsvtav1", {"preset": "12", "g": "40"}),
    "mpeg2": ("mkv", "mpeg2video", {"bf": "2", "g": "15"}),
    "mpeg4": ("mp4", "mpeg4", {"bf": "2", "g": "30"}),
    "mjpeg": ("mkv", "mjpeg", {}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("indexed")
    pictures = noise_free_scene(5, 100, (160, 120))
    return {
        name: write_video(
            folder / f"{name.replace(' ', '_')}.{suffix}",
            pictures,
            30,
            codec=codec,
            options=options,
        )
        for name, (suffix, codec, options) in KINDS.items()
    }


def _linear(path: Path) -> dict[int, np.ndarray]:
    with open_media(path, LIMITS) as (container, _):
        stream = container.streams.video[0]
        open_decoder(stream, LIMITS, 1)
        return {f.pts: f.to_ndarray() for f in container.decode(stream) if f.pts is not None}


@pytest.mark.parametrize("threads", [1, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_bit_identical_to_a_linear_pass(kind: str, threads: int, made: dict[str, Path]) -> None:
    path = made[kind]
    every = _linear(path)
    assert len(every) == 100
    with open_media(path, LIMITS) as (container, _):
        index = read_index(container, video_stream(container, 0))
    assert list(index.shown) == sorted(every)
    first_s = float(index.shown[0] * index.time_base)
    for step_s in (0.2, 0.7, 1.5):
        wanted = {index.at_or_after(first_s + t) for t in np.arange(0, 100 / 30, step_s)}
        with open_media(path, LIMITS) as (container, _):
            stream = video_stream(container, 0)
            open_decoder(stream, LIMITS, threads)
            found = {f.pts: f.to_ndarray() for f in decode_wanted(container, stream, index, wanted)}
        assert set(found) == wanted
        assert all(np.array_equal(found[p], every[p]) for p in wanted)


@pytest.mark.parametrize("kind", ["h264", "hevc open group", "mpeg2", "mpeg4", "mjpeg"])
def test_most_packets_are_spared(kind: str, made: dict[str, Path]) -> None:
    with open_media(made[kind], LIMITS) as (container, _):
        index = read_index(container, video_stream(container, 0))
    needed = plan(index, {index.at_or_after(t) for t in (0.0, 1.4, 2.8)})
    assert sum(needed) < 0.75 * len(needed)
    assert not any(plan(index, set()))


def test_any_order_of_requests(tmp_path: Path) -> None:
    """MED-06: random access never gives a picture from before or after the wanted one."""
    pictures = [np.full((96, 96, 3), 8 + 4 * (i % 60), np.uint8) for i in range(180)]
    path = write_video(tmp_path / "b.mp4", pictures, 30, options={"g": "30", "bf": "2"})
    times = [1.7, 0.0, 5.96, 0.97, 1.03, 1.0, 99.0, -1.0]
    found = sample_pictures(path, probe(path), times)
    frames = [round(pts * Fraction(1, 15_360) * 30) for pts, _ in found]
    assert frames == [51, 0, 178, 29, 30, 30, 179, 0]
    for frame, (_, picture) in zip(frames, found, strict=True):
        assert abs(int(picture.mean()) - (8 + 4 * (frame % 60))) <= 3


def test_variable_rate_is_sampled_by_time(tmp_path: Path) -> None:
    pts = [*range(60), *range(60, 180, 3)]
    path = write_video(
        tmp_path / "vfr.mp4",
        noise_free_scene(1, len(pts), (96, 64)),
        30,
        pts=pts,
        time_base=Fraction(1, 30),
    )
    with open_media(path, LIMITS) as (container, _):
        index = read_index(container, video_stream(container, 0))
    chosen = [float(index.at_or_after(t) * index.time_base) for t in range(6)]
    assert chosen == pytest.approx([0, 1, 2, 3, 4, 5])


def test_without_stated_times_the_linear_way_is_taken(tmp_path: Path) -> None:
    pictures = [np.full((96, 96, 3), 8 + 4 * i, np.uint8) for i in range(50)]
    path = write_video(tmp_path / "a.avi", pictures, 25, codec="mpeg4", options={"bf": "2"})
    found = sample_pictures(path, probe(path), [1.0, 0.2])
    assert [round(int(p.mean()) / 4) - 2 for _, p in found] == [25, 5]
