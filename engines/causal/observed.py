"""Which spans of a video were really seen and heard: elsewhere nothing can be said to be absent."""

from engines.causal.signals import MotionSignals, frame_step
from engines.contracts.media import SampleDocument


def end_s(sample: SampleDocument, motion: MotionSignals | None) -> float:
    """Where the asset ends on its clock, as far as anything says so."""
    if sample.media.duration_s is not None:
        return sample.media.start_s + sample.media.duration_s
    return float(motion.time_s[-1]) if motion is not None and len(motion.pts) else 0.0


def observed_spans(
    sample: SampleDocument, motion: MotionSignals | None
) -> tuple[list[tuple[float, float]], float]:
    """Spans in seconds in which every stream that exists was decoded, and the whole length."""
    start, end = sample.media.start_s, end_s(sample, motion)
    spans = [(start, end)] if end > start else []
    if motion is not None and len(motion.pts) > 1 and sample.video is not None:
        time_s = motion.time_s
        seen = (float(time_s[0]), float(time_s[-1]) + frame_step(time_s))
        spans = _cut_to(spans, seen)
    if sample.audio is not None and sample.audio.duration_s:
        heard = (sample.audio.start_s, sample.audio.start_s + sample.audio.duration_s)
        both = _cut_to(spans, heard)
        # A stub of sound beside a long picture must not make the picture unseen.
        if sum(b - a for a, b in both) >= 0.5 * sum(b - a for a, b in spans):
            spans = both
    holes = list(sample.audio_gaps) + [
        (p.start_s, p.end_s)
        for p in sample.problems
        if p.start_s is not None and p.end_s is not None
    ]
    for hole in sorted(holes):
        spans = _without(spans, hole)
    return spans, max(0.0, end - start)


def _cut_to(
    spans: list[tuple[float, float]], window: tuple[float, float]
) -> list[tuple[float, float]]:
    cut = [(max(a, window[0]), min(b, window[1])) for a, b in spans]
    return [(a, b) for a, b in cut if b > a]


def _without(
    spans: list[tuple[float, float]], hole: tuple[float, float]
) -> list[tuple[float, float]]:
    left: list[tuple[float, float]] = []
    for a, b in spans:
        if hole[0] >= b or hole[1] <= a:
            left.append((a, b))
            continue
        left += [(x, y) for x, y in ((a, hole[0]), (hole[1], b)) if y > x]
    return left
