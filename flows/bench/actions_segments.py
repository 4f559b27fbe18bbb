"""Rows on time: segments at three granularities, and the adaptive window against the fixed one."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from engines.actions.dataset import SkeletonSet
from engines.actions.motion import measure_motion
from engines.actions.normalise import View, even_effort, normalise_clips
from engines.actions.segments import MacroSegment, ScoreWindows, SegmentSettings, segment
from engines.actions.skeleton import JOINTS, Floats, SkeletonClip
from engines.actions.stream import LiveActions, LiveLabel
from engines.actions.strokes import find_strokes
from engines.actions.training import TrainedNetwork
from flows.bench import BenchRow
from flows.bench.actions_made import (
    RATE_HZ,
    MadeSequence,
    Span,
    made_sequences,
    made_strokes,
    match_spans,
)

SEQUENCES = 16
FIXED_WINDOW = 64
ANCHOR_TOLERANCE_S = 0.35
STROKES = 60

Figures = dict[str, float | int | str | None]


def window_scorer(network: TrainedNetwork, data: SkeletonSet) -> ScoreWindows:
    """The network as a scorer of windows of this set."""
    view = _view(data)

    def score(windows: Sequence[SkeletonClip]) -> Floats:
        clips = normalise_clips(windows, data.joint_names, view=view)
        return network.probabilities(even_effort(clips, network.shape.dimensions))

    return score


def _view(data: SkeletonSet) -> View:
    return "front" if data.has_depth else "flat"


def segment_rows(network: TrainedNetwork, data: SkeletonSet, seed: int) -> list[BenchRow]:
    """Precision and recall of macro, meso and micro segments, and recall of keyframes."""
    score, settings = window_scorer(network, data), SegmentSettings()
    made = made_sequences(data, SEQUENCES, seed)
    found = [segment(m.clip, data.joint_names, score, settings, view=_view(data)) for m in made]
    names = data.class_names
    macro = [[Span(s.first, s.last, "activity") for s in f] for f in found]
    meso = [[Span(p.first, p.last, names[p.label]) for s in f for p in s.parts] for f in found]
    fixed = [_fixed_spans(m, score, names) for m in made]
    unnamed = [[Span(s.first, s.last, "") for s in spans] for spans in meso]
    rows = [
        ("macro segments", _precision_recall(macro, [m.activities for m in made])),
        (
            "meso segments",
            _precision_recall(meso, [m.actions for m in made])
            | _precision_recall(
                unnamed,
                [[Span(a.first, a.last, "") for a in m.actions] for m in made],
                prefix="unlabelled_",
            )
            | _precision_recall(fixed, [m.actions for m in made], prefix="fixed_windows_"),
        ),
        ("micro segments", _micro()),
        ("keyframes", _anchors(made, found, data)),
    ]
    return [BenchRow(name=name, figures=f, must=None, holds=None) for name, f in rows]


def _precision_recall(
    found: Sequence[Sequence[Span]], true: Sequence[Sequence[Span]], prefix: str = ""
) -> Figures:
    hits = sum(match_spans(f, t) for f, t in zip(found, true, strict=True))
    told, there = sum(map(len, found)), sum(map(len, true))
    return {
        f"{prefix}precision": round(hits / max(1, told), 4),
        f"{prefix}recall": round(hits / max(1, there), 4),
        f"{prefix}spans": there,
    }


def _fixed_spans(made: MadeSequence, score: ScoreWindows, names: Sequence[str]) -> list[Span]:
    """The plain way: windows of 64 moments end to end, neighbours with one label put together."""
    clip, spans = made.clip, list[Span]()
    begins = range(0, len(clip.joints) - FIXED_WINDOW // 2, FIXED_WINDOW)
    cut = [slice(b, min(b + FIXED_WINDOW, len(clip.joints))) for b in begins]
    said = score([SkeletonClip(clip.joints[c], clip.visibility[c], RATE_HZ) for c in cut])
    for where, label in zip(cut, said.argmax(axis=1), strict=True):
        if spans and spans[-1].label == names[label]:
            spans[-1] = Span(spans[-1].first, where.stop - 1, names[label])
        else:
            spans.append(Span(where.start, where.stop - 1, names[label]))
    return spans


def _micro() -> Figures:
    settings = SegmentSettings()
    clip, true = made_strokes(STROKES, seed=0)
    found = find_strokes(
        measure_motion(clip, JOINTS, view="flat"),
        JOINTS,
        min_speed=settings.stroke_speed,
        min_distance=settings.stroke_distance,
        min_s=settings.stroke_s,
    )
    return _precision_recall([[Span(s.first, s.last, s.label) for s in found]], [true])


def _anchors(
    made: Sequence[MadeSequence], found: Sequence[Sequence[MacroSegment]], data: SkeletonSet
) -> Figures:
    """Share of actions with a keyframe, or one of as many even samples, near their most change."""
    hit = even = total = anchors = near = 0
    for sequence, segments in zip(made, found, strict=True):
        at = np.array(sorted({k for s in segments for p in s.parts for k in p.keyframes}))
        motion = measure_motion(sequence.clip, data.joint_names, view=_view(data))
        anchors += len(at)
        spaced = np.linspace(0, len(motion.change) - 1, max(1, len(at)))
        for action in sequence.actions:
            peak = action.first + int(motion.change[action.first : action.last + 1].argmax())
            total += 1
            hit += bool(len(at)) and bool(np.abs(at - peak).min() <= ANCHOR_TOLERANCE_S * RATE_HZ)
            even += bool(np.abs(spaced - peak).min() <= ANCHOR_TOLERANCE_S * RATE_HZ)
            near += int(((at >= action.first) & (at <= action.last)).sum())
    return {
        "recall": round(hit / max(1, total), 4),
        "even_samples_recall": round(even / max(1, total), 4),
        "inside_actions": round(near / max(1, anchors), 4),
        "keyframes": anchors,
    }


def live_rows(network: TrainedNetwork, data: SkeletonSet, seed: int) -> list[BenchRow]:
    """The same stream with the last 64 poses, and with a window from the last change."""
    score = window_scorer(network, data)
    made = made_sequences(data, SEQUENCES, seed + 1)
    fixed = _live(made, score, data, FIXED_WINDOW)
    adaptive = _live(made, score, data, None)
    better = bool(
        float(adaptive["accuracy"] or 0) > float(fixed["accuracy"] or 0)
        and float(adaptive["delay_s"] or 0) < float(fixed["delay_s"] or 0)
    )
    must = "more accurate and sooner right than the fixed window"
    return [
        BenchRow(name="fixed window of 64 poses", figures=fixed, must=None, holds=None),
        BenchRow(name="adaptive window", figures=adaptive, must=must, holds=better),
    ]


def _live(
    made: Sequence[MadeSequence], score: ScoreWindows, data: SkeletonSet, fixed: int | None
) -> Figures:
    """Accuracy over decisions within actions; mean time until the label is first right."""
    right = total = decisions = 0
    delays: list[float] = []
    windows: list[int] = []
    began = time.process_time()
    for sequence in made:
        live = LiveActions(score, data.joint_names, rate_hz=RATE_HZ, fixed_window=fixed)
        said = _labels(live.push, sequence)
        decisions += len(said)
        windows += [window for _, _, window in said]
        for action in sequence.actions:
            inside = [(r, n) for r, n, _ in said if action.first <= r <= action.last]
            hits = [r for r, n in inside if data.class_names[n] == action.label]
            right, total = right + len(hits), total + len(inside)
            ends = hits[0] if hits else action.last
            delays.append((ends - action.first) / RATE_HZ)
    spent = time.process_time() - began
    return {
        "accuracy": round(right / max(1, total), 4),
        "delay_s": round(float(np.mean(delays)), 4) if delays else None,
        "ms_per_decision": round(1000.0 * spent / max(1, decisions), 2),
        "mean_window": round(float(np.mean(windows)), 1) if windows else None,
        "decisions": total,
    }


def _labels(
    push: Callable[[Floats, Floats], LiveLabel | None], sequence: MadeSequence
) -> list[tuple[int, int, int]]:
    said = []
    for row in range(len(sequence.clip.joints)):
        answer = push(sequence.clip.joints[row], sequence.clip.visibility[row])
        if answer is not None:
            said.append((row, answer.label, answer.window))
    return said
