"""Follows people from picture to picture.

Each picture is searched where the people of the last one should be, unless nothing changed there;
whole pictures are searched for new ones at a slower pace, after a cut, and when somebody got lost.
While somebody is followed the closer views of a picture take turns. What is found is given to
the tracks by one assignment (Kuhn 1955) over box overlap and landmark distance, so two people who
cross keep their names as far as their bodies tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from engines.actions.pose.detector import PersonDetector, View, tiles, whole
from engines.actions.pose.geometry import (
    BodySquare,
    Floats,
    Picture,
    bounds,
    cells,
    is_other,
    overlap,
)
from engines.actions.pose.landmarks import LandmarkFinder, Pose
from engines.contracts.actions import PoseParams

MAIN = (0, 11, 12, 13, 14, 15, 16, 23, 24, 25, 26, 27, 28)
"""Head, shoulders, elbows, wrists, hips, knees, ankles."""
_SAME_SQUARE = 0.35
_SAME_POSE = 0.12
_MAX_DISTANCE = 0.4
_BORN_OVERLAP = 0.3
_CUT_LEVELS = 30.6
"""Mean change of grey levels, of 255, from which a picture is the first of another shot."""
_CUT_SIZE = (32, 18)
_COLUMNS = 128
"""Cells across a picture by which it is told whether anything changed around somebody."""
_UNFIT = 1e6
_FEW = 2
"""Looks of the detector from which its silence says something."""
_HURRY = 4
"""So many times as often is looked for people while somebody is lost."""


@dataclass(eq=False)
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
    seen: Floats | None = None
    """Cells of the picture in which the network last saw it."""

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
        self._looks = 0
        self._coarse: Floats | None = None
        self._cells = np.zeros((0, 0), np.float32)
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
        height, width = picture.shape[:2]
        self._cells = cells(picture, (_COLUMNS, max(1, round(_COLUMNS * height / width))))
        live = self._live(time_s)
        # Somebody who got lost is looked for where they might be now, not where they were.
        followed = [track for track in live if track.pictures[-1] == self._count - 1]
        lost = [track for track in live if track not in followed]
        newcomers = self._newcomers(picture, followed, lost, time_s)
        still = [track for track in followed if self._is_still(track, width)]
        moved = [track.poses[-1].square for track in followed if track not in still]
        poses = self._finder.find(picture, [*moved, *newcomers])
        known = [*(track.poses[-1] for track in still), *poses[: len(moved)]]
        seen = self._plausible(known, poses[len(moved) :], newcomers)
        if len(seen) < len(followed):
            self._detected_s = -np.inf
        self._assign(live, seen, time_s)
        self._count += 1

    def _is_cut(self, picture: Picture) -> bool:
        now = cells(picture, _CUT_SIZE)
        before, self._coarse = self._coarse, now
        return before is not None and float(np.abs(now - before).mean()) > _CUT_LEVELS

    def _is_still(self, track: Track, width: int) -> bool:
        """Whether nothing changed around somebody since the network last saw them."""
        if track.seen is None:
            return False
        square, cell = track.poses[-1].square, width / _COLUMNS
        reach = square.size / 2 + cell
        rows, columns = (
            slice(max(0, int((middle - reach) / cell)), max(0, int((middle + reach) / cell) + 1))
            for middle in (square.y, square.x)
        )
        return not is_other(track.seen[rows, columns], self._cells[rows, columns])

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
        lost: Sequence[Track],
        time_s: float,
    ) -> list[BodySquare]:
        """Squares of people whom nobody follows, when it is time to look for them.

        Args:
            picture: the whole.
            followed: who is known; what the detector says of them is noted.
            lost: who was seen a moment ago; they are looked for more often.
            time_s: of the picture.
        """
        pause_s = self._params.detect_every_s / (_HURRY if lost else 1)
        if time_s < self._detected_s + pause_s:
            return []
        closer = self._closer(picture, followed, lost)
        self._detected_s, self._looks = time_s, self._looks + 1
        views = [whole(picture.shape[1], picture.shape[0]), *closer]
        found = [d.square for d in self._detector.detect(picture, views)]
        known = [track.poses[-1].square for track in followed]
        same = overlap(_boxes(found), _boxes(known)) > _SAME_SQUARE
        for column, track in enumerate(followed):
            confirmed = bool(same[:, column].any())
            square = known[column]
            track.asked += confirmed or any(view.holds(square.x, square.y) for view in closer)
            track.confirmed += confirmed
        found = [square for row, square in enumerate(found) if not same[row].any()]
        self.most_people = max(self.most_people, len(known) + len(found))
        room = max(0, self._params.max_people - len(known))
        return sorted(found, key=lambda square: -square.size)[:room]

    def _closer(
        self, picture: Picture, followed: Sequence[Track], lost: Sequence[Track]
    ) -> Sequence[View]:
        """Which parts of a picture are looked at closer.

        All, where nobody is known or after a cut or a loss; then those where the lost were seen
        last; while everybody is followed, one after the other.
        """
        every = tiles(picture.shape[1], picture.shape[0])
        if not np.isfinite(self._detected_s) or not (followed or lost):
            return every
        squares = [track.poses[-1].square for track in lost]
        there = [view for view in every if any(view.holds(s.x, s.y) for s in squares)]
        return there or [every[self._looks % len(every)]]

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
        # A first pose comes from the detector's rough square: the next one is always looked for.
        if track.poses and pose is not track.poses[-1]:
            track.seen = self._cells
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
