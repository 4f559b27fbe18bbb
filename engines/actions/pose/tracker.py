"""Follows people from picture to picture.

Each picture is searched where the people of the last one should be; whole pictures are searched
for new ones at a slower pace, after a cut, and when somebody got lost. What is found is given to
the tracks by one assignment (Kuhn 1955) over box overlap and landmark distance, so two people who
cross keep their names as far as their bodies tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from scipy.optimize import linear_sum_assignment

from engines.actions.pose.detector import PersonDetector
from engines.actions.pose.geometry import BodySquare, Floats, Picture, bounds, overlap
from engines.actions.pose.landmarks import LandmarkFinder, Pose
from engines.contracts.actions import PoseParams

MAIN = (0, 11, 12, 13, 14, 15, 16, 23, 24, 25, 26, 27, 28)
"""Head, shoulders, elbows, wrists, hips, knees, ankles."""
_SAME_SQUARE = 0.35
_SAME_POSE = 0.12
_MAX_DISTANCE = 0.4
_BORN_OVERLAP = 0.3
_CUT_CHANGE = 0.12
_CUT_SIZE = (32, 18)
_UNFIT = 1e6
_FEW = 2
"""Looks of the detector from which its silence says something."""
_HURRY = 4
"""So many times as often is looked for people while somebody is lost."""


@dataclass
class Track:
    """One person; row i was seen at picture ``pictures[i]``."""

    pictures: list[int] = field(default_factory=list)
    poses: list[Pose] = field(default_factory=list)
    last_s: float = 0.0
    ended: bool = False
    asked: int = 0
    """Looks of the detector while it was followed ..."""
    confirmed: int = 0
    """... and those in which somebody was seen there."""

    @property
    def presence(self) -> float:
        """Mean over its rows."""
        return float(np.mean([pose.presence for pose in self.poses]))

    def is_believed(self, params: PoseParams) -> bool:
        """Whether it looks like a person throughout: things do so for a moment, from one side."""
        enough = self.asked < _FEW or self.confirmed >= params.min_confirmed * self.asked
        return enough and self.presence >= params.min_track_presence


class PeopleTracker:
    """See the module; give it pictures in the order of their time."""

    def __init__(
        self, detector: PersonDetector, finder: LandmarkFinder, params: PoseParams
    ) -> None:
        """Nobody is known yet."""
        self._detector = detector
        self._finder = finder
        self._params = params
        self._count = 0
        self._detected_s = -np.inf
        self._cells: Floats | None = None
        self.tracks: list[Track] = []
        """All of them in the order of their first picture, however short."""
        self.most_people = 0
        """Most people that stood in one picture, followed or not."""

    def look(self, picture: Picture, time_s: float) -> None:
        """Take the next picture.

        Args:
            picture: uint8 [h, w, 3] RGB; all of one size.
            time_s: its time on the asset clock, above that of the one before.

        Raises:
            EngineError, OutOfMemoryError, NotFiniteError: a network failed.
        """
        if self._is_cut(picture):
            self._end_all()
        live = self._live(time_s)
        # Somebody who got lost is looked for where they might be now, not where they were.
        followed = [track for track in live if track.pictures[-1] == self._count - 1]
        squares = [track.poses[-1].square for track in followed]
        newcomers = self._newcomers(picture, followed, time_s, hurry=len(live) > len(followed))
        poses = self._finder.find(picture, [*squares, *newcomers])
        seen = self._plausible(poses[: len(squares)], poses[len(squares) :], newcomers)
        if len(seen) < len(squares):
            self._detected_s = -np.inf
        self._assign(live, seen, time_s)
        self._count += 1

    def _is_cut(self, picture: Picture) -> bool:
        small = cv2.resize(picture, _CUT_SIZE, interpolation=cv2.INTER_AREA)
        cells = small.astype(np.float32).mean(axis=2) / 255
        before, self._cells = self._cells, cells
        return before is not None and float(np.abs(cells - before).mean()) > _CUT_CHANGE

    def _end_all(self) -> None:
        for track in self.tracks:
            track.ended = True
        self._detected_s = -np.inf

    def _live(self, time_s: float) -> list[Track]:
        live = []
        for track in self.tracks:
            track.ended |= time_s - track.last_s > self._params.max_gap_s
            if not track.ended:
                live.append(track)
        return live

    def _newcomers(
        self,
        picture: Picture,
        followed: Sequence[Track],
        time_s: float,
        *,
        hurry: bool,
    ) -> list[BodySquare]:
        """Squares of people whom nobody follows, when it is time to look for them.

        Args:
            picture: the whole.
            followed: who is known; what the detector says of them is noted.
            time_s: of the picture.
            hurry: somebody got lost a moment ago.
        """
        pause_s = self._params.detect_every_s / (_HURRY if hurry else 1)
        if time_s < self._detected_s + pause_s:
            return []
        self._detected_s = time_s
        found = [d.square for d in self._detector.detect(picture, closer=True)]
        known = [track.poses[-1].square for track in followed]
        same = overlap(_boxes(found), _boxes(known)) > _SAME_SQUARE
        for column, track in enumerate(followed):
            track.asked += 1
            track.confirmed += bool(same[:, column].any())
        found = [square for row, square in enumerate(found) if not same[row].any()]
        self.most_people = max(self.most_people, len(known) + len(found))
        room = max(0, self._params.max_people - len(known))
        return sorted(found, key=lambda square: -square.size)[:room]

    def _plausible(
        self, followed: Sequence[Pose], born: Sequence[Pose], squares: Sequence[BodySquare]
    ) -> list[Pose]:
        """Poses that show somebody, each person once.

        A newcomer's landmarks must put the body where the detector put it: on things that merely
        look like a person the two disagree.
        """
        sure = [pose for pose in followed if pose.presence >= self._params.min_presence]
        for pose, square in zip(born, squares, strict=True):
            agree = overlap(_boxes([pose.square]), _boxes([square]))[0, 0] >= _BORN_OVERLAP
            if pose.presence >= self._params.min_presence and agree:
                sure.append(pose)
        kept: list[Pose] = []
        for pose in sure:
            if all(_distance(pose, other) > _SAME_POSE for other in kept):
                kept.append(pose)
        return kept

    def _assign(self, live: Sequence[Track], poses: Sequence[Pose], time_s: float) -> None:
        given: set[int] = set()
        if live and poses:
            costs = np.array([[_cost(track.poses[-1], pose) for pose in poses] for track in live])
            for i, j in zip(*linear_sum_assignment(costs), strict=True):
                if costs[i, j] < _UNFIT:
                    self._append(live[i], poses[j], time_s)
                    given.add(int(j))
        for j, pose in enumerate(poses):
            if j not in given:
                self.tracks.append(Track())
                self._append(self.tracks[-1], pose, time_s)

    def _append(self, track: Track, pose: Pose, time_s: float) -> None:
        track.pictures.append(self._count)
        track.poses.append(pose)
        track.last_s = time_s


def _boxes(squares: Sequence[BodySquare]) -> Floats:
    """float32 [n, 4]: upright squares of the same middle and size."""
    found = np.array([(s.x, s.y, s.x, s.y) for s in squares], np.float32).reshape(-1, 4)
    half = np.array([s.size / 2 for s in squares], np.float32)[:, None]
    return found + half * np.array([-1, -1, 1, 1], np.float32)


def _distance(first: Pose, second: Pose) -> float:
    """Mean distance of the main landmarks, in sizes of the larger body square."""
    apart = np.linalg.norm(first.points[MAIN, :2] - second.points[MAIN, :2], axis=1)
    return float(apart.mean() / max(first.square.size, second.square.size, 1.0))


def _cost(last: Pose, now: Pose) -> float:
    """How badly a pose continues a track; ``_UNFIT`` where it cannot."""
    distance = _distance(last, now)
    if distance > _MAX_DISTANCE:
        return _UNFIT
    boxes = [bounds(pose.points[MAIN, :2])[None] for pose in (last, now)]
    return distance + 1 - float(overlap(*boxes)[0, 0])
