"""The sound classifier as one more witness of whether words were spoken."""

from dataclasses import replace

from engines.speech.sound_classes import CLASSES, HOP_S, ClassProbabilities
from engines.speech.utterances import Draft

_SPEECH_ENOUGH = 0.4
_MUSIC_CLEAR = 0.7
_MARGIN_S = 0.2


def weigh_sound_classes(drafts: list[Draft], probabilities: ClassProbabilities) -> list[Draft]:
    """Halve the trust of words that stand in clear music without any sign of speech.

    The voice detector takes some instruments and animal sounds for voice, and a recogniser then
    finds a word for them. Two networks that were trained apart seldom make the same mistake.

    Args:
        drafts: utterances in seconds of the track.
        probabilities: float32 [n, 3] per 10 ms of the mixed sound.
    """
    return [_weigh(draft, probabilities) for draft in drafts]


def _weigh(draft: Draft, probabilities: ClassProbabilities) -> Draft:
    first = max(0, round((draft.span[0] - _MARGIN_S) / HOP_S))
    part = probabilities[first : round((draft.span[1] + _MARGIN_S) / HOP_S)]
    if not len(part):
        return draft
    speech = float(part[:, CLASSES.index("speech")].max())
    other = float(part[:, [CLASSES.index("music"), CLASSES.index("singing")]].max(axis=1).mean())
    if speech >= _SPEECH_ENOUGH or other < _MUSIC_CLEAR:
        return draft
    doubted = draft.marked("in_music")
    return replace(doubted, trust=doubted.trust / 2)
