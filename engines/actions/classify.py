"""The classifier that ships with the project: windows of joints in, class probabilities out."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from engines.actions.confusions import RuleBook, TimingRule
from engines.actions.normalise import normalise_clips
from engines.actions.skeleton import JOINTS, Floats, SkeletonClip
from engines.actions.taxonomy import OTHER
from engines.actions.weights import StoredModel, from_bytes
from engines.errors import EngineError
from engines.runtime.manifest import verified_bytes

DEFAULT_MODEL: Final = "actions-17"
WEIGHTS_FILE: Final = "weights.npz"
RULES_FILE: Final = "rules.json"


class ActionClassifier:
    """Holds one network; build it once and keep it."""

    def __init__(self, model: StoredModel, rules: Sequence[TimingRule] = ()) -> None:
        if model.trained.joint_names != JOINTS:
            msg = "this action network reads other joints than the shared thirteen"
            raise EngineError(msg)
        self._model = model
        self.classes = model.classes
        """Names of the columns of ``scores``; the last is ``other``."""
        self.min_probability = model.min_probability
        self.rules = tuple(rules)

    def scores(self, windows: Sequence[SkeletonClip]) -> Floats:
        """Probabilities of the classes.

        Args:
            windows: of the shared joints, x and y at least; any length and rate.

        Returns:
            float32 [n, classes]; rows sum to 1.

        Raises:
            NotFiniteError: the network gave NaN or infinity.
        """
        clips = normalise_clips(windows, JOINTS, view="flat")
        return self._model.trained.probabilities(clips)

    def decide(self, probabilities: Floats, min_probability: float | None = None) -> str | None:
        """The class of one window, float32 [classes]; None where it shows none of them.

        Args:
            probabilities: of the window.
            min_probability: what the best class must have; None takes what was measured.
        """
        limit = self.min_probability if min_probability is None else min_probability
        best = int(np.asarray(probabilities).argmax())
        name = self.classes[best]
        if name == OTHER or float(probabilities[best]) < limit:
            return None
        return name


@cache
def open_classifier(model: str = DEFAULT_MODEL) -> ActionClassifier:
    """The packaged classifier, checked against its manifest, read once per process.

    Raises:
        ModelMissingError, ModelHashError, EngineError: its weights are not there, or not those.
    """
    files = verified_bytes(model)
    rules = RuleBook.model_validate_json(files[RULES_FILE]).rules
    return ActionClassifier(from_bytes(files[WEIGHTS_FILE]), rules)
