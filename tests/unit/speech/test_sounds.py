import numpy as np
import pytest
from made_scenes import click_train, silence, tone

from engines.contracts.speech import ListenParams
from engines.speech.onsets import find_onsets
from engines.speech.registry import load_sound_classifier
from engines.speech.sounds import HeardClasses, HeardSpeech, label_sounds
from engines.speech.spectrum import spectral_track

RATE = 16_000
TIMES = (0.5, 1.0037, 2.3, 2.71, 4.4444)
NO_SPEECH = HeardSpeech([], np.zeros(0, dtype=np.float32), "fake")


def _pcm(sound: np.ndarray) -> np.ndarray:
    return np.clip(sound * 32767, -32768, 32767).astype(np.int16)


def _onsets(sound: np.ndarray, ignore=()) -> list[float]:
    pcm = _pcm(sound)
    found = find_onsets(pcm, spectral_track(pcm).flux, [(-1.0, 0.1), *ignore])
    return [onset.start_s for onset in found]


def _noise(seconds: float, level: float, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, level, round(seconds * RATE))


def _bells() -> np.ndarray:
    sound = np.zeros(6 * RATE)
    for start in TIMES:
        at = round(start * RATE)
        t = np.arange(len(sound) - at) / RATE
        ring = sum(np.sin(2 * np.pi * f * t) for f in (523, 1307, 2219))
        sound[at:] += 0.1 * ring * np.exp(-t / 0.4)
    return sound


def _beeps() -> np.ndarray:
    sound = silence(6.0)
    for start in TIMES:
        at = round(start * RATE)
        sound[at : at + 4000] += tone(880, 0.25)
    return sound


@pytest.mark.parametrize(
    "sound",
    [
        click_train(TIMES, 6.0),
        click_train(TIMES, 6.0) + _noise(6.0, 0.02),
        _beeps() + _noise(6.0, 0.003),
        _bells(),
    ],
    ids=["clicks", "clicks in noise", "beeps", "bells that ring into each other"],
)
def test_each_transient_is_found_once_within_20_ms(sound):
    found = _onsets(sound)
    assert len(found) == len(TIMES)
    assert np.abs(np.array(found) - TIMES).max() < 0.02


_T = np.arange(6 * RATE) / RATE


@pytest.mark.parametrize(
    "sound",
    [
        _noise(6.0, 0.1),
        0.3 * np.sin(2 * np.pi * 300 * _T),
        _noise(6.0, 0.3) * (_T / 6) ** 2,
        _noise(6.0, 0.1) * (0.5 + 0.5 * np.sin(2 * np.pi * 4 * _T)),
        0.3 * np.sin(2 * np.pi * 440 * _T + 8 * np.sin(2 * np.pi * 5 * _T)),
        np.concatenate([np.zeros(2 * RATE), _noise(4.0, 1 / 32768)]),
    ],
    ids=["noise", "tone", "fade in", "waves", "vibrato", "dither after digital silence"],
)
def test_what_swells_or_stays_is_no_onset(sound):
    assert _onsets(sound) == []


def test_onsets_in_ignored_spans_are_left_out():
    assert _onsets(click_train(TIMES, 6.0), ignore=[(0.9, 2.5)]) == pytest.approx(
        [0.5, 2.71, 4.4444], abs=0.02
    )


def test_spectra_do_not_depend_on_the_block(monkeypatch):
    pcm = _pcm(_bells())
    whole = spectral_track(pcm)
    monkeypatch.setattr("engines.speech.spectrum._BLOCK_FRAMES", 37)
    parts = spectral_track(pcm)
    np.testing.assert_allclose(parts.flux, whole.flux, atol=1e-3)
    np.testing.assert_allclose(parts.tone_share, whole.tone_share, atol=1e-4)


def _named(labels, name):
    return [(round(x.span.start_s, 2), round(x.span.end_s, 2)) for x in labels if x.label == name]


def test_silence_tone_and_onset_on_the_asset_clock():
    sound = np.concatenate([_noise(1.0, 0.01), silence(2.0), tone(880, 1.0), _noise(1.0, 0.01)])
    labels = label_sounds(_pcm(sound), 10 * RATE, [], NO_SPEECH, None)
    assert all(label.vocabulary == "sound" for label in labels)
    ((start, end),) = _named(labels, "silence")
    assert (start, end) == pytest.approx((11.0, 13.0), abs=0.03)
    ((start, end),) = _named(labels, "tone")
    assert (start, end) == pytest.approx((13.0, 14.0), abs=0.05)
    assert any(abs(start - 13.0) < 0.02 for start, _ in _named(labels, "onset"))


def test_a_gap_is_neither_silence_nor_an_onset():
    sound = np.concatenate([_noise(1.0, 0.1), silence(2.0), _noise(1.0, 0.1)])
    labels = label_sounds(_pcm(sound), 0, [(1.0, 3.0)], NO_SPEECH, None)
    assert labels == ()


def test_syllables_are_no_onsets():
    clicks = _pcm(click_train(TIMES, 6.0))
    speech = HeardSpeech([(0.4, 3.0)], np.full(188, 0.9, dtype=np.float32), "fake")
    labels = label_sounds(clicks, 0, [], speech, None)
    assert _named(labels, "speech") == [(0.4, 3.0)]
    assert _named(labels, "onset")[0][0] == 4.44


def test_music_is_labelled_and_a_steady_tone_is_not_music():
    classifier = load_sound_classifier(ListenParams())
    if classifier is None:
        pytest.skip("no sound classifier is installed")
    rng = np.random.default_rng(5)
    pitch = np.repeat(220 * 2 ** (rng.integers(0, 12, 16) / 12), RATE // 2)
    t = np.arange(len(pitch)) / RATE
    tune = sum(np.sin(2 * np.pi * k * pitch * t) / k for k in range(1, 5)) * np.exp(-4 * (t % 0.5))
    for sound, music in ((0.3 * tune, True), (tone(440, 8.0), False)):
        pcm = _pcm(sound)
        classes = HeardClasses(classifier.probabilities(pcm), classifier.name)
        labels = label_sounds(pcm, 0, [], NO_SPEECH, classes)
        assert bool(_named(labels, "music")) is music


@pytest.mark.parametrize("n", [0, 1, 100, 1599, 1601])
def test_tiny_sounds_do_not_break(n):
    classifier = load_sound_classifier(ListenParams())
    pcm = np.full(n, 1000, dtype=np.int16)
    classes = HeardClasses(classifier.probabilities(pcm), "x") if classifier else None
    assert all(x.label in {"silence", "tone"} for x in label_sounds(pcm, 0, [], NO_SPEECH, classes))
