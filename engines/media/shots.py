"""Shots: sure cuts from the signals, and the doubtful spans judged by a second look."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from engines.contracts.base import Coverage
from engines.contracts.media import SampleDocument, Shot, ShotParams, ShotsDocument
from engines.contracts.time import TimeSpan
from engines.errors import ModelMissingError
from engines.media.doubt import (
    MARGIN,
    UNIFORM,
    FirstPass,
    column,
    first_pass,
    runs_of,
    slow_stride,
)
from engines.media.keyframes import find_keyframes
from engines.media.signals import UInt8Array, pair_score
from engines.media.wipes import find_wipes

FloatArray = npt.NDArray[np.float32]
Int64Array = npt.NDArray[np.int64]

_MIN_RUN: Final = 4
_MIN_FAR_RUN: Final = 14
"""Motion that is shown quickly looks like a change for some frames; a slow change lasts."""
_LONG_PEAK: Final = 0.6
"""A dissolve has a frame that is likely its middle; moving things that only look mixed do not."""
_CLEAR_WIPE: Final = 0.85
_LEAST: Final = 0.15
_TRADE: Final = 1.5
"""How much of the network's certainty one unit of the signals' score replaces."""
_SETTLED: Final = 3
_DIFFERENT: Final = 0.12
_HIDDEN: Final = 0.15
_DAYLIGHT: Final = 90.0
_IN_PLACE: Final = 0.35
_CALM: Final = 0.5
_TOUCH: Final = 2


@dataclass(frozen=True)
class Change:
    """The beginning of a new shot."""

    frame: int
    method: str
    score: float
    start: int
    """First frame that is touched by the change."""
    end: int
    """First frame that is the new shot alone."""
    sure: bool = False
    """Seen in the signals alone; it stands whatever else is found near it."""


class _Thumbs:
    """Thumbnails by frame number; frames that were not kept repeat their nearest neighbour."""

    def __init__(self, blob_dir: Path, num_frames: int) -> None:
        self._rows = np.load(blob_dir / "thumbs.npy", mmap_mode="r")
        self._frames: Int64Array = np.load(blob_dir / "thumb_frames.npy")
        self._num_frames = num_frames

    def range(self, first: int, last: int) -> UInt8Array:
        """uint8 [last - first, 27, 48, 3]; outside the file the edge frames repeat."""
        wanted = np.clip(np.arange(first, last), 0, self._num_frames - 1)
        at = np.searchsorted(self._frames, wanted).clip(0, len(self._frames) - 1)
        return np.asarray(self._rows[at], dtype=np.uint8)


def detect(document: SampleDocument, blob_dir: Path, params: ShotParams) -> ShotsDocument:
    """Find shots and keyframes.

    Args:
        document: of the decode pass.
        blob_dir: directory with signals.npy, pts.npy, thumbs.npy and thumb_frames.npy.
        params: thresholds and the budget of the second look.

    Returns:
        Shots that cover the decoded picture without gaps, and at least one keyframe for each
        shot that holds a sample. Empty for a file without pictures. ``degraded`` says where the
        second look was left out.
    """
    if document.video is None:
        nothing = Coverage(covered_s=0.0, skipped_s=0.0, reason="no picture in this file")
        return ShotsDocument(coverage=nothing, shots=(), keyframes=())
    shots, degraded = find_shots(document, blob_dir, params)
    signals: FloatArray = np.load(blob_dir / "signals.npy")
    pts: Int64Array = np.load(blob_dir / "pts.npy")
    keyframes = find_keyframes(document, signals, pts, shots, params.keyframe_sensitivity)
    return ShotsDocument(
        coverage=document.coverage,
        degraded=degraded,
        shots=tuple(shots),
        keyframes=tuple(keyframes),
    )


def find_shots(
    document: SampleDocument,
    blob_dir: Path,
    params: ShotParams,
    *,
    stop_after_s: float | None = None,
) -> tuple[list[Shot], tuple[str, ...]]:
    """Find the shots alone; the document must have a picture.

    Args:
        document: of the decode pass.
        blob_dir: as for ``detect``.
        params: as for ``detect``.
        stop_after_s: seconds after which no further stretch is shown to the network; for callers
            that are killed at a limit, since nobody knows beforehand how fast a machine is.

    Returns:
        The shots, and where the second look was left out.
    """
    stop_at_s = None if stop_after_s is None else time.monotonic() + stop_after_s
    signals: FloatArray = np.load(blob_dir / "signals.npy")
    pts: Int64Array = np.load(blob_dir / "pts.npy")
    found = first_pass(signals, document.slow_lag)
    changes = [Change(t, "cut", score, t, t, sure=True) for t, score in found.cuts]
    changes += [Change(middle, "fade", 1.0, a, b, sure=True) for a, middle, b in found.dips]
    thumbs = _Thumbs(blob_dir, len(signals))
    changes += _hidden_cuts(thumbs, found) + _washes(thumbs, found)
    degraded: tuple[str, ...] = ()
    if found.doubtful or found.drawn_out:
        changes += _wipes(thumbs, found)
        if params.second_look:
            more, degraded = _second_look(
                thumbs, signals, found, changes, document.slow_lag, params, stop_at_s
            )
            changes += more
    return _shots(document, pts, _settle(changes, len(signals))), degraded


def _hidden_cuts(thumbs: _Thumbs, found: FirstPass) -> list[Change]:
    """Cuts where the signals cannot see them: under flashes, and in the dark.

    The two sides differ as they do at a cut, and as no pictures beside them do.
    """
    cuts = []
    for before, after in found.hidden:
        lag = after - before
        near = _lit(thumbs.range(before - lag, after + lag + 1)[::lag])
        score = pair_score(near[1], near[2])
        beside = max(pair_score(near[0], near[1]), pair_score(near[2], near[3]))
        if score >= _HIDDEN and beside < _CALM * score:
            cuts.append(Change(after, "cut", min(1.0, 0.5 + score), before + 1, after))
    return cuts


def _lit(pictures: UInt8Array) -> UInt8Array:
    """Pictures brightened by one gain, if all are dark: colours differ there by little else."""
    brightest = float(pictures.mean(axis=(1, 2, 3)).max())
    gain = max(1.0, _DAYLIGHT / max(brightest, 1.0))
    return np.asarray(np.minimum(pictures * gain, 255), dtype=np.uint8)


def _washes(thumbs: _Thumbs, found: FirstPass) -> list[Change]:
    """Fades through white or another plain colour from one picture to a different one.

    What fades keeps its place; where the camera moves over a plain wall, it does not.
    """
    out = []
    for down, start, end, up in found.washes:
        first = down - _SETTLED
        seen = thumbs.range(first, up + _SETTLED + 1)
        in_place = all(
            _likeness(seen[at - first], seen[at + way - first]) > _IN_PLACE
            for at, way in ((start, (down - start) // 2), (end, (up - end) // 2))
        )
        if in_place and pair_score(seen[0], seen[-1]) >= _DIFFERENT:
            out.append(Change((start + end) // 2, "fade", 1.0, down, up, sure=True))
    return out


def _likeness(one: UInt8Array, other: UInt8Array) -> float:
    """Correlation of two thumbnails, whatever their contrast."""
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


def _wipes(thumbs: _Thumbs, found: FirstPass) -> list[Change]:
    out = []
    for start, end in found.doubtful:
        first = max(0, start - _SETTLED)
        part = thumbs.range(first, end + _SETTLED)
        for wipe in find_wipes(part, start - first, end - first):
            a, b = first + wipe.start, first + wipe.end
            clear = wipe.fit > _CLEAR_WIPE
            out.append(Change((a + b) // 2, "wipe", wipe.fit, a, b, sure=clear))
    return out


class _View:
    """What the network says of each frame, where it was asked."""

    def __init__(self, num_frames: int, step: int) -> None:
        from engines.media.transnet import CORE

        self.step = step
        self.least = _MIN_RUN if step == 1 else _MIN_FAR_RUN * step
        self._single = np.zeros(num_frames + CORE * step, dtype=np.float32)
        self._many = np.zeros_like(self._single)
        self._num_frames = num_frames

    def ask(self, thumbs: _Thumbs, start: int) -> None:
        """Show the stretch from ``start``, every ``step``-th frame of it."""
        from engines.media.transnet import CORE, predict

        step = self.step
        window = thumbs.range(start - MARGIN * step, start + (CORE + MARGIN) * step)[::step]
        skip = max(0, -start)
        for into, said in zip((self._single, self._many), predict(window), strict=True):
            into[start + skip : start + CORE * step] = np.repeat(said, step)[skip:]

    @property
    def single(self) -> FloatArray:
        """float32 [n]: that the shot ends here."""
        return self._single[: self._num_frames]

    @property
    def many(self) -> FloatArray:
        """float32 [n]: that the frame lies in a change."""
        return self._many[: self._num_frames]


def _second_look(
    thumbs: _Thumbs,
    signals: FloatArray,
    found: FirstPass,
    known: list[Change],
    slow: int,
    params: ShotParams,
    stop_at_s: float | None,
) -> tuple[list[Change], tuple[str, ...]]:
    """Ask TransNetV2 about the spans that no found change explains.

    It was trained on changes of about a second: those that take longer are shown to it quicker.
    """
    from engines.media.transnet import windows

    near, far = _View(len(signals), 1), _View(len(signals), slow_stride(slow))
    stretches = []
    for view, spans in ((near, found.doubtful), (far, found.drawn_out)):
        left = _unexplained(spans, known, slow)
        stretches += [(view, start) for start in windows(left, view.step)]
    asked = 0
    try:
        for view, start in stretches[: params.max_windows]:
            if stop_at_s is not None and time.monotonic() >= stop_at_s:
                break
            view.ask(thumbs, start)
            asked += 1
    except ModelMissingError as error:
        return [], (f"doubtful spans judged by the signals alone: {error}",)
    changes = _judge(near, thumbs, signals, params.threshold)
    changes += _judge(far, thumbs, signals, params.threshold)
    changes += _both_agree(found.weak, near.single, params.threshold)
    unseen = len(stretches) - asked
    if unseen:
        return changes, (f"{unseen} of {len(stretches)} doubtful stretches had no second look",)
    return changes, ()


def _unexplained(
    spans: tuple[tuple[int, int], ...], known: list[Change], slow: int
) -> tuple[tuple[int, int], ...]:
    """Doubtful spans without what a found change accounts for, which the slow lag widens."""
    left = list(spans)
    for change in (c for c in known if c.start < c.end and c.method != "cut"):
        first, last = change.start - slow, change.end + slow
        left = [
            piece
            for start, end in left
            for piece in ((start, min(end, first)), (max(start, last), end))
            if piece[1] - piece[0] >= _MIN_RUN or (piece == (start, end) and end > start)
        ]
    return tuple(left)


def _judge(view: _View, thumbs: _Thumbs, signals: FloatArray, threshold: float) -> list[Change]:
    """Read changes off the two probabilities; what only lights up and goes back is none.

    Of frames that were shown with others left out only long changes are read.
    """
    contrast = column(signals, "contrast")
    single, many = view.single, view.many
    changes = []
    runs = runs_of((single > threshold) | (many > threshold))
    for start, end in _join_over_dark(runs, contrast):
        peak = start + int(np.argmax(single[start:end]))
        long = end - start >= view.least
        if view.step > 1 and not long:
            continue
        if single[peak] <= (_LONG_PEAK * threshold if long else threshold):
            continue
        sides = thumbs.range(start - _SETTLED, end + _SETTLED + 1)
        if pair_score(sides[0], sides[-1]) < _DIFFERENT:
            continue
        if (contrast[: max(1, start - 2)] < UNIFORM).all():
            # Nothing was shown before: this is how the first shot begins.
            continue
        fades = float(contrast[max(0, start - 1) : end + 1].min()) < UNIFORM
        method = "cut" if not long else ("fade" if fades else "dissolve")
        frame = min(len(single) - 1, peak + 1)
        score = float(max(single[peak], many[start:end].max()))
        changes.append(Change(frame, method, score, start, end))
    return changes


def _both_agree(
    weak: tuple[tuple[int, float], ...], single: FloatArray, threshold: float
) -> list[Change]:
    """Sudden changes that neither view alone is sure of, but both together are."""
    changes = []
    for t, score in weak:
        seen = float(single[max(0, t - 2) : t + 1].max())
        if seen > max(_LEAST, threshold - _TRADE * score):
            changes.append(Change(t, "cut", max(seen, score), t - 1, t + 1))
    return changes


def _join_over_dark(runs: list[tuple[int, int]], contrast: FloatArray) -> list[tuple[int, int]]:
    """A fade out and the fade in after it are one change, however long nothing shows between."""
    joined: list[tuple[int, int]] = []
    for start, end in runs:
        if joined and (contrast[joined[-1][1] : start] < UNIFORM).all():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _settle(changes: list[Change], num_frames: int) -> list[Change]:
    """One change for one place: sure cuts first, then wipes, then what the second look found."""
    order = {"cut": 0, "wipe": 1, "fade": 2, "dissolve": 3}
    kept: list[Change] = []
    for change in sorted(changes, key=lambda c: (not c.sure, order[c.method], -c.score)):
        if not 0 < change.frame < num_frames:
            continue
        touches = any(
            change.start - _TOUCH <= k.end and k.start <= change.end + _TOUCH for k in kept
        )
        if change.sure or not touches:
            kept.append(change)
    return sorted({c.frame: c for c in kept}.values(), key=lambda c: c.frame)


def _shots(document: SampleDocument, pts: Int64Array, changes: list[Change]) -> list[Shot]:
    starts = [(0, "start", 1.0), *((c.frame, c.method, c.score) for c in changes)]
    ends = [frame for frame, _, _ in starts[1:]] + [len(pts) - 1]
    return [
        Shot(
            span=TimeSpan(
                start_pts=int(pts[start]),
                end_pts=int(pts[end]),
                time_base_num=document.time_base_num,
                time_base_den=document.time_base_den,
            ),
            start_frame=start,
            end_frame=end,
            method=method,
            score=score,
        )
        for (start, method, score), end in zip(starts, ends, strict=True)
    ]
