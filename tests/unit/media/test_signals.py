"""Signals against a plain loop over pairs of frames, and however the frames come in."""

import numpy as np
import numpy.typing as npt
import pytest

from engines.media.signals import CONTEXT, LAGS, SIGNAL_NAMES, SignalBuffer, slow_lag

UInt8Array = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]

_SLOW = 20


def _thumbs(count: int = 300) -> UInt8Array:
    """uint8 [count, 27, 48, 4] RGBA: textures that pan, with a new one every 37 frames."""
    rng = np.random.default_rng(5)
    frames = []
    for number in range(count):
        if number % 37 == 0:
            texture = rng.integers(0, 256, (40, 70, 3)).astype(np.uint8)
        shift = number % 37 // 3
        frame = np.full((27, 48, 4), 255, dtype=np.uint8)
        frame[..., :3] = texture[shift : shift + 27, shift : shift + 48]
        frames.append(frame)
    return np.stack(frames)


def _run(thumbs: UInt8Array, parts: list[int], context: UInt8Array | None = None) -> FloatArray:
    """Signals of all thumbs, taken whenever the buffer is full and at the ends of ``parts``."""
    buffer = SignalBuffer(_SLOW, context)
    rows = []
    for number, thumb in enumerate(thumbs):
        if buffer.push(thumb) or number in parts:
            rows.append(buffer.take()[1])
    rows.append(buffer.take()[1])
    return np.concatenate(rows).astype(np.float64)


def _luma(thumb: UInt8Array) -> FloatArray:
    weighted = thumb[..., :3].astype(np.float64) @ np.array([77.0, 150.0, 29.0])
    return np.asarray(weighted / (256 * 255), dtype=np.float64)


def _histogram(thumb: UInt8Array) -> FloatArray:
    counts = np.zeros((8, 8, 8))
    for r, g, b in thumb[..., :3].reshape(-1, 3) // 32:
        counts[r, g, b] += 1
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def _after_best_shift(now: FloatArray, past: FloatArray) -> float:
    inner = now[4:-4:2, 4:-4:2]
    best = np.inf
    for dy in (-4, -2, -1, 0, 1, 2, 4):
        for dx in (-4, -2, -1, 0, 1, 2, 4):
            moved = past[4 + dy : 23 + dy : 2, 4 + dx : 44 + dx : 2]
            error = (moved - moved.mean()) - (inner - inner.mean())
            best = min(best, float(np.abs(error).mean()))
    return best


def test_each_signal_is_what_its_name_says() -> None:
    thumbs = _thumbs(120)
    found = dict(zip(SIGNAL_NAMES, _run(thumbs, []).T, strict=True))
    luma = [_luma(t) for t in thumbs]
    histograms = [_histogram(t) for t in thumbs]
    for at in (0, 1, 7, 36, 37, 38, 60, 74, 119):
        assert found["luma"][at] == pytest.approx(luma[at].mean(), abs=1e-5)
        assert found["contrast"][at] == pytest.approx(luma[at].std(), abs=1e-5)
        change = dict.fromkeys((*LAGS, _SLOW), 0.0)
        distance = dict.fromkeys((1, 2, _SLOW), 0.0)
        for lag in change:
            if at >= lag:
                change[lag] = np.abs(luma[at] - luma[at - lag]).mean()
        for lag in distance:
            if at >= lag:
                distance[lag] = np.abs(histograms[at] - histograms[at - lag]).sum() / 2
        for lag in LAGS:
            assert found[f"change{lag}"][at] == pytest.approx(change[lag], abs=1e-5)
        for name, lag in (("histogram", 1), ("histogram2", 2), ("histogram_slow", _SLOW)):
            assert found[name][at] == pytest.approx(distance[lag], abs=1e-5)
        for name, lag, worth in (("residual", 1, 0.05), ("residual_slow", _SLOW, 0.19)):
            expected = change[lag]
            if np.sqrt(change[lag] * distance[lag]) > worth:
                expected = min(expected, _after_best_shift(luma[at], luma[at - lag]))
            assert found[name][at] == pytest.approx(expected, abs=1e-5)


def test_a_pan_is_compensated_and_a_cut_is_not() -> None:
    found = dict(zip(SIGNAL_NAMES, _run(_thumbs(40), []).T, strict=True))
    assert found["residual"][3] < 0.01 < found["change1"][3]
    assert found["residual"][37] > 0.1


def test_the_same_however_the_frames_are_taken() -> None:
    thumbs = _thumbs()
    at_once = _run(thumbs, [])
    np.testing.assert_allclose(_run(thumbs, [0, 1, 30, 31, 33, 200]), at_once, atol=1e-6)


@pytest.mark.parametrize("done", [1, 5, CONTEXT, 130])
def test_the_same_after_a_resumption(done: int) -> None:
    thumbs = _thumbs()
    before = thumbs[max(0, done - CONTEXT) : done, ..., :3]
    np.testing.assert_allclose(_run(thumbs[done:], [], before), _run(thumbs, [])[done:], atol=1e-6)


def test_thumbnails_come_back_without_their_fourth_byte() -> None:
    thumbs = _thumbs(40)
    buffer = SignalBuffer(_SLOW)
    for thumb in thumbs:
        buffer.push(thumb)
    assert np.array_equal(buffer.take()[0], thumbs[..., :3])
    assert buffer.take()[0].shape == (0, 27, 48, 3)


def test_the_slow_lag_follows_the_frame_rate() -> None:
    assert [slow_lag(rate) for rate in (1, 10, 25, 60, 1000)] == [8, 8, 20, 48, 48]
