import numpy as np
import pytest

from engines.errors import UsageError
from engines.speech.channels import channel_correlation, check_audio, mono_mix, split_tracks

RATE = 16_000


def _voice_like(seed: int, seconds: float = 6.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n = round(seconds * RATE)
    smooth = np.convolve(rng.normal(0, 1, n), np.hanning(40), "same")
    return (smooth / np.abs(smooth).max() * 9000).astype(np.int16)


class AlwaysVoice:
    name = "fake"

    def probabilities(self, pcm):
        return np.full(-(-len(pcm) // 512), 0.9, dtype=np.float32)


class NeverVoice:
    name = "fake"

    def probabilities(self, pcm):
        return np.zeros(-(-len(pcm) // 512), dtype=np.float32)


def test_the_same_sound_correlates_even_late_or_inverted():
    left = _voice_like(1)
    assert channel_correlation(np.stack([left, left])) == pytest.approx(1.0, abs=1e-3)
    late = np.roll(left, 160)
    assert channel_correlation(np.stack([left, late])) > 0.95
    assert channel_correlation(np.stack([left, -left])) == pytest.approx(-1.0, abs=1e-3)


def test_two_sounds_do_not_correlate():
    assert abs(channel_correlation(np.stack([_voice_like(1), _voice_like(2)]))) < 0.2


def test_two_speakers_make_two_tracks_and_a_mix_makes_one():
    apart = np.stack([_voice_like(1), _voice_like(2)])
    assert [t.speaker for t in split_tracks(apart, AlwaysVoice())] == ["left", "right"]
    assert [t.speaker for t in split_tracks(apart, NeverVoice())] == [None]
    wide = np.stack([apart[0], (0.6 * apart[0] + 0.4 * apart[1]).astype(np.int16)])
    assert [t.speaker for t in split_tracks(wide, AlwaysVoice())] == [None]
    assert [t.speaker for t in split_tracks(apart[:1], AlwaysVoice())] == [None]


def test_a_speaker_beside_silence_is_one_track_at_full_level():
    left = _voice_like(1)
    (track,) = split_tracks(np.stack([left, np.zeros_like(left)]), AlwaysVoice())
    assert track.speaker is None
    np.testing.assert_array_equal(track.pcm, left)


def test_mixing_opposite_phases_keeps_the_sound():
    left = _voice_like(1)
    mixed = mono_mix(np.stack([left, -left]))
    assert np.abs(mixed.astype(int) - left).max() <= 1


def test_mixing_full_scale_does_not_wrap():
    loud = np.full((2, RATE), 32767, dtype=np.int16)
    assert (mono_mix(loud) == 32767).all()


@pytest.mark.parametrize(
    "audio",
    [
        np.zeros((1, 10), dtype=np.float32),
        np.zeros(10, dtype=np.int16),
        np.zeros((3, 10), dtype=np.int16),
        np.zeros((0, 10), dtype=np.int16),
    ],
)
def test_other_shapes_and_types_are_refused(audio):
    with pytest.raises(UsageError, match="int16"):
        check_audio(audio)
