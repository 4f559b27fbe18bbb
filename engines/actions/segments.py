"""Macro, meso and micro segments of one person's movement, nested.

    macro  a run of activity between rests
    meso   spans with one label: windows between change points are scored, and the best way to cut
           the run into such windows is found by dynamic programming
    micro  strokes of single limbs

Each has its own sampling: macro looks at the energy alone, meso at 32 moments per window whatever
its length, micro at every moment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from engines.actions.motion import BodyMotion, active_runs, change_points, keyframes, measure_motion
from engines.actions.normalise import View
from engines.actions.skeleton import Floats, SkeletonClip
from engines.actions.strokes import Stroke, find_strokes

ScoreWindows = Callable[[Sequence[SkeletonClip]], Floats]
"""Windows of any length in, probabilities float32 [n, classes] out."""
_TINY: Final = 1e-6


@dataclass(frozen=True)
class SegmentSettings:
    """Limits in seconds and torso lengths: they hold for any picture rate and size."""

    enter_energy: float = 0.7
    leave_energy: float = 0.25
    bridge_s: float = 0.4
    min_macro_s: float = 0.4
    spacing_s: float = 0.3
    """Closest that two places to cut may lie."""
    min_window_s: float = 0.6
    max_window_s: float = 6.0
    cut_cost: float = 1.5
    """What each further segment must gain, in seconds of log probability."""
    keyframe_prominence: float = 2.0
    stroke_speed: float = 0.8
    stroke_distance: float = 0.25
    stroke_s: float = 0.1


@dataclass(frozen=True)
class MesoSegment:
    """Rows [first, last] with one label."""

    first: int
    last: int
    label: int
    probabilities: Floats
    """float32 [classes], of the window itself."""
    keyframes: tuple[int, ...]
    strokes: tuple[Stroke, ...]


@dataclass(frozen=True)
class MacroSegment:
    """Rows [first, last] of activity."""

    first: int
    last: int
    keyframes: tuple[int, ...]
    parts: tuple[MesoSegment, ...]


def segment(
    clip: SkeletonClip,
    names: Sequence[str],
    score: ScoreWindows,
    settings: SegmentSettings,
    *,
    view: View = "flat",
) -> list[MacroSegment]:
    """All three granularities of one person's clip.

    Args:
        clip: one person without holes in time, at a steady rate.
        names: of its joints.
        score: the classifier.
        settings: limits.
        view: what is done with depth.

    Returns:
        Macro segments by time; meso segments fill their macro segment, and strokes lie within their
        meso segment.
    """
    motion = measure_motion(clip, names, view=view)
    strokes = find_strokes(
        motion,
        names,
        min_speed=settings.stroke_speed,
        min_distance=settings.stroke_distance,
        min_s=settings.stroke_s,
    )
    runs = active_runs(
        motion,
        enter=settings.enter_energy,
        leave=settings.leave_energy,
        bridge_s=settings.bridge_s,
        min_s=settings.min_macro_s,
    )
    cuts = change_points(motion, spacing_s=settings.spacing_s)
    macros = []
    for first, last in runs:
        inner = [int(c) for c in cuts if first < c <= last]
        parts = tuple(
            _fill(part, motion, strokes, settings)
            for part in label_run(clip, (first, *inner, last + 1), score, settings)
        )
        anchors = keyframes(motion, first, last, settings.keyframe_prominence)
        macros.append(MacroSegment(first, last, anchors, parts))
    return macros


def _fill(
    part: MesoSegment, motion: BodyMotion, strokes: list[Stroke], settings: SegmentSettings
) -> MesoSegment:
    """With its keyframes, and the strokes that have their peak in it, cut to its span."""
    inside = tuple(
        Stroke(max(s.first, part.first), min(s.last, part.last), s.label, s.score, s.peak)
        for s in strokes
        if part.first <= s.peak <= part.last
    )
    anchors = keyframes(motion, part.first, part.last, settings.keyframe_prominence)
    return MesoSegment(part.first, part.last, part.label, part.probabilities, anchors, inside)


def label_run(
    clip: SkeletonClip, edges: Sequence[int], score: ScoreWindows, settings: SegmentSettings
) -> list[MesoSegment]:
    """The best cut of one run into labelled windows.

    Maximises the sum over windows of duration times log probability of the window's label, less
    ``cut_cost`` for each window; runs of one label are then put together.

    Args:
        clip: one person's.
        edges: rising rows; the first begins the run, the last is one past its end, those between
            are places where it may be cut.
        score: the classifier.
        settings: limits.
    """
    edges = _thin(edges, settings.max_window_s * clip.rate_hz)
    pairs = _windows(edges, clip.rate_hz, settings)
    windows = [
        SkeletonClip(clip.joints[a:b], clip.visibility[a:b], clip.rate_hz)
        for a, b in ((edges[i], edges[j]) for i, j in pairs)
    ]
    scores = score(windows)
    best = np.full(len(edges), -np.inf)
    best[0] = 0.0
    came: list[int] = [-1] * len(edges)
    for row in sorted(range(len(pairs)), key=lambda k: pairs[k][1]):
        i, j = pairs[row]
        seconds = (edges[j] - edges[i]) / clip.rate_hz
        value = best[i] - settings.cut_cost
        value += seconds * float(np.log(scores[row].max() + _TINY))
        if value > best[j]:
            best[j], came[j] = value, row
    found: list[MesoSegment] = []
    at = len(edges) - 1
    while at > 0:
        i, j = pairs[came[at]]
        label = int(scores[came[at]].argmax())
        found.append(MesoSegment(edges[i], edges[j] - 1, label, scores[came[at]], (), ()))
        at = i
    return found[::-1]


def _windows(
    edges: Sequence[int], rate_hz: float, settings: SegmentSettings
) -> list[tuple[int, int]]:
    """Pairs of edges that are a window; neighbours always are, so that a way exists."""
    shortest, longest = settings.min_window_s * rate_hz, settings.max_window_s * rate_hz
    whole = edges[-1] - edges[0]
    pairs = []
    for i in range(len(edges) - 1):
        for j in range(i + 1, len(edges)):
            length = edges[j] - edges[i]
            if length > longest and j > i + 1:
                break
            if length >= min(shortest, whole) or j == i + 1:
                pairs.append((i, j))
    return pairs


def _thin(edges: Sequence[int], longest: float) -> list[int]:
    """Further edges where two lie more than the longest window apart."""
    out = [edges[0]]
    for edge in edges[1:]:
        pieces = int(np.ceil((edge - out[-1]) / longest)) or 1
        begin = out[-1]
        out += [begin + (edge - begin) * k // pieces for k in range(1, pieces)]
        out.append(edge)
    return out
