"""Which language a stretch of speech is in, given what was heard before."""

from collections import defaultdict

CONFIDENT = 0.8
_DOUBTFUL = 0.5
_MIN_MEMORY_S = 3.0


class LanguageMemory:
    """Seconds of speech per language that was told with confidence, in one recording.

    A short or noisy stretch is often taken for a rare language; then what the rest of the
    recording is in weighs more than a guess at less than one half.
    """

    def __init__(self) -> None:
        self._heard_s: defaultdict[str, float] = defaultdict(float)

    def note(self, language: str | None, probability: float, voiced_s: float) -> None:
        """Remember a stretch if its language was clear."""
        if language is not None and probability >= CONFIDENT:
            self._heard_s[language] += voiced_s

    def better(self, language: str | None, probability: float) -> str | None:
        """The language to use instead of a doubtful one, or None to keep it."""
        if not self._heard_s or probability >= _DOUBTFUL:
            return None
        usual = max(self._heard_s, key=lambda name: self._heard_s[name])
        if usual == language or self._heard_s[usual] < _MIN_MEMORY_S:
            return None
        return usual
