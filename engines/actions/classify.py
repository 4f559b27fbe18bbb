"""The classifier that ships with the project: windows of joints in, class probabilities out."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.actions.confusions import RuleBook, TimingRule
from engines.actions.normalise import SEEN, even_effort, fill_holes, normalise_clips, to_body_frame
from engines.actions.skeleton import JOINTS, Floats, SkeletonClip, joint_rows
from engines.actions.taxonomy import OTHER, load_taxonomy
from engines.actions.waving import longest_waving
from engines.actions.weights import StoredModel, from_bytes
from engines.errors import EngineError
from engines.runtime.manifest import verified_bytes

DEFAULT_MODEL: Final = "actions-17"
WEIGHTS_FILE: Final = "weights.npz"
RULES_FILE: Final = "rules.json"
MIN_SEEN: Final = 0.5
"""Share of a window's moments in which a part must be seen to count as seen."""
MIN_RISE: Final = 0.2
"""Torso lengths of a body as a pose estimator sees it: half of what the training clips of sitting
down and standing up show at the median; 0.946 of those clips have it."""
MIN_WAVING: Final = 0.75
"""Share of a window that must be waving: where the hand is raised and lowered too, the network
knows better where a wave begins and ends."""
MOST_SURE: Final = 0.95
"""Probability of what is proven. In 6,753 views of training clips that show something else (from
the front, and 30, 60 and 90 degrees aside) four strokes in a row were never counted."""
_SIGNS: Final = {"rise": 1.0, "sink": -1.0}
_ENDS: Final = 5


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
        needs = {entry.name: entry.needs for entry in load_taxonomy().classes}
        self._needs = tuple(needs.get(name, ()) for name in self.classes)
        signs = {entry.name: _SIGNS[entry.hips] for entry in load_taxonomy().classes if entry.hips}
        self._hips = np.array([signs.get(name, 0.0) for name in self.classes])
        self._strokes = {
            self.classes.index(entry.name): entry.waving_strokes
            for entry in load_taxonomy().classes
            if entry.waving_strokes is not None and entry.name in self.classes
        }

    def scores(self, windows: Sequence[SkeletonClip]) -> Floats:
        """Probabilities of the classes.

        A window that consists of waving is mostly the class which that proves, whatever the network
        says.

        Args:
            windows: of the shared joints, x and y at least; any length and rate.

        Returns:
            float32 [n, classes]; rows sum to 1.

        Raises:
            NotFiniteError: the network gave NaN or infinity.
        """
        clips = normalise_clips(windows, JOINTS, view="flat")
        trained = self._model.trained
        said = trained.probabilities(even_effort(clips, trained.shape.dimensions))
        for row, window in enumerate(windows):
            strokes, share = longest_waving(window)
            for column, needed in self._strokes.items():
                if strokes >= needed and share >= MIN_WAVING:
                    said[row] *= 1.0 - MOST_SURE * share
                    said[row, column] += MOST_SURE * share
        return said

    def claimable(self, window: SkeletonClip) -> npt.NDArray[np.bool_]:
        """Which classes a window could show at all, bool [classes].

        A class whose joints were hardly seen is not claimed, whatever the network makes of the
        rest: of somebody seen from the waist up nobody can say that they sit down. Nor is one of
        somebody whose hips did not do what the class is about.
        """
        seen = (window.visibility >= SEEN).mean(axis=0) >= MIN_SEEN
        parts = {name.split("_")[-1] for name, is_seen in zip(JOINTS, seen, strict=True) if is_seen}
        is_seen = np.array([parts.issuperset(needs) for needs in self._needs])
        is_done = (self._hips == 0.0) | (self._hips * hips_rise(window) >= MIN_RISE)
        return np.asarray(is_seen & is_done)

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


def hips_rise(window: SkeletonClip) -> float:
    """How much higher above the knees the hips end than they began, torso lengths.

    Ends are medians of a fifth of the window. Camera and place of the body do not matter.
    """
    joints, known = fill_holes(window, JOINTS)
    centred, _ = to_body_frame(joints, JOINTS, known, view="flat")
    rows = [row for row in joint_rows(JOINTS, ("left_knee", "right_knee")) if known[row]]
    if not rows or len(centred) < _ENDS:
        return 0.0
    above = centred[:, rows, 1].mean(axis=1)
    end = len(above) // _ENDS
    return float(np.median(above[-end:]) - np.median(above[:end]))


@cache
def open_classifier(model: str = DEFAULT_MODEL) -> ActionClassifier:
    """The packaged classifier, checked against its manifest, read once per process.

    Raises:
        ModelMissingError, ModelHashError, EngineError: its weights are not there, or not those.
    """
    files = verified_bytes(model)
    rules = RuleBook.model_validate_json(files[RULES_FILE]).rules
    return ActionClassifier(from_bytes(files[WEIGHTS_FILE]), rules)
