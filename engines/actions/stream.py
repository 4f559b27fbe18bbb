"""Live recognition: a ring buffer of poses, and windows that begin where the movement changed.

``LiveActions.push`` takes one pose and, every few poses, says what is happening now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from engines.actions.segments import ScoreWindows
from engines.actions.skeleton import Floats, SkeletonClip, joint_rows
from engines.errors import UsageError

_TINY: Final = 1e-6


class PoseRing:
    """The last poses in fixed memory.

    Each pose is written at two places, a capacity apart, over the oldest one: writing costs the
    same whatever the capacity, and the last n poses lie in one piece and are read without a copy.
    """

    def __init__(self, capacity: int, joints: int) -> None:
        if capacity < 1 or joints < 1:
            msg = f"a ring of {capacity} poses of {joints} joints; both must be at least 1"
            raise UsageError(msg)
        self._capacity = capacity
        self._joints = np.zeros((2 * capacity, joints, 3), np.float32)
        self._visibility = np.zeros((2 * capacity, joints), np.float32)
        self._next = 0
        self._count = 0

    def __len__(self) -> int:
        """Poses that are held now."""
        return self._count

    def push(self, joints: Floats, visibility: Floats) -> None:
        """Overwrite the oldest pose: float32 [J, 3] and [J]."""
        for at in (self._next, self._next + self._capacity):
            self._joints[at] = joints
            self._visibility[at] = visibility
        self._next = (self._next + 1) % self._capacity
        self._count = min(self._count + 1, self._capacity)

    def last(self, count: int) -> tuple[Floats, Floats]:
        """Views of the last poses, oldest first: [n, J, 3] and [n, J], n <= ``count``.

        They are overwritten by later pushes; copy what must stay.
        """
        size = min(count, self._count)
        end = self._next + self._capacity
        return self._joints[end - size : end], self._visibility[end - size : end]


@dataclass(frozen=True)
class LiveSettings:
    """How the window adapts."""

    capacity: int = 128
    shortest: int = 16
    """Poses that a window has at least."""
    longest: int = 96
    every: int = 4
    """Poses between decisions."""
    lead: int = 10
    """Poses before a change that belong to what begins there."""
    smooth_s: float = 0.07
    """Time constant of the smoothing before speeds are taken: a pose shakes."""
    fast_s: float = 0.15
    slow_s: float = 1.2
    """Time constants of the two running means of the acceleration."""
    ratio: float = 1.0
    """The movement changed where the fast mean comes to this many times the slow one ..."""
    rest_speed: float = 0.5
    rest_s: float = 0.15
    """... and the body was slower than this, torso lengths per second, for so long before."""


@dataclass(frozen=True)
class LiveLabel:
    """What is happening now."""

    label: int
    probability: float
    window: int
    """Poses that were looked at."""


class ChangeDetector:
    """Finds where a movement begins, pose by pose, in constant time and memory."""

    def __init__(self, names: Sequence[str], rate_hz: float, settings: LiveSettings) -> None:
        self._rows = joint_rows(names, ("left_shoulder", "right_shoulder", "left_hip", "right_hip"))
        self._rate_hz = rate_hz
        self._settings = settings
        self._pose: Floats | None = None
        self._velocity: Floats | None = None
        self._fast = self._slow = 0.0
        self._calm = 0
        """Poses since the body moved, while it rests."""
        self._armed = False
        """Whether the body has rested since the last change."""

    def push(self, joints: Floats) -> bool:
        """Whether a movement begins at this pose: float32 [J, 3]."""
        settings = self._settings
        if self._pose is None:
            self._pose = np.array(joints, np.float32)
            return False
        step = (joints - self._pose) * self._share(settings.smooth_s)
        self._pose += step
        velocity = step * self._rate_hz / self._torso(joints)
        before = velocity if self._velocity is None else self._velocity
        self._velocity = velocity
        change = _loudest(velocity - before) * self._rate_hz
        self._fast += (change - self._fast) * self._share(settings.fast_s)
        self._slow += (change - self._slow) * self._share(settings.slow_s)
        return self._begins(_loudest(velocity))

    def _begins(self, speed: float) -> bool:
        settings = self._settings
        if speed < settings.rest_speed:
            self._calm += 1
            self._armed = self._armed or self._calm >= settings.rest_s * self._rate_hz
            return False
        self._calm = 0
        if not self._armed or self._fast < settings.ratio * self._slow:
            return False
        self._armed = False
        return True

    def _share(self, constant_s: float) -> float:
        """Of the newest value in a running mean with this time constant."""
        return 1.0 / max(1.0, constant_s * self._rate_hz)

    def _torso(self, joints: Floats) -> float:
        ls, rs, lh, rh = self._rows
        way = (joints[ls] + joints[rs] - joints[lh] - joints[rh])[:2] / 2.0
        return max(float(np.linalg.norm(way)), _TINY)


def _loudest(vectors: Floats) -> float:
    """Mean length of the four longest of [J, 3]."""
    return float(np.sort(np.linalg.norm(vectors, axis=1))[-4:].mean())


class LiveActions:
    """Labels a stream of poses of one person."""

    def __init__(
        self,
        score: ScoreWindows,
        names: Sequence[str],
        *,
        rate_hz: float,
        settings: LiveSettings | None = None,
        fixed_window: int | None = None,
    ) -> None:
        self._score = score
        self._settings = settings or LiveSettings()
        self._rate_hz = rate_hz
        self._fixed = fixed_window
        self._ring = PoseRing(self._settings.capacity, len(names))
        self._detector = ChangeDetector(names, rate_hz, self._settings)
        self._began = 0
        """Number of the pose at which the movement began."""
        self._pushed = 0

    def push(self, joints: Floats, visibility: Floats) -> LiveLabel | None:
        """Take one pose, float32 [J, 3] and [J]; a label every ``every`` poses, else None."""
        self._ring.push(joints, visibility)
        self._pushed += 1
        if self._detector.push(joints):
            self._began = self._pushed
        if self._pushed % self._settings.every or len(self._ring) < self._settings.shortest:
            return None
        clip = SkeletonClip(*self._ring.last(self._window()), self._rate_hz)
        probabilities = self._score([clip])[0]
        label = int(probabilities.argmax())
        return LiveLabel(label, float(probabilities[label]), len(clip.joints))

    def _window(self) -> int:
        if self._fixed is not None:
            return self._fixed
        settings = self._settings
        since = self._pushed - self._began + settings.lead
        return min(max(since, settings.shortest), settings.longest)
