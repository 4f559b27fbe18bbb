"""Cuts and gradual changes are found; flashes, pans and stillness are not taken for them."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from made_media import Picture, cut_sequence, noise_free_scene, write_video

from engines.contracts.media import SampleDocument, ShotParams, ShotsDocument
from engines.media.doubt import first_pass
from engines.media.shots import detect, find_shots
from engines.media.transnet import CORE, windows
from engines.media.wipes import find_wipes

Decode = Callable[..., tuple[SampleDocument, Path]]
FAST = ShotParams(second_look=False)
SMALL = (160, 120)


def _shots(
    decoded: Decode, path: Path, frames: list[Picture], params: ShotParams = FAST
) -> ShotsDocument:
    document, out = decoded(write_video(path, frames, 25, options={"crf": "20"}))
    return detect(document, out, params)


def _starts(found: ShotsDocument) -> list[int]:
    assert found.shots[0].start_frame == 0
    for one, other in zip(found.shots, found.shots[1:], strict=False):
        assert one.end_frame == other.start_frame
        assert one.span.end_pts == other.span.start_pts
    return [s.start_frame for s in found.shots[1:]]


@pytest.mark.parametrize("size", [(160, 120), (320, 180), (120, 216)])
def test_hard_cuts_to_the_frame(size: tuple[int, int], tmp_path: Path, decoded: Decode) -> None:
    frames, cuts = cut_sequence([30, 25, 40, 12, 33], size, seed=11)
    assert _starts(_shots(decoded, tmp_path / "c.mp4", frames)) == cuts


def test_a_shot_of_one_frame(tmp_path: Path, decoded: Decode) -> None:
    frames, cuts = cut_sequence([30, 1, 30], seed=3)
    assert _starts(_shots(decoded, tmp_path / "o.mp4", frames)) == cuts


@pytest.mark.parametrize("lengths", [[1, 40], [1, 1], [40, 1], [2, 30, 2]])
def test_cuts_beside_the_ends_of_the_file(
    lengths: list[int], tmp_path: Path, decoded: Decode
) -> None:
    frames, cuts = cut_sequence(lengths, SMALL, seed=3)
    assert _starts(_shots(decoded, tmp_path / "e.mp4", frames)) == cuts


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_few_short_shots_between_long_ones(length: int, tmp_path: Path, decoded: Decode) -> None:
    frames, cuts = cut_sequence([30, length, length, length, 30], SMALL, seed=11)
    assert _starts(_shots(decoded, tmp_path / "s.mp4", frames)) == cuts


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("level", [0, 255])
def test_a_cut_under_plain_frames_is_one_cut(
    level: int, length: int, tmp_path: Path, decoded: Decode
) -> None:
    take, other = noise_free_scene(1, 60, SMALL), noise_free_scene(2, 30, SMALL)
    plain = [np.full_like(take[0], level)] * length
    (start,) = _starts(_shots(decoded, tmp_path / "p.mp4", [*take[:30], *plain, *other]))
    assert 30 <= start <= 30 + length
    one_take = [*take[:30], *plain, *take[30 + length :]]
    assert _starts(_shots(decoded, tmp_path / "q.mp4", one_take)) == []


def test_a_cut_under_a_flash_is_one_cut(tmp_path: Path, decoded: Decode) -> None:
    take, other = noise_free_scene(1, 30, SMALL), noise_free_scene(2, 30, SMALL)
    lit = [(p * 0.1 + 229).astype(np.uint8) for p in take[-2:]]
    (start,) = _starts(_shots(decoded, tmp_path / "f.mp4", [*take[:-2], *lit, *other]))
    assert 28 <= start <= 30


@pytest.mark.parametrize("dimmer", [3, 5, 9])
def test_cuts_in_the_dark(dimmer: int, tmp_path: Path, decoded: Decode) -> None:
    frames, cuts = cut_sequence([30, 30], SMALL, seed=11)
    dark = [p // dimmer for p in frames]
    assert _starts(_shots(decoded, tmp_path / "d.mp4", dark)) == cuts
    flicker = [p // (dimmer + i % 2) for i, p in enumerate(frames[:30])]
    assert _starts(_shots(decoded, tmp_path / "k.mp4", flicker)) == []


@pytest.mark.parametrize("length", [1, 2, 3])
def test_flashes_are_no_cuts(length: int, tmp_path: Path, decoded: Decode) -> None:
    frames = [p.copy() for p in noise_free_scene(4, 90)]
    for start in (30, 60):
        for i in range(start, start + length):
            frames[i] = (frames[i].astype(int) * 2 + 90).clip(0, 255).astype(np.uint8)
    assert _starts(_shots(decoded, tmp_path / "f.mp4", frames)) == []


def test_stillness_and_black_are_one_shot(tmp_path: Path, decoded: Decode) -> None:
    black = [np.zeros((120, 160, 3), np.uint8)] * 100
    assert _starts(_shots(decoded, tmp_path / "b.mp4", black)) == []
    still = [noise_free_scene(2, 1)[0]] * 60
    assert _starts(_shots(decoded, tmp_path / "s.mp4", still)) == []


def test_long_black_between_two_scenes(tmp_path: Path, decoded: Decode) -> None:
    """Cut to black, three seconds of it, cut to another scene: two cuts."""
    before, after = noise_free_scene(1, 40), noise_free_scene(2, 40)
    black = [np.zeros_like(before[0])] * 75
    found = _shots(decoded, tmp_path / "b.mp4", [*before, *black, *after])
    assert _starts(found) == [40, 115]


def test_a_fade_through_black_is_one_change(tmp_path: Path, decoded: Decode) -> None:
    before, after = noise_free_scene(1, 50), noise_free_scene(2, 50)
    frames = [
        *before[:30],
        *((p * (1 - (i + 1) / 20)).astype(np.uint8) for i, p in enumerate(before[30:])),
        *[np.zeros_like(before[0])] * 6,
        *((p * ((i + 1) / 20)).astype(np.uint8) for i, p in enumerate(after[:20])),
        *after[20:],
    ]
    found = _shots(decoded, tmp_path / "f.mp4", frames)
    (start,) = _starts(found)
    assert 48 <= start <= 58
    assert found.shots[1].method == "fade"


@pytest.mark.parametrize(("other", "changes"), [(2, 1), (1, 0)])
def test_a_fade_through_white_is_a_change_if_another_scene_follows(
    other: int, changes: int, tmp_path: Path, decoded: Decode
) -> None:
    before, after = noise_free_scene(1, 45, SMALL), noise_free_scene(other, 45, SMALL)
    frames = [
        *before[:30],
        *(_mixed(p, 255, (i + 1) / 12) for i, p in enumerate(before[30:42])),
        *(_mixed(p, 255, 1 - (i + 1) / 12) for i, p in enumerate(after[:12])),
        *after[12:],
    ]
    found = _shots(decoded, tmp_path / "w.mp4", frames)
    assert len(_starts(found)) == changes
    for shot in found.shots[1:]:
        assert shot.method == "fade"
        assert 38 <= shot.start_frame <= 46


def test_a_pan_over_a_plain_wall_is_no_fade(tmp_path: Path, decoded: Decode) -> None:
    one, other = noise_free_scene(1, 1, SMALL)[0], noise_free_scene(2, 1, SMALL)[0]
    wide = np.concatenate([one, np.full((120, 180, 3), 225, np.uint8), other], axis=1)
    pan = [wide[:, x : x + 160] for x in range(0, wide.shape[1] - 159, 6)]
    frames = [*[pan[0]] * 20, *pan, *[pan[-1]] * 20]
    found = _shots(decoded, tmp_path / "w.mp4", frames)
    assert all(shot.method != "fade" for shot in found.shots)


@pytest.mark.parametrize("kind", ["left", "up", "circle"])
def test_wipes_by_their_moving_front(kind: str, tmp_path: Path, decoded: Decode) -> None:
    before, after = noise_free_scene(1, 60, (320, 180)), noise_free_scene(2, 60, (320, 180))
    frames = list(before[:40])
    yy, xx = np.mgrid[0:180, 0:320]
    place = {
        "left": 1 - xx / 320,
        "up": 1 - yy / 180,
        "circle": np.hypot(xx - 160, yy - 90) / 184,
    }[kind]
    frames += [
        np.where((place < (i + 1) / 21)[..., None], after[i], before[40 + i]) for i in range(20)
    ]
    frames += after[20:]
    found = _shots(decoded, tmp_path / "w.mp4", frames)
    (start,) = _starts(found)
    assert 40 <= start <= 60
    assert found.shots[1].method == "wipe"


def test_a_pan_is_no_wipe() -> None:
    wide = cv2.resize(np.concatenate(noise_free_scene(1, 3), axis=1), (48 * 4, 27))
    pan = np.stack([wide[:, x : x + 48] for x in range(0, 96, 2)])
    assert find_wipes(pan, 0, len(pan)) == []


def _mixed(one: Picture, other: Picture | int, share: float) -> Picture:
    return np.asarray(one * (1 - share) + other * share, dtype=np.uint8)


def _dissolve(path: Path, length: int = 18) -> Path:
    """A dissolve from frame 42 to 42 + ``length``, and 42 frames after it."""
    before, after = noise_free_scene(1, 42 + length), noise_free_scene(8, 42 + length)
    mixed = [
        _mixed(a, b, (i + 1) / (length + 1))
        for i, (a, b) in enumerate(zip(before[42:], after[:length], strict=True))
    ]
    return write_video(path, [*before[:42], *mixed, *after[length:]], 25)


def test_slow_dissolves_get_a_look_and_slow_movement_none(tmp_path: Path, decoded: Decode) -> None:
    document, out = decoded(_dissolve(tmp_path / "d.mp4", 75))
    found = first_pass(np.load(out / "signals.npy"), document.slow_lag)
    ((start, end),) = found.drawn_out
    assert start < 60
    assert end > 100
    wide = cv2.resize(noise_free_scene(1, 1)[0], (480, 240))
    pan = [wide[60:180, x : x + 160] for x in range(0, 240, 2)]
    document, out = decoded(write_video(tmp_path / "p.mp4", pan, 25))
    assert first_pass(np.load(out / "signals.npy"), document.slow_lag).drawn_out == ()


@pytest.mark.slow
@pytest.mark.parametrize("length", [50, 75])
def test_the_second_look_finds_dissolves_of_seconds(
    length: int, tmp_path: Path, decoded: Decode
) -> None:
    document, out = decoded(_dissolve(tmp_path / "d.mp4", length))
    found = detect(document, out, ShotParams())
    (start,) = _starts(found)
    assert 42 <= start <= 42 + length
    assert found.shots[1].method == "dissolve"


def test_a_second_look_that_comes_too_late_is_left_out_and_said(
    tmp_path: Path, decoded: Decode
) -> None:
    document, out = decoded(_dissolve(tmp_path / "d.mp4"))
    shots, (reason,) = find_shots(document, out, ShotParams(), stop_after_s=0.0)
    assert len(shots) == 1
    assert "had no second look" in reason


@pytest.mark.slow
def test_the_second_look_finds_dissolves(tmp_path: Path, decoded: Decode) -> None:
    import torch

    deterministic = torch.are_deterministic_algorithms_enabled()
    document, out = decoded(_dissolve(tmp_path / "d.mp4"))
    without = detect(document, out, FAST)
    found = detect(document, out, ShotParams())
    assert _starts(without) == []
    (start,) = _starts(found)
    assert 42 <= start <= 60
    assert found.shots[1].method == "dissolve"
    assert torch.are_deterministic_algorithms_enabled() == deterministic
    assert detect(document, out, ShotParams(max_windows=0)).degraded


def test_keyframes_show_each_shot_and_its_changes(tmp_path: Path, decoded: Decode) -> None:
    frames, cuts = cut_sequence([50, 50], seed=5)
    frames = [p.copy() for p in frames]
    for p in frames[75:]:
        p[60:180, 80:240] = (250, 250, 0)
    found = _shots(decoded, tmp_path / "k.mp4", frames, FAST)
    assert _starts(found) == cuts
    by_shot = [[k for k in found.keyframes if k.shot_ordinal == i] for i in range(2)]
    assert all(any(k.reason == "sharpest" for k in keys) for keys in by_shot)
    (peak,) = [k for k in by_shot[1] if k.reason == "change_peak"]
    assert 74 <= peak.frame <= 82
    for key in found.keyframes:
        shot = found.shots[key.shot_ordinal]
        assert shot.start_frame <= key.frame < shot.end_frame


def test_sound_alone_has_no_shots(tmp_path: Path, decoded: Decode) -> None:
    document, out = decoded(
        write_video(
            tmp_path / "a.wav", [], audio=np.zeros(8000, np.float32), audio_codec="pcm_s16le"
        )
    )
    found = detect(document, out, FAST)
    assert (found.shots, found.keyframes) == ((), ())
    assert found.coverage.reason is not None


def test_windows_cover_their_spans() -> None:
    for spans in (((10, 14),), ((0, 50), (120, 260)), ((3, 104),)):
        covered = {f for w in windows(spans) for f in range(w, w + CORE)}
        assert all(f in covered for start, end in spans for f in range(start, end))
    assert windows(((100, 110),)) == [80]
    assert windows(((100, 250), (400, 410)), 3) == [100, 330]
