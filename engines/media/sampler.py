"""Which frames become samples: by time, by change, and within a budget.

One pass, and no belief in the declared length: sampling starts at the finest step, and each
time the budget is full the step doubles and samples that show nothing new are let go. A sample
that showed something new (its cells differ from the sample before) is kept longer than one that
did not, so that a short event in a long still survives.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from engines.media.signals import luma_of

FloatArray = npt.NDArray[np.float32]
UInt8Array = npt.NDArray[np.uint8]

_KEEP_NOVEL_SHARE = 0.25


@dataclass
class Candidate:
    """A sample in the making."""

    frame: int
    pts: int
    offset: int
    """Where its JPEG starts in the picture file."""
    size: int
    sharpness: float
    novelty: float
    """Largest change of any cell against the sample before, 0-1."""
    level: int
    """The finest grid (step times a power of two) that it lies on; higher is coarser."""
    end_pts: int = 0


@dataclass
class Sampler:
    """Decides, frame by frame, and thins when the budget is full."""

    step_s: float
    budget: int
    novelty_threshold: float
    fixed: bool
    doublings: int = 0
    kept: list[Candidate] = field(default_factory=list)
    next_slot: int | None = None
    last_luma: FloatArray | None = None
    last_taken: int | None = None
    """Frame of the latest sample, also where it was let go since."""
    _last_slot: int | None = None

    @property
    def current_step_s(self) -> float:
        """Seconds between regular samples as of now."""
        return float(self.step_s * 2**self.doublings)

    def wants(self, time_s: float, thumb: UInt8Array) -> tuple[bool, float, int]:
        """Whether this frame is due, its novelty, and its grid level.

        Args:
            time_s: its time on the asset clock.
            thumb: uint8 [27, 48, 4] RGBA.
        """
        slot = math.floor(time_s / self.step_s + 1e-9)
        if self.next_slot is not None and slot < self.next_slot:
            return False, 0.0, 0
        luma = luma_of(thumb)
        novelty = 1.0 if self.last_luma is None else float(np.abs(luma - self.last_luma).max())
        coarse = 2**self.doublings
        regular = self._last_slot is None or slot // coarse > self._last_slot // coarse
        novel = not self.fixed and novelty > self.novelty_threshold * 2 ** (self.doublings / 2)
        self.next_slot = slot + 1
        if not (regular or (novel and self.doublings > 0)):
            return False, novelty, 0
        self.last_luma = luma
        level = 0 if not regular else _level(slot, coarse)
        self._last_slot = slot
        return True, novelty, level

    def add(self, candidate: Candidate) -> bool:
        """Keep a sample; True when the budget is full and the samples were thinned."""
        self.kept.append(candidate)
        self.last_taken = candidate.frame
        if self.fixed or len(self.kept) <= self.budget:
            return False
        self.doublings += 1
        allowed = max(1, int(self.budget * _KEEP_NOVEL_SHARE))
        regular = [c for c in self.kept if c.level >= self.doublings]
        others = [c for c in self.kept if c.level < self.doublings]
        others.sort(key=lambda c: (-c.novelty, c.frame))
        first = [self.kept[0]] if self.kept[0].level < self.doublings else []
        chosen = {id(c) for c in (*first, *regular, *others[:allowed])}
        self.kept = [c for c in self.kept if id(c) in chosen]
        return True

    def state(self) -> dict[str, Any]:
        """JSON values to go on from; ``last_luma`` is that of frame ``last_taken``."""
        return {
            "doublings": self.doublings,
            "next_slot": self.next_slot,
            "last_slot": self._last_slot,
            "last_taken": self.last_taken,
            "kept": [vars(c) for c in self.kept],
        }

    def restore(self, state: dict[str, Any], last_thumb: UInt8Array | None) -> None:
        """Go on from a state.

        Args:
            state: as given by ``state``.
            last_thumb: uint8 [27, 48, 3] RGB of frame ``last_taken``.
        """
        self.doublings = state["doublings"]
        self.next_slot = state["next_slot"]
        self._last_slot = state["last_slot"]
        self.last_taken = state["last_taken"]
        self.kept = [Candidate(**c) for c in state["kept"]]
        self.last_luma = None if last_thumb is None else luma_of(last_thumb)


def _level(slot: int, coarse: int) -> int:
    """Largest power of two (as exponent) whose grid this regular slot opens."""
    level = coarse.bit_length() - 1
    base = slot // coarse
    while base > 0 and base % 2 == 0 and level < 40:  # noqa: PLR2004 (2**40 steps: never)
        base //= 2
        level += 1
    return 40 if base == 0 else level
