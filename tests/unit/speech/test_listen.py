"""The whole engine on real models: what it hears, and above all what it does not."""

import csv
import re
import time
from pathlib import Path

import av
import numpy as np
import pytest
from made_scenes import click_train, tone

from engines.contracts.speech import ListenDocument, ListenParams
from engines.errors import ModelMissingError, UsageError
from engines.speech.describe import describe
from engines.speech.listen import listen
from engines.speech.registry import choose_recogniser, load_recogniser

RATE = 16_000


def _pcm(sound: np.ndarray) -> np.ndarray:
    return np.clip(sound * 32767, -32768, 32767).astype(np.int16)[None]


_RNG = np.random.default_rng(11)
QUIET = {
    "silence": np.zeros(10 * RATE),
    "faint noise": _RNG.uniform(-0.01, 0.01, 10 * RATE),
    "loud noise": _RNG.normal(0, 0.2, 10 * RATE),
    "tone": tone(440, 10.0),
    "clicks": click_train([1, 2.5, 7], 10.0),
}


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_written_down_where_nothing_is_said(name):
    document = listen(_pcm(QUIET[name]), 0, (), ListenParams())
    assert document.utterances == ()
    assert document.coverage.covered_s == 10.0
    assert document.coverage.trust is None
    assert "speech" not in {label.label for label in document.sounds}


@pytest.mark.parametrize("n", [0, 1, 100, 511, 1600])
@pytest.mark.parametrize("channels", [1, 2])
def test_next_to_no_sound(n, channels):
    document = listen(np.zeros((channels, n), dtype=np.int16), 0, (), ListenParams())
    assert document.utterances == ()
    assert document.coverage.covered_s == n / RATE


def test_gaps_are_told_as_skipped_on_the_asset_clock():
    document = listen(_pcm(QUIET["faint noise"]), 5 * RATE, ((7.0, 9.5), (14, 99)), ListenParams())
    assert document.coverage.skipped_s == pytest.approx(2.5 + 1.0)
    assert document.coverage.covered_s == pytest.approx(10 - 3.5)
    assert "without decoded sound" in (document.coverage.reason or "")


def test_the_callers_mistakes_are_named():
    with pytest.raises(UsageError, match="int16"):
        listen(np.zeros((1, 5), dtype=np.float32), 0, (), ListenParams())
    with pytest.raises(UsageError, match=r"'siri'.*whisper-base"):
        describe(ListenParams(recogniser="siri"))
    with pytest.raises(UsageError, match="silero-onnx"):
        describe(ListenParams(voice="ear"))
    with pytest.raises(UsageError, match="model_dir"):
        describe(ListenParams(recogniser="directory"))


def test_description_names_the_model_and_changes_with_it(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"weights")
    own = ListenParams(recogniser="directory", model_dir=str(tmp_path))
    seen = {
        describe(params).model_revision
        for params in (
            ListenParams(recogniser="whisper-tiny.en"),
            ListenParams(recogniser="whisper-tiny.en", voice="pysilero"),
            ListenParams(recogniser="whisper-tiny.en", sounds="none"),
            own,
        )
    }
    assert len(seen) == 4
    before = describe(own).model_revision
    (tmp_path / "model.bin").write_bytes(b"other weights")
    assert describe(own).model_revision != before


def test_describing_loads_no_model():
    describe(ListenParams(recogniser="whisper-tiny.en"))
    started = time.process_time()
    describe(ListenParams(recogniser="whisper-tiny.en"))
    assert time.process_time() - started < 0.2


def test_a_directory_that_is_no_model_is_refused_before_anything_is_fetched(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    params = ListenParams(recogniser="directory", model_dir=str(tmp_path))
    with pytest.raises(ModelMissingError, match=r"model\.bin, tokenizer\.json"):
        load_recogniser(params)
    with pytest.raises(ModelMissingError, match="no model directory"):
        load_recogniser(params.model_copy(update={"model_dir": str(tmp_path / "absent")}))


def _decode(path: Path) -> tuple[np.ndarray, float]:
    """int16 [channels, n] at 16 kHz and the time of the first sample, by PyAV alone."""
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        layout = "stereo" if stream.channels > 1 else "mono"
        resampler = av.AudioResampler("s16p", layout, RATE)
        blocks, start = [], 0.0
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except av.error.InvalidDataError:
                continue
            for frame in frames:
                if not blocks and frame.pts is not None:
                    start = float(frame.pts * frame.time_base)
                frame.pts = None
                blocks += [out.to_ndarray() for out in resampler.resample(frame)]
        blocks += [out.to_ndarray() for out in resampler.resample(None)]
    return np.concatenate(blocks, axis=1), start


def _hear(path: Path, params: ListenParams | None = None) -> ListenDocument:
    audio, start = _decode(path)
    return listen(audio, round(start * RATE), (), params or ListenParams())


def _text(document: ListenDocument) -> str:
    return " ".join(utterance.text for utterance in document.utterances)


def _words(text: str) -> list[str]:
    return re.sub(r"[^a-z' ]", " ", text.lower()).split()


def _distance(a: list[str], b: list[str]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("recogniser", ["whisper-tiny.en", "auto"])
def test_word_error_rate_over_the_transcripts(corpus_dir, recogniser):
    errors = total = 0
    with (corpus_dir / "manifest.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            match = re.search(r'transcript\b[^"]*="([^"]*)"', row["ground_truth"])
            path = corpus_dir / row["file"]
            if match and path.exists():
                wanted = _words(match[1])
                heard = _hear(path, ListenParams(recogniser=recogniser))
                errors += _distance(wanted, _words(_text(heard)))
                total += len(wanted)
    assert total > 100
    assert errors / total <= 0.12


@pytest.mark.corpus
@pytest.mark.slow
def test_words_stand_where_they_are_said_and_twice_alike(corpus_dir):
    path = corpus_dir / "real" / "jfk.flac"
    document = _hear(path)
    starts = {w.text.lower(): w.span.start_s for u in document.utterances for w in u.words}
    # Read off a spectrogram of the recording.
    for word, at in {"and": 0.3, "fellow": 1.2, "ask": 8.2, "country": 9.7}.items():
        assert starts[word] == pytest.approx(at, abs=0.5)
    assert _hear(path) == document


@pytest.mark.corpus
@pytest.mark.slow
def test_late_sound_starts_late(corpus_dir):
    audio, start = _decode(corpus_dir / "odd" / "audio_starts_late.mp4")
    document = listen(audio, round(start * RATE), (), ListenParams())
    assert _words(_text(document)) == ["one", "two", "three"]
    loud = np.abs(audio[0].astype(int)) > 1000
    assert document.utterances[0].span.start_s == pytest.approx(
        start + int(np.argmax(loud)) / RATE, abs=0.1
    )


@pytest.mark.corpus
@pytest.mark.slow
def test_each_channel_has_its_speaker(corpus_dir):
    document = _hear(corpus_dir / "real" / "stereo_two_speakers.wav")
    said = {u.speaker: _words(u.text) for u in document.utterances}
    assert said["right"] == ["the", "horizon", "seems", "extremely", "distant"]
    assert "wizard" in said["left"]


@pytest.mark.corpus
@pytest.mark.slow
def test_a_change_of_language_is_followed(corpus_dir):
    params = ListenParams()
    if choose_recogniser(params) == "whisper-tiny.en":
        pytest.skip("the multilingual model is not installed")
    document = _hear(corpus_dir / "real" / "english_then_german.mp3")
    languages = [u.language for u in document.utterances]
    assert languages == sorted(languages, reverse=True)
    assert set(languages) == {"en", "de"}
    german = " ".join(u.text for u in document.utterances if u.language == "de")
    assert "Software" in german
    assert "verkaufen" in german


@pytest.mark.corpus
@pytest.mark.slow
def test_an_english_only_model_leaves_german_out(corpus_dir):
    document = _hear(
        corpus_dir / "real" / "english_then_german.mp3", ListenParams(recogniser="whisper-tiny.en")
    )
    assert max(u.span.end_s for u in document.utterances) < 31.5
    assert "too little trust" in (document.coverage.reason or "")
    assert "permission" in _words(_text(document))


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "odd/garbage_prefix_200k.mp3",
        "odd/silent_audio.mp4",
        "odd/audio_71_48k.mkv",
        "real/scene_chaplin.mp4",
        "real/scene_drummer_portrait.mp4",
    ],
)
def test_music_and_garbage_are_not_written_down(corpus_dir, name):
    assert _hear(corpus_dir / name).utterances == ()


@pytest.mark.corpus
@pytest.mark.slow
def test_speech_noise_speech_with_a_gap_in_between(corpus_dir):
    speech, _ = _decode(corpus_dir / "real" / "librivox_sense_0930.wav")
    noise = (np.random.default_rng(2).normal(0, 0.01, (1, 40 * RATE)) * 32767).astype(np.int16)
    hole = np.zeros((1, 5 * RATE), dtype=np.int16)
    audio = np.concatenate([speech, noise, hole, speech], axis=1)
    first_s = speech.shape[1] / RATE
    second_s = first_s + 45
    gap = (first_s + 40, second_s)
    document = listen(audio, 0, (gap,), ListenParams(recogniser="whisper-tiny.en"))
    said = ["he", "might", "even", "have", "been", "made", "amiable", "himself"]
    assert _words(_text(document)) == said * 2
    starts = [u.span.start_s for u in document.utterances]
    assert starts[0] < 0.5
    assert second_s <= starts[-1] < second_s + 0.5
    assert document.coverage.skipped_s == pytest.approx(5.0, abs=0.01)
    assert all(
        u.span.end_s < first_s + 0.3 or u.span.start_s >= second_s for u in document.utterances
    )
