"""Text tracks in the file as a second witness beside recognised speech."""

from dataclasses import replace

from engines.contracts.media import SubtitleCue
from engines.speech.audio import Interval, overlap_s
from engines.speech.text_statistics import containment, similarity, tokens
from engines.speech.utterances import Draft

_AGREES = 0.5
_DIFFERS = 0.15
_MARGIN_S = 0.5
_MIN_WORDS = 3
_ISO_639_1 = {
    "eng": "en", "ger": "de", "deu": "de", "fre": "fr", "fra": "fr", "spa": "es", "ita": "it",
    "por": "pt", "dut": "nl", "nld": "nl", "swe": "sv", "nor": "no", "dan": "da", "fin": "fi",
    "pol": "pl", "cze": "cs", "ces": "cs", "rus": "ru", "ukr": "uk", "tur": "tr", "gre": "el",
    "ell": "el", "hun": "hu", "rum": "ro", "ron": "ro", "chi": "zh", "zho": "zh", "jpn": "ja",
    "kor": "ko", "ara": "ar", "heb": "he", "hin": "hi",
}  # fmt: skip


def two_letter(language: str | None) -> str | None:
    """ISO 639-1 code of a container's language tag (``eng``, ``de-AT``); None when unknown."""
    if not language:
        return None
    base = language.lower().split("-")[0].split("_")[0]
    return base if len(base) == 2 else _ISO_639_1.get(base)  # noqa: PLR2004


def weigh_subtitles(
    drafts: list[Draft], cues: tuple[SubtitleCue, ...], zero_s: float
) -> list[Draft]:
    """Compare each utterance with the cues that stand at its time.

    Agreement lifts trust halfway to 1. Difference lowers it to at most 0.6, only where the cue is
    known to be in the same language: a translation says nothing about the words.

    Args:
        drafts: utterances in seconds of the track.
        cues: on the asset clock.
        zero_s: the track's first sample on the asset clock.
    """
    return [_weigh(draft, cues, zero_s) for draft in drafts] if cues else drafts


def _weigh(draft: Draft, cues: tuple[SubtitleCue, ...], zero_s: float) -> Draft:
    span: Interval = (draft.span[0] + zero_s - _MARGIN_S, draft.span[1] + zero_s + _MARGIN_S)
    best, same_language = 0.0, False
    for stream in {cue.stream_index for cue in cues}:
        near = [
            cue
            for cue in cues
            if cue.stream_index == stream and overlap_s(span, (cue.start_s, cue.end_s)) > 0
        ]
        text = " ".join(cue.text for cue in near)
        best = max(best, _agreement(draft.text, text))
        same_language |= any(two_letter(cue.language) == draft.language for cue in near)
    if best >= _AGREES:
        lifted = draft.marked("subtitle_agrees")
        if "loop" in draft.flags:
            return lifted
        return replace(lifted, trust=(1 + draft.trust) / 2)
    if same_language and draft.language is not None and best < _DIFFERS:
        return draft.marked("subtitle_differs", at_most=0.6)
    return draft


def _agreement(heard: str, written: str) -> float:
    """Cues often hold more than one utterance; a word or two may stand in a cue by chance."""
    if len(tokens(heard)) < _MIN_WORDS:
        return similarity(heard, written)
    return containment(heard, written)
