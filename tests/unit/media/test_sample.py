"""The one decode pass: exact counts and times, one clock, damage told, nothing lost."""

import gc
import json
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from zipfile import ZipFile

import av
import hostile
import numpy as np
import psutil
import pytest
from made_media import noise_free_scene, tone, write_video

from engines.contracts.media import SampleDocument, SampleParams
from engines.errors import LimitExceededError, ReelgraphError
from engines.media.clock import Epochs, StreamClock
from engines.media.limits import MediaLimits
from engines.media.probe import probe
from engines.media.sample import WORK_DIRECTORY, decode
from engines.media.samples import SampleArchive
from engines.media.sound import SoundWriter

Decode = Callable[..., tuple[SampleDocument, Path]]
_BLOBS = ("samples.zip", "audio.npy", "signals.npy", "pts.npy", "thumbs.npy")


def test_every_frame_has_its_own_time(tmp_path: Path, decoded: Decode) -> None:
    """MED-01: 60 frames at 30 per second, then 40 at 10: times are never index / rate."""
    pts = [*range(60), *range(60, 180, 3)]
    path = write_video(
        tmp_path / "vfr.mp4",
        noise_free_scene(1, len(pts), (160, 120)),
        30,
        pts=pts,
        time_base=Fraction(1, 30),
    )
    document, out = decoded(path, step_s=1.0)
    times = np.load(out / "pts.npy")
    base = document.time_base_num / document.time_base_den
    assert document.video is not None
    assert document.video.variable_rate
    assert document.video.frames_decoded == 100
    assert np.allclose(times[:-1] * base, [p / 30 for p in pts], atol=1e-6)
    assert [round(s.pts * base, 3) for s in document.samples] == [0, 1, 2, 3, 4, 5]


def test_times_rise_and_belong_to_their_pictures(tmp_path: Path, decoded: Decode) -> None:
    """MED-04: eight B frames in a pyramid; each picture carries its number as brightness."""
    pictures = [np.full((120, 160, 3), 8 * (i % 30) + 8, np.uint8) for i in range(90)]
    path = write_video(
        tmp_path / "b.mp4",
        pictures,
        30,
        options={"x264-params": "bframes=8:b-adapt=0:b-pyramid=normal:keyint=60"},
    )
    document, out = decoded(path, step_s=1 / 30, budget=1000, fixed=True)
    assert np.all(np.diff(np.load(out / "pts.npy")) > 0)
    assert len(document.samples) == 90
    with SampleArchive(out / "samples.zip") as archive:
        for sample in document.samples:
            assert abs(int(archive.read(sample.name).mean()) - (8 * (sample.frame % 30) + 8)) <= 3


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_samples_stand_upright(turn: int, tmp_path: Path, decoded: Decode) -> None:
    """MED-02: a turned file gives the samples of an upright one."""
    upright = noise_free_scene(3, 3, (160, 120))
    coded = [np.ascontiguousarray(np.rot90(p, k=turn // 90)) for p in upright]
    path = write_video(tmp_path / "t.mp4", coded, rotation_deg=turn, options={"crf": "10"})
    plain = write_video(tmp_path / "p.mp4", upright, options={"crf": "10"})
    first, out = decoded(path)
    second, plain_out = decoded(plain)
    assert first.video is not None
    assert (first.video.width, first.video.height) == (160, 120)
    with SampleArchive(out / "samples.zip") as a, SampleArchive(plain_out / "samples.zip") as b:
        one = a.read(first.samples[0].name).astype(int)
        other = b.read(second.samples[0].name).astype(int)
    assert one.shape == other.shape
    assert np.abs(one - other).mean() < 3


def test_pixels_that_are_not_square_are_made_square(tmp_path: Path, decoded: Decode) -> None:
    path = tmp_path / "sar.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        stream.codec_context.sample_aspect_ratio = Fraction(2, 1)
        for picture in noise_free_scene(1, 3, (160, 120)):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    document, out = decoded(path)
    assert document.video is not None
    assert (document.video.sample_aspect_num, document.video.sample_aspect_den) == (2, 1)
    with SampleArchive(out / "samples.zip") as archive:
        assert archive.read(document.samples[0].name).shape == (120, 320, 3)


@pytest.mark.parametrize("codec", ["libx264rgb", "libx264", "mpeg4"])
def test_red_is_red(codec: str, tmp_path: Path, decoded: Decode) -> None:
    red = np.zeros((96, 96, 3), np.uint8)
    red[..., 0] = 255
    pix_fmt = "rgb24" if codec == "libx264rgb" else "yuv420p"
    path = write_video(tmp_path / "r.mkv", [red] * 3, codec=codec, pix_fmt=pix_fmt)
    document, out = decoded(path)
    with SampleArchive(out / "samples.zip") as archive:
        mean = archive.read(document.samples[0].name).mean(axis=(0, 1))
    assert mean[0] > 235
    assert max(mean[1], mean[2]) < 20


def test_late_sound_starts_late(tmp_path: Path, decoded: Decode) -> None:
    """MED-12: the picture starts at 0, the sound at 4.087 s."""
    path = write_video(
        tmp_path / "off.mkv",
        noise_free_scene(1, 150, (96, 64)),
        25,
        audio=tone(440, 1.5),
        audio_start_s=4.087,
    )
    document, out = decoded(path)
    sound = np.load(out / "audio.npy")
    loud = np.flatnonzero(np.abs(sound[0].astype(int)) > 1000)
    first_s = (document.audio_start_pts + loud[0]) / 16_000
    assert abs(first_s - 4.087) < 0.05
    assert document.audio is not None
    assert abs(document.audio.start_s - 4.087) < 0.05
    assert document.media.start_s == 0


def test_lost_sound_stays_a_gap(tmp_path: Path, decoded: Decode) -> None:
    """Packets of the second second are taken out: what follows keeps its time."""
    whole = write_video(tmp_path / "w.mkv", [], audio=tone(440, 3.0), audio_codec="pcm_s16le")
    path = tmp_path / "lost.mkv"
    with av.open(str(whole)) as source, av.open(str(path), "w") as target:
        stream = target.add_stream_from_template(source.streams.audio[0])
        for packet in source.demux():
            if packet.dts is not None and not 1.0 <= packet.pts * packet.time_base < 2.0:
                packet.stream = stream
                target.mux(packet)
    document, out = decoded(path)
    sound = np.load(out / "audio.npy")[0]
    assert abs(len(sound) / 16_000 - 3.0) < 0.1
    (gap,) = document.audio_gaps
    assert abs(gap[0] - 1.0) < 0.08
    assert abs(gap[1] - 2.0) < 0.08
    assert not sound[int(1.1 * 16_000) : int(1.9 * 16_000)].any()
    assert np.abs(sound[int(2.2 * 16_000) :].astype(int)).max() > 1000
    assert document.audio is not None
    assert abs((document.audio.duration_s or 0) - 2.0) < 0.1


def test_many_small_losses_add_up_to_gaps(tmp_path: Path, decoded: Decode) -> None:
    """Every fourth block of 64 ms is gone: the end still stands where it belongs."""
    whole = write_video(tmp_path / "w.mkv", [], audio=tone(440, 8.0), audio_codec="pcm_s16le")
    path = tmp_path / "lost.mkv"
    with av.open(str(whole)) as source, av.open(str(path), "w") as target:
        stream = target.add_stream_from_template(source.streams.audio[0])
        for number, packet in enumerate(source.demux()):
            if packet.dts is not None and number % 4 != 3:
                packet.stream = stream
                target.mux(packet)
    _, out = decoded(path)
    assert abs(np.load(out / "audio.npy").shape[1] / 16_000 - 8.0) < 0.15


def test_truncated_and_damaged_files_are_partial(tmp_path: Path, decoded: Decode) -> None:
    """MED-07 (b) and MED-08: what decodes is kept, what is missing is said and placed."""
    cut, _ = decoded(hostile.truncated(tmp_path))
    assert cut.verdict == "partial"
    (problem,) = [p for p in cut.problems if p.code == "truncated"]
    assert cut.media.duration_s is not None
    assert 0.5 < cut.media.duration_s < 2.0
    assert problem.start_s == pytest.approx(cut.media.start_s + cut.media.duration_s)
    assert cut.coverage.skipped_s > 0
    assert problem.start_s is not None
    assert max(s.pts for s in cut.samples) / cut.time_base_den < problem.start_s

    hurt, _ = decoded(hostile.damaged(tmp_path, 400))
    assert hurt.verdict == "partial"
    spans = [p for p in hurt.problems if p.code == "damaged"]
    assert spans
    assert all(p.start_s is None or 0 <= p.start_s < 2.2 for p in spans)
    assert hurt.video is not None
    assert 40 <= (hurt.video.frames_decoded or 0) <= 50


def test_a_whole_file_with_junk_behind_it_is_complete(tmp_path: Path, decoded: Decode) -> None:
    document, _ = decoded(hostile.trailing_garbage(tmp_path))
    assert document.verdict == "complete"
    assert document.video is not None
    assert document.video.frames_decoded == 50


@pytest.mark.parametrize("make", [hostile.claims_hours, hostile.claims_hours_mp4])
def test_claimed_lengths_plan_nothing(make: object, tmp_path: Path, decoded: Decode) -> None:
    document, _ = decoded(make(tmp_path))  # type: ignore[operator]
    assert document.media.duration_s is not None
    assert document.media.duration_s < 2.2
    assert document.sample_step_s == 0.25
    assert len(document.samples) == 8


def test_sound_alone_and_picture_alone(tmp_path: Path, decoded: Decode) -> None:
    heard, out = decoded(
        write_video(tmp_path / "a.flac", [], audio=tone(440, 1.0), audio_codec="flac")
    )
    assert heard.video is None
    assert heard.samples == ()
    assert np.load(out / "audio.npy").shape == (1, 16_000)
    seen, out = decoded(write_video(tmp_path / "v.mp4", noise_free_scene(1, 10, (96, 64))))
    assert seen.audio is None
    assert np.load(out / "audio.npy").shape == (1, 0)
    assert np.load(out / "signals.npy").shape == (10, len(seen.signal_names))


def test_budget_thins_evenly_and_keeps_what_is_new(tmp_path: Path, decoded: Decode) -> None:
    """A still of 40 s in which a square shows for half a second."""
    still = noise_free_scene(1, 1, (160, 120))[0]
    pictures = []
    for i in range(400):
        picture = still.copy()
        if 203 <= i < 208:
            picture[40:80, 40:80] = 255
        pictures.append(picture)
    document, _ = decoded(write_video(tmp_path / "long.mp4", pictures, 10), budget=30)
    times = [s.pts / document.time_base_den for s in document.samples]
    assert len(times) <= 30
    assert document.sample_step_s >= 1.0
    assert any(20.2 <= t < 20.8 for t in times)
    assert max(np.diff(times)) <= document.sample_step_s + 0.11


def test_the_same_file_gives_the_same_bytes(tmp_path: Path, decoded: Decode) -> None:
    path = hostile.small_mp4(tmp_path)
    first, a = decoded(path)
    second, b = decoded(path)
    assert first == second
    for name in _BLOBS:
        assert (a / name).read_bytes() == (b / name).read_bytes()


_RESUMED = SampleParams(chunk_s=1.0, budget=12, people_budget=100)
"""Budgets that are full long before the end, so that pieces of both files are let go."""


def _work(path: Path, out: Path) -> None:
    decode(path, probe(path), _RESUMED, out)


def _killed_at_a_checkpoint(path: Path, out: Path) -> int:
    """Run in a process of its own and kill it when it has stored a new checkpoint."""
    state = out / WORK_DIRECTORY / "state.json"
    before = state.stat().st_mtime_ns if state.exists() else 0
    process = multiprocessing.get_context("spawn").Process(target=_work, args=(path, out))
    process.start()
    deadline = time.monotonic() + 60
    while process.is_alive() and time.monotonic() < deadline:
        if state.exists() and state.stat().st_mtime_ns != before:
            os.kill(process.pid or 0, signal.SIGKILL)
            break
        time.sleep(0.002)
    process.join()
    assert state.exists(), "the decode ended before it could be killed"
    return int(json.loads(state.read_text())["num_frames"])


def test_goes_on_after_a_kill(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_video(
        tmp_path / "a.mp4",
        noise_free_scene(1, 600, (160, 120)),
        25,
        options={"g": "50", "bf": "3"},
        audio=tone(440, 24.0),
    )
    out, straight = tmp_path / "out", tmp_path / "straight"
    done = _killed_at_a_checkpoint(path, out)
    assert done > 0
    caplog.set_level("INFO")
    resumed = decode(path, probe(path), _RESUMED, out)
    assert f"{done} frames are done" in caplog.text
    document = decode(path, probe(path), _RESUMED, straight)
    assert resumed == document
    for name in (*_BLOBS, "people.zip", "people_pts.npy"):
        assert (out / name).read_bytes() == (straight / name).read_bytes(), name
    assert not (out / WORK_DIRECTORY).exists()


def test_other_parameters_do_not_take_over_a_checkpoint(tmp_path: Path) -> None:
    path = hostile.small_mp4(tmp_path)
    out = tmp_path / "out"
    (out / WORK_DIRECTORY).mkdir(parents=True)
    (out / WORK_DIRECTORY / "state.json").write_text('{"identity": "another", "sizes": {}}')
    document = decode(path, probe(path), SampleParams(), out)
    assert document.video is not None
    assert document.video.frames_decoded == 50


def test_a_long_lived_worker_does_not_grow(tmp_path: Path, decoded: Decode) -> None:
    """MED-14: files that raise and files that do not; memory and descriptors stay flat."""
    good, bad = hostile.small_mp4(tmp_path), hostile.without_index(tmp_path)
    process = psutil.Process()
    gc.disable()
    try:
        for number in range(60):
            decoded(good)
            with pytest.raises(ReelgraphError):
                probe(bad)
            if number == 15:
                memory, descriptors = process.memory_info().rss, process.num_fds()
    finally:
        gc.enable()
    assert process.memory_info().rss - memory < 50 * 2**20
    assert process.num_fds() == descriptors
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0


def test_the_archive_holds_just_the_samples(tmp_path: Path, decoded: Decode) -> None:
    document, out = decoded(hostile.small_mp4(tmp_path))
    with ZipFile(out / "samples.zip") as archive:
        assert archive.namelist() == [s.name for s in document.samples]
        assert all(i.compress_type == 0 for i in archive.infolist())
    assert all(s.end_pts > s.pts for s in document.samples)


def test_junk_before_the_first_frame_is_skipped_and_said(tmp_path: Path, decoded: Decode) -> None:
    whole = write_video(tmp_path / "w.mp3", [], audio=tone(440, 2.0), audio_codec="libmp3lame")
    path = tmp_path / "junk.mp3"
    path.write_bytes(b"\xde\xad\xbe\xef" * 50_000 + whole.read_bytes())
    document, _ = decoded(path)
    assert document.verdict == "partial"
    assert "unrecognised_start" in {p.code for p in document.problems}
    assert document.audio is not None
    assert document.audio.codec == "mp3"
    assert abs((document.audio.duration_s or 0) - 2.0) < 0.2


def test_absurd_sound_times_are_bounded(tmp_path: Path) -> None:
    """Packets that claim to lie hours apart end at a limit, not on a full disk."""
    whole = write_video(tmp_path / "w.mkv", [], audio=tone(440, 3.0), audio_codec="pcm_s16le")
    path = tmp_path / "leaps.mkv"
    with av.open(str(whole)) as source, av.open(str(path), "w") as target:
        stream = target.add_stream_from_template(source.streams.audio[0])
        for number, packet in enumerate(source.demux()):
            if packet.dts is not None:
                packet.pts = packet.dts = packet.dts + number * 2 * 3600 * 1000
                packet.stream = stream
                target.mux(packet)
    limits = MediaLimits(max_output_bytes=400 * 2**20)
    with pytest.raises(LimitExceededError):
        decode(path, probe(path), SampleParams(), tmp_path / "a", limits)
    short = MediaLimits(max_duration_s=3600.0)
    document = decode(path, probe(path), SampleParams(), tmp_path / "b", short)
    assert document.verdict == "partial"
    assert any(p.code == "stopped" for p in document.problems)


def _clicks_at(path: Path, block: int, step_ms: int, decoded: Decode) -> list[float]:
    """Where clicks written at 0, 5, 10 s of stated time are heard, in seconds.

    Every ``step_ms`` of stated time the file holds ``block`` samples at 48 kHz.
    """
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=48_000, layout="mono")
        stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(15_000 // step_ms):
            samples = np.zeros(block, np.int16)
            if number * step_ms % 5000 == 0:
                samples[:240] = 20_000
            packet = av.Packet(samples.tobytes())
            packet.pts = packet.dts = number * step_ms
            packet.time_base = Fraction(1, 1000)
            packet.stream = stream
            container.mux(packet)
    _, out = decoded(path)
    loud = np.flatnonzero(np.abs(np.load(out / "audio.npy")[0].astype(int)) > 8000)
    starts = loud[np.concatenate([[True], np.diff(loud) > 800])]
    return [float(s) / 16_000 for s in starts]


@pytest.mark.parametrize("block", [912, 960, 1008])
def test_sound_stays_on_its_clock_when_samples_and_times_disagree(
    block: int, tmp_path: Path, decoded: Decode
) -> None:
    """Five per cent more or fewer samples than the times have room for."""
    heard = _clicks_at(tmp_path / "a.mka", block, 20, decoded)
    assert np.allclose(heard, [0.0, 5.0, 10.0], atol=0.06)


def test_times_that_leave_no_room_for_the_sound_are_not_believed(
    tmp_path: Path, decoded: Decode
) -> None:
    """One millisecond for each 20 ms of sound: all of it is kept, one after the other."""
    path = tmp_path / "a.mka"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=48_000, layout="mono")
        stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(100):
            packet = av.Packet(np.full(960, 1000, np.int16).tobytes())
            packet.pts = packet.dts = number
            packet.time_base = Fraction(1, 1000)
            packet.stream = stream
            container.mux(packet)
    _, out = decoded(path)
    assert np.load(out / "audio.npy").shape[1] / 16_000 > 1.4


def test_silence_beyond_the_longest_gap_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engines.media.sound._MAX_GAP_SAMPLES", 16_000)
    with (tmp_path / "raw").open("wb") as file:
        sound = SoundWriter(file, 1)
        clock = StreamClock(Fraction(1, 1000), 1, Epochs())
        for at_s in (0, 3):
            frame = av.AudioFrame.from_ndarray(
                np.zeros((1, 1600), np.int16), format="s16", layout="mono"
            )
            frame.sample_rate, frame.pts = 16_000, 1000 * at_s
            sound.push(frame, clock)
            sound.flush()
    assert abs(sound.shortened_s - 1.9) < 0.01
