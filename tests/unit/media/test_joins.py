"""Recordings put one behind the other: every picture and sound in its place, none squeezed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_media import noise_free_scene, tone, write_video

from engines.contracts.media import SampleDocument

Decode = Callable[..., tuple[SampleDocument, Path]]
NUM_FRAMES = 25


def _clip(path: Path, sound_s: float, frames: int = NUM_FRAMES, name: str = "mpegts") -> bytes:
    """One second of pictures with that much sound."""
    codec, sound = ("libx264", "aac") if name == "mpegts" else ("mpeg2video", "mp2")
    return write_video(
        path,
        noise_free_scene(1, frames, (96, 64)),
        audio=tone(440, sound_s) if sound_s else None,
        codec=codec,
        audio_codec=sound,
        options={"bf": "2"},
    ).read_bytes()


def _steps(document: SampleDocument, out: Path) -> list[float]:
    """Lengths of all pictures, in pictures of 25 a second."""
    seconds = np.load(out / "pts.npy") * document.time_base_num / document.time_base_den
    return (np.diff(seconds) * 25).round(3).tolist()


@pytest.mark.parametrize("sounds_s", [(0.0, 0.0), (0.6, 1.0), (0.9, 0.5), (1.5, 1.0)])
@pytest.mark.parametrize("suffix", ["ts", "mpg"])
def test_the_longer_stream_says_where_the_next_part_begins(
    suffix: str, sounds_s: tuple[float, float], tmp_path: Path, decoded: Decode
) -> None:
    name = "mpegts" if suffix == "ts" else "mpeg"
    first, second = (_clip(tmp_path / f"a.{suffix}", s, name=name) for s in sounds_s)
    path = tmp_path / f"all.{suffix}"
    path.write_bytes(first + second + first)
    document, out = decoded(path)
    steps = _steps(document, out)
    assert len(steps) == 3 * NUM_FRAMES
    assert document.verdict == "complete"
    usual = [s for i, s in enumerate(steps) if i % NUM_FRAMES != NUM_FRAMES - 1]
    assert np.allclose(usual, 1.0, atol=0.03)
    # Between two parts stands what the sound of the first is longer, and the lead of the second.
    longest = max(sounds_s[0] - 1.0, 0.0) * 25 + 5
    assert all(0.97 < s < longest for s in steps[NUM_FRAMES - 1 :: NUM_FRAMES][:2])
    if sounds_s[0]:
        assert document.audio is not None
        expected = 2 * sounds_s[0] + sounds_s[1]
        assert abs((document.audio.duration_s or 0) - expected) < 0.45
        assert "sound_overlaps" not in {p.code for p in document.problems}


@pytest.mark.parametrize("frames", [8, 12])
def test_clips_of_less_than_half_a_second(frames: int, tmp_path: Path, decoded: Decode) -> None:
    clip = _clip(tmp_path / "a.ts", frames / 25, frames)
    path = tmp_path / "all.ts"
    path.write_bytes(clip * 3)
    document, out = decoded(path)
    steps = _steps(document, out)
    assert len(steps) == 3 * frames
    assert min(steps) > 0.97
    assert "sound_overlaps" not in {p.code for p in document.problems}
