"""The committed clips are what the truth files beside them say; checked by decoding them again."""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest

MAX_BYTES = 6_000_000


@dataclass(frozen=True)
class Decoded:
    """A clip as luma thumbnails and mono sound on the container's clock."""

    luma: npt.NDArray[np.float32]
    times_s: npt.NDArray[np.float64]
    sound: npt.NDArray[np.float32]
    rate_hz: int
    sound_start_s: float
    truth: dict[str, Any]

    @property
    def change(self) -> npt.NDArray[np.float32]:
        """Mean absolute luma difference to the frame before; 0 for the first."""
        steps = np.abs(np.diff(self.luma, axis=0)).mean(axis=(1, 2))
        return np.concatenate([np.zeros(1, np.float32), steps])

    def at(self, start_s: float, end_s: float) -> npt.NDArray[np.float32]:
        """Sound in [start_s, end_s)."""
        first = max(0, round((start_s - self.sound_start_s) * self.rate_hz))
        return self.sound[first : round((end_s - self.sound_start_s) * self.rate_hz)]

    def onset_s(self, near_s: float, level: float) -> float:
        """First sample louder than ``level`` from 0.3 s before ``near_s`` on."""
        loud = np.flatnonzero(np.abs(self.at(near_s - 0.3, near_s + 0.5)) > level)
        assert loud.size, f"nothing louder than {level} near {near_s} s"
        return max(near_s - 0.3, self.sound_start_s) + float(loud[0]) / self.rate_hz


def decode(path: Path) -> Decoded:
    luma: list[npt.NDArray[np.uint8]] = []
    times: list[float] = []
    sound: list[npt.NDArray[np.float32]] = []
    rate_hz, sound_start_s = 1, 0.0
    resampler = av.AudioResampler(format="flt", layout="mono")
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(container.streams.best("video"), *container.streams.audio):
            if isinstance(frame, av.VideoFrame):
                luma.append(frame.reformat(160, 90, "gray", interpolation="AREA").to_ndarray())
                times.append(float(frame.time))
                continue
            for part in resampler.resample(frame):
                if not sound:
                    sound_start_s, rate_hz = float(part.time), part.sample_rate
                sound.append(part.to_ndarray()[0])
    return Decoded(
        luma=np.stack(luma).astype(np.float32),
        times_s=np.array(times),
        sound=np.concatenate(sound) if sound else np.zeros(0, np.float32),
        rate_hz=rate_hz,
        sound_start_s=sound_start_s,
        truth=json.loads(path.with_suffix(".truth.json").read_text(encoding="utf-8")),
    )


@pytest.fixture(scope="module")
def demo(clips_dir: Path) -> Decoded:
    return decode(clips_dir / "demo.mp4")


@pytest.fixture(scope="module")
def talk(clips_dir: Path) -> Decoded:
    return decode(clips_dir / "talk.mp4")


def test_every_clip_has_its_truth_and_all_are_small(clips_dir: Path) -> None:
    clips = sorted(clips_dir.glob("*.mp4"))
    assert {p.name for p in clips} >= {"demo.mp4", "cuts.mp4", "talk.mp4", "late_audio.mp4"}
    assert all(p.with_suffix(".truth.json").is_file() for p in clips)
    assert sum(p.stat().st_size for p in clips) < MAX_BYTES


@pytest.mark.parametrize("name", ["demo", "cuts", "talk", "late_audio"])
def test_frame_counts_and_times(clips_dir: Path, name: str) -> None:
    truth = json.loads((clips_dir / f"{name}.truth.json").read_text(encoding="utf-8"))
    with av.open(str(clips_dir / f"{name}.mp4")) as container:
        times = sorted(p.pts * p.time_base for p in container.demux(video=0) if p.pts is not None)
    assert [float(t) for t in times] == [i / truth["fps"] for i in range(truth["n_frames"])]


def test_demo_cuts_are_the_largest_changes(demo: Decoded) -> None:
    assert len(demo.times_s) == demo.truth["n_frames"]
    largest = np.argsort(demo.change)[-len(demo.truth["cut_frames"]) :]
    assert sorted(largest.tolist()) == demo.truth["cut_frames"]


def test_demo_captions_are_there_only_in_their_frames(demo: Decoded) -> None:
    for text in demo.truth["texts"]:
        x, y, w, h = text["box"]
        columns = slice(round(x * 160), round((x + w) * 160))
        part = demo.luma[:, round(y * 90) : round((y + h) * 90), columns]
        start, end = text["start_frame"], text["end_frame"]
        step = np.abs(np.diff(part, axis=0)).mean(axis=(1, 2))
        # The box appears in the frame stated, and is gone in the frame after its last.
        assert step[start - 1] > 15
        if end not in demo.truth["cut_frames"]:
            assert step[end - 1] > 15
        assert step[start : end - 1].max() < 15


def test_demo_bells_sound_at_the_times_stated(demo: Decoded) -> None:
    assert len(demo.truth["bell_s"]) == len(demo.truth["strike_frames"]) == 12
    for bell_s in demo.truth["bell_s"]:
        assert demo.onset_s(bell_s, 0.1) == pytest.approx(bell_s, abs=0.003)
        assert np.abs(demo.at(bell_s - 0.25, bell_s - 0.005)).max() < 0.01


def test_demo_strikes_come_half_a_second_before_their_bells(demo: Decoded) -> None:
    strikes = np.array(demo.truth["strike_frames"]) / demo.truth["fps"]
    lags = np.array(demo.truth["bell_s"]) - strikes
    assert lags.min() > 0.47
    assert lags.max() < 0.53
    assert 1.7 < np.diff(strikes).min() < np.diff(strikes).max() < 3.3


def test_demo_hammer_is_seen_to_move_in_the_frames_stated(demo: Decoded) -> None:
    change = demo.change
    for start, strike in zip(
        demo.truth["strike_motion_start_frames"], demo.truth["strike_frames"], strict=True
    ):
        assert change[start - 1] < 0.1
        assert change[start] > 0.4
        assert change[strike] == change[start - 1 : strike + 8].max() > 2


def test_demo_lamp_changes_in_its_frames_and_is_no_clue_to_the_bell(demo: Decoded) -> None:
    change, lamp = demo.change, demo.truth["distractor"]
    switches = lamp["on_frames"] + lamp["off_frames"]
    assert all(change[frame] > 0.5 for frame in switches)
    fps, bells = demo.truth["fps"], np.array(demo.truth["bell_s"])
    followed = sum(bool(((bells - s / fps > 0) & (bells - s / fps < 1)).any()) for s in switches)
    # By chance 1 s of every 2.4 s would do: about 10 of 24.
    assert 4 <= followed <= 14


@pytest.mark.parametrize("clip", ["demo", "talk"])
def test_speech_is_heard_in_its_spans_and_nothing_in_the_pauses(
    clip: str, request: pytest.FixtureRequest
) -> None:
    decoded: Decoded = request.getfixturevalue(clip)
    lines = decoded.truth["transcript"]
    for line in lines:
        assert np.abs(decoded.at(line["start_s"], line["start_s"] + 0.5)).max() > 0.02
        assert np.sqrt(np.mean(decoded.at(line["start_s"], line["end_s"]) ** 2)) > 0.05
    for before, after in pairwise(lines):
        pause = decoded.at(before["end_s"] + 0.1, after["start_s"] - 0.1)
        assert np.sqrt(np.mean(pause**2)) < 0.01


def test_talk_sound_stream_starts_late(talk: Decoded) -> None:
    assert talk.truth["audio_start_s"] == 2.4
    # One AAC frame of priming (64 ms at 16 kHz) comes before the first sample.
    assert 2.33 <= talk.sound_start_s <= 2.4
    assert talk.truth["transcript"][0]["start_s"] > 2.4


def test_cuts_and_the_flash(clips_dir: Path) -> None:
    cuts = decode(clips_dir / "cuts.mp4")
    flash = cuts.truth["flash_frames"]
    expected = sorted([*cuts.truth["cut_frames"], flash[0], flash[-1] + 1])
    assert np.flatnonzero(cuts.change > 15).tolist() == expected
    assert cuts.luma[flash].min() > 225
    before, after = cuts.luma[flash[0] - 1], cuts.luma[flash[-1] + 1]
    assert np.abs(before - after).mean() < 8


def test_clicks_sound_with_the_flashes_although_the_sound_starts_late(clips_dir: Path) -> None:
    clip = decode(clips_dir / "late_audio.mp4")
    assert clip.sound_start_s == pytest.approx(clip.truth["audio_start_s"], abs=0.05)
    white = np.flatnonzero(clip.luma.mean(axis=(1, 2)) > 225)
    assert white.tolist() == clip.truth["flash_frames"]
    for frame, click_s in zip(white, clip.truth["click_s"], strict=True):
        assert clip.times_s[frame] == pytest.approx(click_s)
        assert clip.onset_s(click_s, 0.3) == pytest.approx(click_s, abs=0.002)
