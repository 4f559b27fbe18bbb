import numpy as np
import pytest

from engines.contracts.speech import ListenParams
from engines.speech import voice
from engines.speech.registry import VOICE_MODELS, load_voice_detector
from engines.speech.voice import CHUNK_S, mean_probability, refine_edges, voiced_regions

RATE = 16_000


@pytest.fixture(params=sorted(VOICE_MODELS))
def detector(request):
    return load_voice_detector(ListenParams(voice=request.param))


def _noise(seconds: float, level: float, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(0, level, round(seconds * RATE)) * 32767).astype(np.int16)


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 16_000])
def test_one_probability_per_started_chunk(detector, n):
    out = detector.probabilities(_noise(n / RATE, 0.05))
    assert out.dtype == np.float32
    assert out.shape == (-(-n // 512),)
    assert ((out >= 0) & (out <= 1)).all()


def test_each_call_stands_alone(detector):
    pcm = _noise(1.0, 0.1)
    first = detector.probabilities(pcm)
    detector.probabilities(_noise(0.5, 0.9, seed=2))
    np.testing.assert_array_equal(detector.probabilities(pcm), first)


@pytest.mark.parametrize("level", [0.0, 0.005, 0.1])
def test_silence_and_noise_hold_no_voice(detector, level):
    assert voiced_regions(detector.probabilities(_noise(4.0, level))) == []


def test_blocks_carry_their_state(monkeypatch):
    detector = load_voice_detector(ListenParams(voice="silero-onnx"))
    pcm = _noise(3.0, 0.2)
    whole = detector.probabilities(pcm)
    monkeypatch.setattr(voice, "_CHUNKS_PER_CALL", 7)
    np.testing.assert_allclose(detector.probabilities(pcm), whole, atol=1e-5)


@pytest.mark.corpus
def test_speech_is_found_where_it_is(detector, corpus_dir):
    path = corpus_dir / "real" / "vosk_digits.wav"
    pcm = np.frombuffer(path.read_bytes()[44:], dtype=np.int16)
    regions = voiced_regions(detector.probabilities(pcm), min_pause_s=0.5)
    assert len(regions) == 3
    assert [round(start) for start, _ in regions] == [1, 4, 6]


def _probabilities(*runs: tuple[int, float]) -> np.ndarray:
    return np.concatenate([np.full(n, p, dtype=np.float32) for n, p in runs])


def test_regions_use_two_thresholds():
    found = voiced_regions(_probabilities((10, 0.1), (5, 0.9), (5, 0.4), (10, 0.1)))
    assert found == [(10 * CHUNK_S, 20 * CHUNK_S)]
    assert voiced_regions(_probabilities((10, 0.1), (10, 0.45), (10, 0.1))) == []


def test_short_pauses_join_and_clicks_go():
    stop = _probabilities((5, 0.9), (4, 0.0), (5, 0.9))
    assert voiced_regions(stop) == [(0.0, 14 * CHUNK_S)]
    pause = _probabilities((5, 0.9), (8, 0.0), (5, 0.9))
    assert len(voiced_regions(pause)) == 2
    assert voiced_regions(_probabilities((10, 0.0), (2, 1.0), (10, 0.0))) == []


def test_an_edge_moves_back_to_the_rise_and_not_beyond():
    pcm = np.zeros(2 * RATE, dtype=np.int16)
    pcm[:] = _noise(2.0, 0.0005)
    pcm[round(0.93 * RATE) : round(1.5 * RATE)] = _noise(0.57, 0.2)
    ((start, end),) = refine_edges(pcm, [(1.024, 1.504)])
    assert start == pytest.approx(0.93, abs=0.0101)
    assert end == 1.504
    ((start, _),) = refine_edges(_noise(2.0, 0.1), [(1.024, 1.504)])
    assert start == pytest.approx(1.024, abs=0.01)


def test_mean_probability_outside_the_sound_is_zero():
    values = _probabilities((10, 0.5), (10, 1.0))
    assert mean_probability(values, (0.0, 10 * CHUNK_S)) == pytest.approx(0.5)
    assert mean_probability(values, (99.0, 100.0)) == 0.0
