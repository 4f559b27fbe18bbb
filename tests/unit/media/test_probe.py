"""The probe tells what a file is, whatever its name, its tags or its flags say."""

import struct
from pathlib import Path

import av
import hostile
import numpy as np
import pytest
from made_media import noise_free_scene, tone, write_video

from engines.media.orientation import Orientation, from_display_matrix
from engines.media.probe import probe


@pytest.mark.parametrize("name", hostile.ODD_NAMES)
def test_names_are_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = hostile.odd_name(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    for way in (path, Path(name)):
        found = probe(way)
        assert found.video is not None
        assert (found.video.width, found.video.height) == (160, 120)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["concat:a.mp4", "pipe:0", "http:x.mp4", "a%03d.mp4", "data:,x"])
def test_names_are_never_protocols_or_patterns(name: str, tmp_path: Path) -> None:
    assert probe(hostile.odd_name(tmp_path, name)).video is not None


def test_the_content_decides_the_container(tmp_path: Path) -> None:
    assert "matroska" in probe(hostile.wrong_suffix(tmp_path)).media.container


def test_cover_art_is_not_a_video(tmp_path: Path) -> None:
    found = probe(hostile.cover_art_m4a(tmp_path))
    assert found.video is None
    assert found.audio is not None
    assert found.media.kind == "audio"


def test_the_default_stream_is_chosen(tmp_path: Path) -> None:
    """MED-09 (c): the second stream carries the default mark."""
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as container:
        streams = []
        for size, disposition in (((160, 120), 0), ((320, 240), 1)):
            stream = container.add_stream("mpeg4", rate=25)
            stream.width, stream.height = size
            stream.disposition = av.stream.Disposition(disposition)
            streams.append(stream)
        for i in range(5):
            for stream in streams:
                picture = np.full((stream.height, stream.width, 3), 40 * i, np.uint8)
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                container.mux(stream.encode(frame))
        for stream in streams:
            container.mux(stream.encode(None))
    found = probe(path)
    assert found.video is not None
    assert (found.video.stream_index, found.video.width) == (1, 320)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_displayed_size_and_clockwise_turn(turn: int, tmp_path: Path) -> None:
    path = write_video(
        tmp_path / "turned.mp4", noise_free_scene(1, 3, (160, 120)), rotation_deg=turn
    )
    video = probe(path).video
    assert video is not None
    assert video.rotation_deg == turn
    assert (video.width, video.height) == ((120, 160) if turn % 180 else (160, 120))
    assert (video.coded_width, video.coded_height) == (160, 120)


def _matrix(a: int, b: int, c: int, d: int) -> bytes:
    one = 1 << 16
    return struct.pack("=9i", a * one, b * one, 0, c * one, d * one, 0, 0, 0, 1 << 30)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("mirrored", [False, True])
def test_all_eight_orientations(rotation: int, mirrored: bool) -> None:
    """The matrix moves a corner of the picture where the orientation moves it."""
    wanted = Orientation(rotation, mirrored)
    a, b, c, d = {0: (1, 0, 0, 1), 90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}[
        rotation
    ]
    if mirrored:
        a, c = -a, -c
    assert from_display_matrix(_matrix(a, b, c, d)) == wanted
    picture = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    turned = wanted.apply(picture)
    xs = [a * x + c * y for x in (0, 2) for y in (0, 1)]
    ys = [b * x + d * y for x in (0, 2) for y in (0, 1)]
    for y in range(2):
        for x in range(3):
            at = (b * x + d * y - min(ys), a * x + c * y - min(xs))
            assert np.array_equal(turned[at], picture[y, x])


@pytest.mark.parametrize(
    "raw", [b"", bytes(36), _matrix(1, 1, -1, 1), struct.pack("=9i", *([-(2**31)] * 9))]
)
def test_degenerate_matrices_turn_nothing(raw: bytes) -> None:
    found = from_display_matrix(raw)
    assert (found.rotation_deg, found.mirrored, found.irregular) == (0, False, True)


def test_tags_that_are_not_text_do_no_harm(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.avi", noise_free_scene(1, 5, (160, 120)), codec="mpeg4")
    data = path.read_bytes()
    at = data.index(b"Lavf")
    path.write_bytes(data[:at] + b"\xff\xfe\xe9\xa0" + data[at + 4 :])
    assert probe(path).video is not None


def _with_text(folder: Path, text: bytes, suffix: str = "srt") -> Path:
    """A small clip with one text track beside its picture and sound."""
    words_path, path = folder / f"text.{suffix}", folder / "subs.mkv"
    words_path.write_bytes(text)
    with (
        av.open(str(hostile.small_mp4(folder))) as pictures,
        av.open(str(words_path)) as words,
        av.open(str(path), "w") as target,
    ):
        copies = {
            source: {s.index: target.add_stream_from_template(s) for s in source.streams}
            for source in (pictures, words)
        }
        copies[words][0].metadata["language"] = "eng"
        for source, streams in copies.items():
            for packet in source.demux():
                if packet.dts is not None:
                    packet.stream = streams[packet.stream.index]
                    target.mux(packet)
    return path


def test_text_tracks_are_read_as_cues(tmp_path: Path) -> None:
    path = _with_text(
        tmp_path,
        b"1\n00:00:00,500 --> 00:00:00,900\nHello <i>rabbit</i>\n\n"
        b"2\n00:00:01,200 --> 00:00:01,600\nGoodbye\n",
    )
    cues = probe(path).subtitles
    assert [(c.text, c.language) for c in cues] == [("Hello rabbit", "eng"), ("Goodbye", "eng")]
    # Matroska shifts all streams alike so that the sound's priming does not start below zero.
    shift = cues[0].start_s - 0.5
    assert 0 <= shift < 0.1
    times = [(c.start_s - shift, c.end_s - shift) for c in cues]
    assert np.allclose(times, [(0.5, 0.9), (1.2, 1.6)])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("one, two, three, four, five, six, seven, eight, nine, ten, eleven", None),
        ("if a < b and c > d then 3 <4", None),
        ("set {a, b} and {c}", None),
        ("path C:\\New\\home", None),
        ("line one\nline two", None),
        ('{\\an8}<font color="#ff0000">red</font> and <b>bold</b>', "red and bold"),
    ],
)
def test_a_cue_keeps_all_that_is_said(written: str, read: str | None, tmp_path: Path) -> None:
    text = f"1\n00:00:00,500 --> 00:00:00,900\n{written}\n".encode()
    (cue,) = probe(_with_text(tmp_path, text)).subtitles
    assert cue.text == (read or written)


def test_a_cue_that_is_no_utf8_is_guessed_and_said(tmp_path: Path) -> None:
    text = "1\n00:00:00,500 --> 00:00:00,900\ncaf\u00e9\n".encode("latin-1")
    found = probe(_with_text(tmp_path, text))
    assert [c.text for c in found.subtitles] == ["caf\u00e9"]
    assert any("UTF-8" in d for d in found.degraded)


def test_a_drawing_is_not_spoken(tmp_path: Path) -> None:
    head = (
        "[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    )
    row = "Dialogue: 0,0:00:00.%d0,0:00:01.%d0,Default,,0,0,0,,%s\n"
    drawn = row % (5, 0, "{\\p1}m 0 0 l 100 0 100 100{\\p0}")
    spoken = row % (6, 2, "a, b, c, d, e, f, g, h, i {\\i1}j{\\i0}\\Nk")
    found = probe(_with_text(tmp_path, (head + drawn + spoken).encode(), "ass"))
    assert [c.text for c in found.subtitles] == ["a, b, c, d, e, f, g, h, i j\nk"]


def test_a_track_of_one_picture_is_not_the_video(tmp_path: Path) -> None:
    """As in animated AVIF, whose still stands beside the sequence."""
    path = tmp_path / "two.mp4"
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("mpeg4", rate=25) for _ in range(2)]
        for stream in streams:
            stream.width, stream.height = 64, 48
        for stream, count in zip(streams, (1, 10), strict=True):
            for i in range(count):
                picture = np.full((48, 64, 3), 20 * i, np.uint8)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        for stream in streams:
            container.mux(stream.encode(None))
    video = probe(path).video
    assert video is not None
    assert (video.stream_index, video.frames_declared) == (1, 10)


def test_a_strange_colour_matrix_is_said(tmp_path: Path) -> None:
    frames = noise_free_scene(1, 5, (64, 48))
    path = write_video(tmp_path / "a.mp4", frames, options={"x264-params": "colormatrix=YCgCo"})
    assert "unknown_colour_matrix" in {p.code for p in probe(path).problems}


def test_sound_alone(tmp_path: Path) -> None:
    found = probe(
        write_video(tmp_path / "a.wav", [], audio=tone(440, 1.0), audio_codec="pcm_s16le")
    )
    assert found.media.kind == "audio"
    assert found.audio is not None
    assert found.audio.sample_rate_hz == 16_000
