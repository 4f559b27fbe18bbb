"""Sequences with known boundaries: test clips one after another, and strokes by formula."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engines.actions.dataset import SkeletonSet
from engines.actions.normalise import fill_holes
from engines.actions.skeleton import JOINTS, SkeletonClip, joint_rows

Doubles = npt.NDArray[np.float64]

RATE_HZ = 30.0
CLIPS_PER_SEQUENCE = 5
PAUSE_S = (0.7, 1.4)
BLEND = 6
"""Moments over which one clip's last pose turns into the next one's first."""
SWAY = 0.01
"""Of somebody who waits, torso lengths."""
NOISE = 0.01
_REST_POSE = {
    "head": (0.0, -1.5), "left_shoulder": (0.4, -1.0), "right_shoulder": (-0.4, -1.0),
    "left_elbow": (0.5, -0.45), "right_elbow": (-0.5, -0.45), "left_wrist": (0.5, 0.05),
    "right_wrist": (-0.5, 0.05), "left_hip": (0.2, 0.0), "right_hip": (-0.2, 0.0),
    "left_knee": (0.2, 0.9), "right_knee": (-0.2, 0.9), "left_ankle": (0.2, 1.8),
    "right_ankle": (-0.2, 1.8),
}  # fmt: skip
_TRUNK = ("left_shoulder", "right_shoulder", "left_hip", "right_hip")
_WAYS = {"up": (0.0, -1.0), "down": (0.0, 1.0), "left": (-1.0, 0.0), "right": (1.0, 0.0)}


@dataclass(frozen=True)
class Span:
    """Rows [first, last] with what happens there."""

    first: int
    last: int
    label: str


@dataclass(frozen=True)
class MadeSequence:
    """One person doing several things."""

    clip: SkeletonClip
    actions: tuple[Span, ...]
    activities: tuple[Span, ...]
    """Runs of actions without a pause between them."""


@dataclass(frozen=True)
class _Piece:
    """Joints [T, J, 3] in torso lengths, and which of them are seen, [T, J]."""

    joints: Doubles
    seen: Doubles

    def held(self, moments: int, rng: np.random.Generator) -> "_Piece":
        """Its last pose, swaying."""
        sway = np.cumsum(rng.normal(0.0, 1.0, (moments, 1, 3)), axis=0)
        sway *= SWAY / max(float(np.abs(sway).max()), 1e-9)
        return _Piece(self.joints[-1] + sway, np.repeat(self.seen[-1:], moments, axis=0))

    def led_to(self, other: "_Piece") -> "_Piece":
        """From its last pose to the other's first; what either does not show is not seen."""
        share = np.linspace(0.0, 1.0, BLEND + 2)[1:-1, None, None]
        joints = self.joints[-1] * (1.0 - share) + other.joints[0] * share
        return _Piece(joints, np.repeat((self.seen[-1] * other.seen[0])[None], BLEND, axis=0))


def made_sequences(data: SkeletonSet, count: int, seed: int) -> list[MadeSequence]:
    """Random clips of one set, some right after another and some after a pause.

    Every clip is brought to the same torso length and begins where the last one ended; clips
    that hardly show a hip or a shoulder are not taken.
    """
    rng = np.random.default_rng(seed)
    rows = joint_rows(data.joint_names, _TRUNK)
    usable = [
        i
        for i, clip in enumerate(data.clips)
        if len(clip.joints) >= BLEND and fill_holes(clip, data.joint_names)[1][rows].all()
    ]
    return [
        _chain(data, rng.choice(usable, CLIPS_PER_SEQUENCE), rng)
        for _ in range(count if usable else 0)
    ]


def _chain(
    data: SkeletonSet, chosen: npt.NDArray[np.int64], rng: np.random.Generator
) -> MadeSequence:
    parts: list[_Piece] = []
    actions: list[Span] = []
    runs: list[tuple[int, int]] = []
    place = np.zeros(3)
    for row in chosen:
        piece = _unit(data.clips[row], data.joint_names, place)
        paused = not actions or bool(rng.random() < 0.5)
        if paused:
            before = parts[-1] if parts else _Piece(piece.joints[:1], piece.seen[:1])
            parts.append(before.held(round(RATE_HZ * rng.uniform(*PAUSE_S)), rng))
        parts.append(parts[-1].led_to(piece))
        first = sum(len(part.joints) for part in parts)
        last = first + len(piece.joints) - 1
        actions.append(Span(first, last, data.class_names[data.labels[row]]))
        runs.append((first if paused else runs.pop()[0], last))
        parts.append(piece)
        hips = joint_rows(data.joint_names, ("left_hip", "right_hip"))
        place = piece.joints[-1, hips].mean(axis=0)
    parts.append(parts[-1].held(round(RATE_HZ), rng))
    joints = np.concatenate([part.joints for part in parts]).astype(np.float32)
    seen = np.concatenate([part.seen for part in parts]).astype(np.float32)
    return MadeSequence(
        SkeletonClip(joints, seen, RATE_HZ),
        tuple(actions),
        tuple(Span(first, last, "activity") for first, last in runs),
    )


def _unit(clip: SkeletonClip, names: Sequence[str], place: Doubles) -> _Piece:
    """The clip with a torso of length one, its hips at ``place`` when it begins."""
    joints, known = fill_holes(clip, names)
    ls, rs, lh, rh = joint_rows(names, _TRUNK)
    hips = (joints[:, lh] + joints[:, rh]) / 2.0
    torso = np.linalg.norm((joints[:, ls] + joints[:, rs]) / 2.0 - hips, axis=1)
    scaled = (joints - hips[0]) / max(float(np.quantile(torso, 0.75)), 1e-6) + place
    scaled[:, ~known] = place
    return _Piece(scaled, np.repeat(known[None].astype(np.float64), len(scaled), axis=0))


def made_strokes(count: int, seed: int) -> tuple[SkeletonClip, list[Span]]:
    """Arms that go somewhere and come back, by the minimum-jerk formula, with known times.

    Flash and Hogan (1985): a reach of length d and duration T is at d (10 s^3 - 15 s^4 + 6 s^5) at
    the share s of T. Jitter is added to every joint.
    """
    rng = np.random.default_rng(seed)
    rest = np.array([(*_REST_POSE[name], 0.0) for name in JOINTS])
    parts, spans, at = [np.repeat(rest[None], 20, axis=0)], [], 20
    for _ in range(count):
        side = str(rng.choice(["left", "right"]))
        way = str(rng.choice(list(_WAYS)))
        length, moments = rng.uniform(0.5, 1.1), round(RATE_HZ * rng.uniform(0.35, 0.8))
        back = next(n for n, v in _WAYS.items() if v == tuple(-x for x in _WAYS[way]))
        for name, begin, end in ((way, 0.0, length), (back, length, 0.0)):
            share = np.linspace(0.0, 1.0, moments)
            along = begin + (end - begin) * (10 * share**3 - 15 * share**4 + 6 * share**5)
            pose = np.repeat(rest[None], moments, axis=0)
            for joint, part in (("wrist", 1.0), ("elbow", 0.5)):
                row = JOINTS.index(f"{side}_{joint}")
                pose[:, row, :2] += part * along[:, None] * np.array(_WAYS[way])
            spans.append(Span(at, at + moments - 1, f"{side} wrist {name}"))
            hold = np.repeat(pose[-1:], round(RATE_HZ * rng.uniform(0.1, 0.5)), axis=0)
            parts += [pose, hold]
            at += len(pose) + len(hold)
    joints = np.concatenate(parts)
    joints = joints + rng.normal(0.0, NOISE, joints.shape)
    clip = SkeletonClip(joints.astype(np.float32), np.ones(joints.shape[:2], np.float32), RATE_HZ)
    return clip, spans


def match_spans(found: Sequence[Span], true: Sequence[Span], *, overlap: float = 0.5) -> int:
    """How many found spans have the label of a true one and share enough of their union with it.

    Each true span is matched once, best overlap first.
    """
    pairs = []
    for i, a in enumerate(found):
        for j, b in enumerate(true):
            shared = min(a.last, b.last) - max(a.first, b.first) + 1
            union = max(a.last, b.last) - min(a.first, b.first) + 1
            if a.label == b.label and shared > 0 and shared / union >= overlap:
                pairs.append((shared / union, i, j))
    used_found: set[int] = set()
    used_true: set[int] = set()
    for _, i, j in sorted(pairs, reverse=True):
        if i not in used_found and j not in used_true:
            used_found.add(i)
            used_true.add(j)
    return len(used_true)
