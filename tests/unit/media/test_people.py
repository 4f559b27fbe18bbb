"""Pictures for following people: many a second, upright, and where something moves."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from made_media import noise_free_scene, write_video

from engines.contracts.media import SampleDocument
from engines.media.samples import SampleArchive

Decode = Callable[..., tuple[SampleDocument, Path]]


def test_twelve_a_second_with_their_times(tmp_path: Path, decoded: Decode) -> None:
    path = write_video(tmp_path / "a.mp4", noise_free_scene(1, 90, (160, 120)), 30)
    document, out = decoded(path, people_budget=1000, people_long_edge=64)
    times = np.load(out / "people_pts.npy") / document.time_base_den
    assert document.people is not None
    assert document.people.num_pictures == len(times) == 36
    assert (document.people.width, document.people.height) == (64, 48)
    # The first frame at or after each twelfth of a second, and never one before it.
    late = times - np.arange(36) / 12
    assert late.min() > -1e-6
    assert late.max() < 1 / 30
    with SampleArchive(out / "people.zip") as archive:
        assert len(archive.names) == 36
        assert archive.read(archive.names[-1]).shape == (48, 64, 3)


def test_a_slow_file_gives_every_frame(tmp_path: Path, decoded: Decode) -> None:
    path = write_video(tmp_path / "slow.mp4", noise_free_scene(1, 20, (160, 120)), 5)
    document, _ = decoded(path, people_budget=1000)
    assert document.people is not None
    assert document.people.num_pictures == 20
    assert document.people.skipped_s == 0.0


def test_still_seconds_go_first(tmp_path: Path, decoded: Decode) -> None:
    """Forty seconds of which eight move; a budget of twelve seconds keeps those at full rate."""
    moving = noise_free_scene(2, 80, (160, 120))
    pictures = [moving[0]] * 160 + moving + [moving[-1]] * 160
    path = write_video(tmp_path / "still.mp4", pictures, 10)
    document, out = decoded(path, people_budget=120, people_long_edge=64)
    times = np.load(out / "people_pts.npy") / document.time_base_den
    assert document.people is not None
    assert len(times) <= 120
    assert document.people.skipped_s >= 28.0
    inside = times[(times >= 16) & (times < 24)]
    assert len(inside) == 80
    with SampleArchive(out / "people.zip") as archive:
        assert len(archive.names) == len(times)


def test_none_are_made_unless_asked_for(tmp_path: Path, decoded: Decode) -> None:
    path = write_video(tmp_path / "a.mp4", noise_free_scene(1, 20, (160, 120)), 10)
    document, out = decoded(path, people_budget=0)
    assert document.people is None
    assert not (out / "people.zip").exists()
