"""What would listen, told without loading a model: part of the cache key."""

import hashlib

from engines.contracts.speech import ListenParams
from engines.runtime.manifest import EngineDescription, revision
from engines.speech.registry import (
    ENGLISH_ONLY,
    NONE,
    SOUND_MODELS,
    VOICE_MODELS,
    choose_sound_classifier,
    choose_voice_detector,
    library_version,
    recogniser_revision,
)


def describe(params: ListenParams) -> EngineDescription:
    """Engine, revision over all three models, device and threads; cheap, nothing is loaded.

    A directory of the user's own is hashed at its first use in a process.

    Raises:
        UsageError: an unknown name in ``params``.
        ModelMissingError: a model that is needed is not installed.
    """
    model, recogniser = recogniser_revision(params)
    voice = choose_voice_detector(params)
    sounds = choose_sound_classifier(params)
    parts = [recogniser, revision(VOICE_MODELS[voice])]
    if sounds != NONE:
        parts.append(revision(SOUND_MODELS[sounds]))
    return EngineDescription(
        engine=f"faster-whisper {library_version('faster-whisper')} + {voice} + {sounds}",
        model=model,
        model_revision=hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        device=params.device,
        threads=params.threads,
        degraded=degradations(params, model, sounds),
    )


def degradations(params: ListenParams, model: str, sounds: str) -> tuple[str, ...]:
    """What is weaker than asked for: said on the run, never passed over."""
    notes = []
    if params.recogniser == "auto" and model == ENGLISH_ONLY:
        notes.append(
            "the multilingual speech model is not installed: speech in other languages than "
            "English is left out or flagged"
        )
    if params.sounds == "auto" and sounds == NONE:
        notes.append("no sound classifier is installed: music and singing are not labelled")
    return tuple(notes)
