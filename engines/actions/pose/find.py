"""Stage ``pose``: pictures in, people with their landmarks over time out."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from engines.actions.pose.describe import DETECTOR, LANDMARKS
from engines.actions.pose.detector import PersonDetector
from engines.actions.pose.geometry import Floats, Picture
from engines.actions.pose.landmarks import NUM_LANDMARKS, LandmarkFinder
from engines.actions.pose.networks import open_network
from engines.actions.pose.smoothing import one_euro
from engines.actions.pose.tracker import PeopleTracker, Track
from engines.contracts.actions import PersonTrack, PoseDocument, PoseParams
from engines.contracts.base import Coverage
from engines.runtime.manifest import revision
from engines.runtime.session import Session

MIN_SIDE = 16
"""Pictures smaller than this in either direction show nobody."""


@dataclass(frozen=True, eq=False)
class PoseRows:
    """The blobs of a ``PoseDocument``; see there."""

    joints: Floats
    world: Floats
    pts: npt.NDArray[np.int64]


@dataclass(frozen=True)
class LookedAt:
    """What the pictures stand for."""

    time_base: Fraction
    rate_hz: float
    """Pictures a second."""
    covered_s: float
    skipped_s: float = 0.0
    """Seconds of which there are no pictures."""
    degraded: tuple[str, ...] = ()


def find_people(
    pictures: Iterable[tuple[int, Picture]], looked_at: LookedAt, params: PoseParams
) -> tuple[PoseDocument, PoseRows]:
    """Find and follow the people in a sequence of pictures.

    Args:
        pictures: time (in ``looked_at.time_base``, rising) and uint8 [h, w, 3] RGB of each, all
            of one size; held one at a time.
        looked_at: what they stand for.
        params: see ``PoseParams``.

    Returns:
        The document and its blobs; without people both are empty and the coverage says so.

    Raises:
        ModelMissingError, ModelHashError: weights not there, or not the pinned bytes.
        EngineError, OutOfMemoryError, NotFiniteError: a network failed.
    """
    tracker = _tracker(params)
    times: list[int] = []
    size = (0, 0)
    for pts, picture in pictures:
        size = (picture.shape[1], picture.shape[0])
        if min(size) < MIN_SIDE:
            break
        tracker.look(picture, float(pts * looked_at.time_base))
        times.append(pts)
    pts_of = np.array(times, dtype=np.int64)
    kept = _believed(tracker.tracks, pts_of, looked_at.time_base, params)
    people, rows = _rows(kept, pts_of, size, looked_at.time_base, smooth=params.smoothing)
    crowd = _crowd(tracker, params)
    reasons = [*_nobody(tracker, kept, size), *([crowd] if crowd else [])]
    if looked_at.skipped_s:
        reasons.append(f"{looked_at.skipped_s:.1f} s of little motion were not looked at")
    document = PoseDocument(
        tracks=people,
        model=f"BlazePose full@{revision(DETECTOR)[:6]}+{revision(LANDMARKS)[:6]}",
        time_base_num=looked_at.time_base.numerator,
        time_base_den=looked_at.time_base.denominator,
        rate_hz=looked_at.rate_hz,
        width=size[0],
        height=size[1],
        coverage=Coverage(
            covered_s=looked_at.covered_s if times else 0.0,
            skipped_s=looked_at.skipped_s + (0.0 if times else looked_at.covered_s),
            reason="; ".join(reasons) or None,
        ),
        degraded=(*looked_at.degraded, *([crowd] if crowd else ())),
    )
    return document, rows


@lru_cache(maxsize=2)
def _engines(device: str, threads: int | None) -> tuple[Session, Session]:
    """Both networks, kept for the life of the process."""
    return (
        open_network(DETECTOR, device=device, threads=threads),
        open_network(LANDMARKS, device=device, threads=threads),
    )


def _tracker(params: PoseParams) -> PeopleTracker:
    detector, landmarks = _engines(params.device, params.threads)
    return PeopleTracker(
        PersonDetector(detector, min_score=params.min_detection, batch_size=params.batch_size),
        LandmarkFinder(landmarks, batch_size=params.batch_size),
        params,
    )


def _believed(
    tracks: list[Track], pts: npt.NDArray[np.int64], time_base: Fraction, params: PoseParams
) -> list[Track]:
    """Tracks that are sure, and last, or last as long as there are pictures (a still has one)."""
    if not len(pts):
        return []
    needed = min(Fraction(params.min_track_s), (int(pts[-1]) - int(pts[0])) * time_base)
    return [
        track
        for track in tracks
        if track.is_believed(params)
        and (int(pts[track.pictures[-1]]) - int(pts[track.pictures[0]])) * time_base >= needed
    ]


def _rows(
    tracks: list[Track],
    pts: npt.NDArray[np.int64],
    size: tuple[int, int],
    time_base: Fraction,
    *,
    smooth: bool,
) -> tuple[tuple[PersonTrack, ...], PoseRows]:
    joints, world, times, people = [], [], [], []
    first = 0
    for number, track in enumerate(tracks, start=1):
        points = np.stack([pose.points for pose in track.poses])
        metres = np.stack([pose.world for pose in track.poses])
        when = pts[track.pictures]
        if smooth:
            time_s = when.astype(np.float64) * float(time_base)
            body = np.array([pose.square.size for pose in track.poses], np.float32)
            points[..., :3] = one_euro(points[..., :3], time_s, body)
            metres = one_euro(metres, time_s, np.ones(len(metres), np.float32))
        points[..., :3] /= np.array([size[0], size[1], size[0]], np.float32)
        joints.append(points)
        world.append(metres)
        times.append(when)
        people.append(
            PersonTrack(
                track=f"person-{number}",
                first_row=first,
                last_row=first + len(when) - 1,
                score=min(1.0, max(0.0, track.presence)),
            )
        )
        first += len(when)
    if not people:
        return (), PoseRows(
            np.zeros((0, NUM_LANDMARKS, 4), np.float32),
            np.zeros((0, NUM_LANDMARKS, 3), np.float32),
            np.zeros(0, np.int64),
        )
    rows = PoseRows(np.concatenate(joints), np.concatenate(world), np.concatenate(times))
    return tuple(people), rows


def _nobody(tracker: PeopleTracker, kept: list[Track], size: tuple[int, int]) -> list[str]:
    """Why there are no tracks, where there are none."""
    if kept:
        return []
    if size == (0, 0):
        return ["there was no picture to look at"]
    if min(size) < MIN_SIDE:
        return [f"pictures of {size[0]}x{size[1]} are too small to show people"]
    if tracker.tracks:
        return [f"sightings: {len(tracker.tracks)}, none long and sure enough to be a person"]
    return ["nobody was seen"]


def _crowd(tracker: PeopleTracker, params: PoseParams) -> str | None:
    if tracker.most_people <= params.max_people:
        return None
    # The detector misses some of a crowd, and who was looked at may prove to be nobody.
    seen = f"{tracker.most_people} people or more in one picture"
    return f"{seen}: only the {params.max_people} largest were looked at"
