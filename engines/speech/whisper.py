"""Whisper on CTranslate2 through faster-whisper, one 30 s window at a time.

Source: Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, 2022. Decoding
is deterministic: beam search at temperature 0 only. The usual fallback to sampling would make a
cached transcript differ from a fresh one; windows that loop are decoded again with repeated
phrases forbidden instead (see ``engines.speech.listen``).
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engines.errors import (
    EngineError,
    ModelMissingError,
    NotFiniteError,
    OutOfMemoryError,
    UsageError,
)
from engines.runtime.manifest import verified_bytes
from engines.speech.audio import SAMPLE_RATE_HZ, Signal
from engines.speech.recogniser import HeardSegment, HeardWord, Recognition

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

MAX_WINDOW_S = 30.0
_REQUIRED_FILES = ("model.bin", "config.json", "tokenizer.json")
_FIGURE = re.compile(r"[0-9%$£€½²³]")
_LOOP_NGRAM = 4
_MIN_AUDIO_S = 0.1
# No speech gives more tokens than this; a decoder that loops on a short noise stops early.
_MAX_TOKENS_PER_S = 20
_SPARE_TOKENS = 32
_MAX_TOKENS = 400
_SURE_ENGLISH = 0.65
_FOREIGN = 0.55
_ENOUGH_WORDS = 8
_OPEN_LANGUAGE = 0.4


@dataclass(frozen=True)
class DecodingOptions:
    """What of ``ListenParams`` the decoder needs."""

    beam_size: int
    spoken_numerals: bool


class WhisperRecogniser:
    """See ``Recogniser``. Loads once; a model's weights stay in memory with it."""

    def __init__(self, name: str, model: "WhisperModel", options: DecodingOptions) -> None:
        """Wrap a loaded model; see ``load_packaged`` and ``load_directory``."""
        self.name = name
        self.multilingual: bool = model.model.is_multilingual
        self._model = model
        self._options = options

    def recognise(
        self, audio: Signal, *, language: str | None = None, careful: bool = False
    ) -> Recognition:
        """See ``Recogniser``.

        Raises:
            UsageError: more than 30 s, or a language the model does not have.
            OutOfMemoryError: the device cannot hold one window.
            NotFiniteError: NaN or infinity came out.
        """
        if len(audio) > MAX_WINDOW_S * SAMPLE_RATE_HZ:
            msg = f"{len(audio) / SAMPLE_RATE_HZ:.1f} s of sound; one window holds {MAX_WINDOW_S}"
            raise UsageError(msg)
        if len(audio) < _MIN_AUDIO_S * SAMPLE_RATE_HZ:
            return Recognition(language, 0.0, ())
        if language is not None:
            self._check_language(language)
        try:
            return self._recognise(audio, language, careful=careful)
        except RuntimeError as error:
            if "out of memory" not in str(error).lower():
                raise
            msg = f"one window of sound does not fit beside {self.name} in memory"
            raise OutOfMemoryError(msg) from error

    def _recognise(self, audio: Signal, language: str | None, *, careful: bool) -> Recognition:
        features = self._model.feature_extractor(audio)
        encoded = self._encode(features)
        probability = 1.0
        chosen = language or "en"
        if language is None and self.multilingual:
            chosen, probability = self._ranked_languages(encoded)[0]
        seconds = len(audio) / SAMPLE_RATE_HZ
        segments = self._decode(features, encoded, chosen, seconds, careful=careful)
        if not all(math.isfinite(segment.mean_log_probability) for segment in segments):
            msg = f"{self.name} gave a probability that is not finite"
            raise NotFiniteError(msg)
        if self.multilingual or language is not None:
            return Recognition(chosen, probability, segments)
        return Recognition(*_whether_english(segments), segments)

    def language_probabilities(self, audio: Signal) -> dict[str, float]:
        """See ``Recogniser``."""
        if not self.multilingual or len(audio) < _MIN_AUDIO_S * SAMPLE_RATE_HZ:
            return {}
        return dict(self._ranked_languages(self._encode(self._model.feature_extractor(audio))))

    def _check_language(self, language: str) -> None:
        if language not in self._model.supported_languages:
            known = ", ".join(sorted(self._model.supported_languages))
            msg = f"{self.name} has no language {language!r}; it has {known}"
            raise UsageError(msg)

    def _encode(self, features: object) -> object:
        from faster_whisper.audio import pad_or_trim

        return self._model.encode(pad_or_trim(features))

    def _ranked_languages(self, encoded: object) -> list[tuple[str, float]]:
        ranked = self._model.model.detect_language(encoded)[0]
        return [(token[2:-2], float(probability)) for token, probability in ranked]

    def _decode(
        self, features: object, encoded: object, language: str, seconds: float, *, careful: bool
    ) -> tuple[HeardSegment, ...]:
        """Beam search with word times from cross-attention; re-uses the encoder's output."""
        from faster_whisper.tokenizer import Tokenizer

        tokenizer = Tokenizer(
            self._model.hf_tokenizer, self.multilingual, task="transcribe", language=language
        )
        options = self._transcription_options(tokenizer, seconds, careful=careful)
        found = self._model.generate_segments(features, tokenizer, options, False, encoded)
        segments = []
        for segment in found:
            words = tuple(
                HeardWord(
                    word.word.strip(),
                    float(word.start),
                    float(word.end),
                    float(word.probability),
                    glued=not word.word[0].isspace(),
                )
                for word in segment.words or ()
                if word.word.strip()
            )
            if words:
                segments.append(
                    HeardSegment(words, float(segment.avg_logprob), float(segment.no_speech_prob))
                )
        return tuple(segments)

    def _transcription_options(self, tokenizer: object, seconds: float, *, careful: bool) -> object:
        from faster_whisper.transcribe import TranscriptionOptions, get_suppressed_tokens

        suppressed = [-1, *(self._figure_tokens if self._options.spoken_numerals else ())]
        return TranscriptionOptions(
            beam_size=self._options.beam_size,
            best_of=1,
            patience=1,
            length_penalty=1,
            repetition_penalty=1,
            no_repeat_ngram_size=_LOOP_NGRAM if careful else 0,
            log_prob_threshold=None,
            no_speech_threshold=None,
            compression_ratio_threshold=None,
            condition_on_previous_text=False,
            prompt_reset_on_temperature=0.5,
            temperatures=[0.0],
            initial_prompt=None,
            prefix=None,
            suppress_blank=True,
            suppress_tokens=get_suppressed_tokens(tokenizer, suppressed),
            without_timestamps=False,
            max_initial_timestamp=1.0,
            word_timestamps=True,
            prepend_punctuations="\"'“¿([{-",
            append_punctuations="\"'.。,，!！?？:：”)]}、",  # noqa: RUF001
            multilingual=False,
            max_new_tokens=min(_MAX_TOKENS, round(_MAX_TOKENS_PER_S * seconds) + _SPARE_TOKENS),
            clip_timestamps="0",
            hallucination_silence_threshold=None,
            hotwords=None,
        )

    @cached_property
    def _figure_tokens(self) -> tuple[int, ...]:
        """Tokens with a figure or unit sign: without them numbers come out as they were said."""
        tokenizer = self._model.hf_tokenizer
        first_special = tokenizer.token_to_id("<|endoftext|>")
        return tuple(i for i in range(first_special) if _FIGURE.search(tokenizer.decode([i])))


def _whether_english(segments: tuple[HeardSegment, ...]) -> tuple[str | None, float]:
    """What an English-only model's own doubt says of the language: code or None, probability.

    It writes English-looking words for any language, but with little confidence: on English read
    aloud its words have a mean probability of 0.8 to 0.97, on German 0.4 to 0.55.
    """
    sure = [word.probability for segment in segments for word in segment.words]
    mean = sum(sure) / len(sure) if sure else 0.0
    if mean >= _SURE_ENGLISH:
        return "en", mean
    if len(sure) >= _ENOUGH_WORDS and mean < _FOREIGN:
        return None, 0.0
    return None, _OPEN_LANGUAGE


def load_packaged(name: str, *, device: Literal["cpu", "cuda"], threads: int) -> "WhisperModel":
    """Load a packaged model from bytes that were checked against its manifest.

    Raises:
        ModelMissingError, ModelHashError: see ``verified_bytes``.
        EngineError: the library cannot load it.
    """
    return _load(name, device, threads, files=verified_bytes(name))


def load_directory(path: Path, *, device: Literal["cpu", "cuda"], threads: int) -> "WhisperModel":
    """Load a CTranslate2 Whisper directory of the user's own; nothing is fetched.

    Raises:
        ModelMissingError: a file the loader needs is not there (it would be downloaded else).
        EngineError: not a Whisper model, or a precision this device does not have.
    """
    from faster_whisper.feature_extractor import FeatureExtractor

    missing = [name for name in _REQUIRED_FILES if not (path / name).is_file()]
    if missing:
        msg = f"{path} has no {', '.join(missing)}: make it with ct2-transformers-converter"
        raise ModelMissingError(msg)
    model = _load(str(path), device, threads, files=None)
    mel_bands = int(model.model.n_mels)
    if len(model.feature_extractor.mel_filters) != mel_bands:
        # Models from large-v3 on take 128 bands; a directory without its preprocessor file
        # leaves the extractor at 80, which fails deep inside the encoder.
        model.feature_extractor = FeatureExtractor(feature_size=mel_bands)
    return model


def _load(
    source: str, device: Literal["cpu", "cuda"], threads: int, *, files: dict[str, bytes] | None
) -> "WhisperModel":
    from faster_whisper import WhisperModel

    try:
        return WhisperModel(
            source,
            device=device,
            compute_type="int8" if device == "cpu" else "int8_float16",
            cpu_threads=threads,
            local_files_only=True,
            files=files,
        )
    except (RuntimeError, ValueError) as error:
        msg = f"{source} cannot be loaded on {device}: {error}"
        raise EngineError(msg) from error
