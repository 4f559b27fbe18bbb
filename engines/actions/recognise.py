"""Stage ``actions``: from pose tracks to nested, labelled segments on the asset's clock."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from engines.actions.classify import ActionClassifier, open_classifier
from engines.actions.confusions import apply_rules
from engines.actions.segments import MacroSegment, MesoSegment, SegmentSettings, segment
from engines.actions.skeleton import JOINTS, PARENTS, Floats, SkeletonClip, from_blazepose
from engines.actions.strokes import Stroke
from engines.actions.taxonomy import OTHER, load_taxonomy
from engines.contracts.actions import (
    Action,
    ActionsDocument,
    ActionsParams,
    Granularity,
    PersonTrack,
    PoseDocument,
)
from engines.contracts.base import Coverage
from engines.contracts.time import TimeSpan
from engines.errors import EngineError

MOVEMENT = "movement"
"""Label of a run of activity in which no class was recognised."""
UNRECOGNISED = "unrecognised"
_MIN_POSES = 5
_LOST_STEPS: Final = 2.0
"""A gap of more than so many usual steps: whoever was followed was lost for a moment."""
_SAME_SIZE: Final = 1.6
"""Who is found again after a loss is at most 1.3 times as large as before, or small; where a track
goes on with somebody else it is 1.9 times and more (21 losses in 15 clips of real video)."""
_BONES: Final = (
    *((child, parent) for child, parent in PARENTS.items() if {child, parent} <= set(JOINTS)),
    ("left_shoulder", "left_hip"),
    ("right_shoulder", "right_hip"),
)
_BONE_ROWS: Final = np.array([[JOINTS.index(name) for name in bone] for bone in _BONES])


@dataclass(frozen=True)
class PersonRun:
    """A stretch of one track that shows one person without a long gap, at a steady rate."""

    track: str
    clip: SkeletonClip
    start_s: float
    end_pts: int
    """First tick after its last pose."""


def recognise(
    document: PoseDocument,
    joints: Floats,
    world: Floats,
    pts: npt.NDArray[np.int64],
    params: ActionsParams,
) -> ActionsDocument:
    """Label what the people of a video do.

    The network reads x and y of ``joints``: that is what it was trained on. The depth that a pose
    estimator makes of one camera's picture is a guess, so ``world`` is not read.

    Args:
        document: tracks and clock.
        joints: float32 [n, 33, 4], x, y, z as fractions of the picture, visibility.
        world: float32 [n, 33, 3].
        pts: int64 [n], ticks of the document's time base.
        params: see ``ActionsParams``.

    Returns:
        Actions by person and time: each macro segment, then its meso segments, each followed by its
        strokes. Without a track there is no action, and coverage says why.

    Raises:
        EngineError: rows and blobs do not fit together, or the pictures' size is not told.
        ModelMissingError, ModelHashError, NotFiniteError: see ``ActionClassifier``.
    """
    if not document.tracks:
        return ActionsDocument(actions=(), model=params.model, coverage=document.coverage)
    _check(document, joints, world, pts)
    if params.threads is not None:
        torch.set_num_threads(params.threads)
    classifier = open_classifier(params.model)
    settings = replace(SegmentSettings(), keyframe_prominence=params.keyframe_prominence)
    writer = _Writer(document, classifier, params)
    covered = 0.0
    for track in document.tracks:
        for run in steady_runs(track, document, joints, pts, params):
            covered += run.clip.duration_s
            for macro in segment(run.clip, JOINTS, classifier.scores, settings):
                writer.add(run, macro)
    coverage = _coverage(document.coverage, covered)
    return ActionsDocument(
        actions=tuple(writer.actions),
        model=params.model,
        coverage=coverage,
        degraded=document.degraded,
    )


def _check(
    document: PoseDocument, joints: Floats, world: Floats, pts: npt.NDArray[np.int64]
) -> None:
    rows = document.tracks[-1].last_row + 1
    if not len(joints) == len(world) == len(pts) >= rows:
        msg = f"{len(joints)} rows of joints, {len(world)} of world, {len(pts)} times, {rows} told"
        raise EngineError(msg)
    if not (document.width and document.height):
        msg = "the pose document does not tell the size of its pictures"
        raise EngineError(msg)


def _coverage(seen: Coverage, covered_s: float) -> Coverage:
    if covered_s > 0:
        return seen
    reason = "no person was followed for long enough to tell an action"
    return seen.model_copy(update={"reason": seen.reason or reason})


def steady_runs(
    track: PersonTrack,
    document: PoseDocument,
    joints: Floats,
    pts: npt.NDArray[np.int64],
    params: ActionsParams,
) -> Iterator[PersonRun]:
    """Stretches of a track that show one person without a long gap, resampled by time.

    Args:
        track: one of the document's.
        document: see ``recognise``.
        joints: float32 [n, 33, 4].
        pts: int64 [n].
        params: for the rate and the longest gap.
    """
    rows = slice(track.first_row, track.last_row + 1)
    tick = Fraction(document.time_base_num, document.time_base_den)
    times = pts[rows].astype(np.float64) * float(tick)
    aspect = document.width / document.height
    poses = joints[rows].reshape(len(times), -1)
    sizes = _body_sizes(from_blazepose(joints[rows], params.rate_hz, aspect))
    for part in np.split(np.arange(len(times)), _ends(times, sizes, params.max_gap_s)):
        if len(part) < _MIN_POSES:
            continue
        steps = np.diff(times[part])
        grid = np.arange(times[part[0]], times[part[-1]] + 1e-9, 1.0 / params.rate_hz)
        even = np.stack([np.interp(grid, times[part], c) for c in poses[part].T], axis=1)
        landmarks = even.reshape(len(grid), *joints.shape[1:]).astype(np.float32)
        end_s = times[part[-1]] + float(np.median(steps))
        yield PersonRun(
            track.track,
            from_blazepose(landmarks, params.rate_hz, aspect),
            float(grid[0]),
            round(end_s / tick),
        )


def _body_sizes(clip: SkeletonClip) -> npt.NDArray[np.float64]:
    """float64 [T], longest bone in the picture: whatever the posture, one lies in its plane."""
    ends = clip.joints[:, _BONE_ROWS, :2].astype(np.float64)
    return np.asarray(np.linalg.norm(ends[:, :, 0] - ends[:, :, 1], axis=2).max(axis=1))


def _ends(
    times: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64], max_gap_s: float
) -> npt.NDArray[np.int64]:
    """Rows with which a new run begins: after a long gap, or a shorter one and another body."""
    steps = np.diff(times)
    if not len(steps):
        return np.zeros(0, np.int64)
    lost = steps > _LOST_STEPS * np.median(steps)
    smaller, larger = np.sort([sizes[1:], sizes[:-1]], axis=0)
    other = lost & (larger > _SAME_SIZE * smaller)
    return np.flatnonzero((steps > max_gap_s) | other) + 1


class _Writer:
    """Turns segments into facts with spans, scores and parents."""

    def __init__(
        self, document: PoseDocument, classifier: ActionClassifier, params: ActionsParams
    ) -> None:
        self.actions: list[Action] = []
        self._base = (document.time_base_num, document.time_base_den)
        self._classifier = classifier
        self._params = params
        self._titles = {entry.name: entry.title for entry in load_taxonomy().classes}

    def add(self, run: PersonRun, macro: MacroSegment) -> None:
        """A macro segment with all that it contains."""
        decided = [self._decide(run, part) for part in macro.parts]
        seconds: dict[str, float] = {}
        for part, (name, score) in zip(macro.parts, decided, strict=True):
            if name is not None:
                weight = (part.last - part.first + 1) / run.clip.rate_hz
                seconds[name] = seconds.get(name, 0.0) + weight * score
        main = max(seconds, key=lambda name: seconds[name]) if seconds else None
        scores = [score for name, score in decided if name == main and name is not None]
        parent = self._write(
            run,
            (macro.first, macro.last),
            "macro",
            self._titles[main] if main else MOVEMENT,
            float(np.mean(scores)) if scores else 0.0,
            keyframes=macro.keyframes,
        )
        for part, (name, score) in zip(macro.parts, decided, strict=True):
            self._add_meso(run, part, name, score, parent)

    def _decide(self, run: PersonRun, part: MesoSegment) -> tuple[str | None, float]:
        """The label, None for none, and how sure that is."""
        rows, probabilities = slice(part.first, part.last + 1), part.probabilities
        window = SkeletonClip(run.clip.joints[rows], run.clip.visibility[rows], run.clip.rate_hz)
        if self._params.correct_confusions:
            probabilities = apply_rules(
                self._classifier.rules, window, JOINTS, self._classifier.classes, probabilities
            )
        claimed = probabilities * self._classifier.claimable(window)
        name = self._classifier.decide(claimed, self._params.min_probability)
        best = float(claimed[:-1].max())
        return name, best if name is not None else 1.0 - best

    def _add_meso(
        self, run: PersonRun, part: MesoSegment, name: str | None, score: float, parent: str
    ) -> None:
        own = self._write(
            run,
            (part.first, part.last),
            "meso",
            OTHER if name is None else self._titles[name],
            score,
            keyframes=part.keyframes,
            parent=parent,
            flags=(UNRECOGNISED,) if name is None else (),
        )
        for stroke in part.strokes:
            self._add_stroke(run, stroke, own)

    def _add_stroke(self, run: PersonRun, stroke: Stroke, parent: str) -> None:
        self._write(
            run,
            (stroke.first, stroke.last),
            "micro",
            stroke.label,
            stroke.score,
            keyframes=(stroke.peak,),
            parent=parent,
        )

    def _write(
        self,
        run: PersonRun,
        rows: tuple[int, int],
        granularity: Granularity,
        label: str,
        score: float,
        *,
        keyframes: tuple[int, ...],
        parent: str | None = None,
        flags: tuple[str, ...] = (),
    ) -> str:
        num, den = self._base
        start = self._ticks(run, rows[0])
        end = min(max(start + 1, self._ticks(run, rows[1] + 1)), run.end_pts)
        self.actions.append(
            Action(
                span=TimeSpan(start_pts=start, end_pts=end, time_base_num=num, time_base_den=den),
                granularity=granularity,
                label=label,
                score=round(score, 4),
                keyframe_pts=tuple(self._ticks(run, row) for row in keyframes),
                parent=parent,
                person_track=run.track,
                flags=flags,
            )
        )
        return f"action:{len(self.actions) - 1}"

    def _ticks(self, run: PersonRun, row: int) -> int:
        num, den = self._base
        return round((run.start_s + row / run.clip.rate_hz) * den / num)
