"""A file of two hours: killed in the middle, it goes on there; its worker stays small."""

import json
import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from av.video.frame import VideoFrame

from engines.contracts.media import SampleParams
from engines.media.packets import PacketDecoder
from engines.media.probe import probe
from engines.media.sample import WORK_DIRECTORY, decode
from flows.bench.media_clips import repeat_clip, write_clip
from flows.bench.media_memory import HOURS_S, memory_row

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

_RATE = 10
_PARAMS = SampleParams(threads=1)
_BLOBS = ("samples.zip", "signals.npy", "pts.npy", "thumbs.npy", "thumb_frames.npy")
_AAC_NOISE = 64
"""Of 32,768. An AAC decoder fills bands with noise of its own, which goes on from what it decoded
before: after a seek it is other noise."""
_AGAIN = 30 * _RATE
"""Most frames that are decoded twice: the way back from a checkpoint, and a group before that."""


@pytest.fixture(scope="module", params=["mkv", "mp4"])
def hours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hours")
    clip = write_clip(folder / "minute.mp4", "libx264", (96, 64), 60, rate=_RATE)
    return repeat_clip(clip, folder / f"hours.{request.param}", HOURS_S // 60)


def _work(path: Path, out: Path) -> None:
    decode(path, probe(path), _PARAMS, out)


def _frames_done(out: Path) -> int:
    try:
        return int(json.loads((out / WORK_DIRECTORY / "state.json").read_text())["num_frames"])
    except (FileNotFoundError, ValueError):
        return 0


def _killed_behind(path: Path, out: Path, num_frames: int) -> int:
    """Decode in a process of its own and kill it once so many frames are stored."""
    process = multiprocessing.get_context("spawn").Process(target=_work, args=(path, out))
    process.start()
    while process.is_alive() and _frames_done(out) < num_frames:
        time.sleep(0.02)
    assert process.is_alive(), "the decode ended before it could be killed"
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    return _frames_done(out)


def test_goes_on_where_it_was_killed(
    hours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole, straight, out = HOURS_S * _RATE, tmp_path / "straight", tmp_path / "out"
    done = _killed_behind(hours, out, whole // 2)
    assert done >= whole // 2

    decoded = 0
    frames_of = PacketDecoder.__iter__

    def counting(self: PacketDecoder) -> Iterator[object]:
        nonlocal decoded
        for frame in frames_of(self):
            decoded += isinstance(frame, VideoFrame)
            yield frame

    monkeypatch.setattr(PacketDecoder, "__iter__", counting)
    caplog.set_level(logging.INFO)
    resumed = decode(hours, probe(hours), _PARAMS, out)
    assert f"{done} frames are done" in caplog.text
    assert resumed.video is not None
    assert resumed.video.frames_decoded == whole
    assert whole - done <= decoded <= whole - done + _AGAIN

    assert decode(hours, probe(hours), _PARAMS, straight) == resumed
    for name in _BLOBS:
        assert (out / name).read_bytes() == (straight / name).read_bytes(), name
    heard, wanted = (np.load(d / "audio.npy", mmap_mode="r") for d in (out, straight))
    assert heard.shape == wanted.shape
    step = 60 * 16_000
    for at in range(0, heard.shape[1], step):
        pair = (heard[:, at : at + step].astype(int), wanted[:, at : at + step].astype(int))
        assert np.abs(pair[0] - pair[1]).max() <= _AAC_NOISE


def test_memory_is_flat(hours: Path, tmp_path: Path) -> None:
    row = memory_row(hours, tmp_path)
    assert row.holds, row.figures
