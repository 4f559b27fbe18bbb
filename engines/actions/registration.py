"""Registration of two views of one scene by optical flow, people masked out.

A few matched marks bring the second view near the first (SIFT, Lowe 2004), dense flow says what is
still off (DIS, Kroeger et al. 2016), and one projective map is fitted to the flow of
the background that agrees both ways (MAGSAC++, Barath et al. 2020). People stand out of the
background and move between views: their flow would pull the map with them.

One projective map is exact for a camera that turns or a flat background; where the camera also
moved through a deep scene it fits the largest plane, and ``agreement`` tells how much that is.
"""

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
import numpy.typing as npt

from engines.errors import EngineError

Picture = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LONG_EDGE: Final = 384
_MARKS: Final = 1500
_CLEARER: Final = 0.8
_FAINT: Final = 0.01
"""Contrast of a mark; small pictures of plain rooms have few."""
_MIN_MATCHES: Final = 10
_MATCH_PX: Final = 4.0
_ROUNDS: Final = 3
_GRID: Final = 6
_PATCH: Final = 9
_TEXTURE: Final = 3.0
"""Standard deviation of grey levels in a patch from which flow means something."""
_BOTH_WAYS_PX: Final = 1.0
_FIT_PX: Final = 1.5
_MIN_POINTS: Final = 40
_MIN_AGREEMENT: Final = 0.25
_VISIBLE: Final = 0.5
_PERSON_REACH: Final = 0.1


@dataclass(frozen=True, eq=False)
class Registration:
    """The way from the second view to the first."""

    matrix: Floats
    """float64 [3, 3]: homogeneous pixels of the second picture to those of the first."""
    agreement: float
    """Share of the background that both views show whose flow fits the map, 0-1."""
    residual_px: float
    """Root mean square of what is left there, in pixels of the first picture."""

    def to_first(self, points: Floats) -> Floats:
        """Where points of the second picture are in the first; float64 [..., 2] pixels."""
        return _project(self.matrix, points)


def register(
    first: Picture,
    second: Picture,
    *,
    first_people: Mask | None = None,
    second_people: Mask | None = None,
) -> Registration | None:
    """Find the map between two views of one scene.

    Args:
        first: uint8 [h, w, 3] RGB.
        second: uint8 [h', w', 3] RGB.
        first_people: bool [h, w], where people stand (``people_mask``); None masks nothing.
        second_people: bool [h', w'].

    Returns:
        The map, or None where the views do not show one scene as far as can be told.

    Raises:
        EngineError: a mask does not have its picture's size.
    """
    grays, backs, scales = [], [], []
    for picture, people in ((first, first_people), (second, second_people)):
        gray, back, scale = _reduced(picture, people)
        grays.append(gray)
        backs.append(back)
        scales.append(scale)
    matrix = _by_marks(grays, backs)
    fit = None
    for _ in range(_ROUNDS):
        fit = _by_flow(grays, backs, matrix)
        if fit is None:
            return None
        matrix = fit.matrix
    if fit is None or fit.agreement < _MIN_AGREEMENT:
        return None
    up = np.diag([1 / scales[0], 1 / scales[0], 1.0])
    down = np.diag([scales[1], scales[1], 1.0])
    return Registration(up @ matrix @ down, fit.agreement, fit.residual_px / scales[0])


def people_mask(size: tuple[int, int], joints: Floats) -> Mask:
    """Where people stand, from their landmarks.

    Args:
        size: height and width of the picture.
        joints: float [people, J, 3], x and y in pixels and visibility 0-1.

    Returns:
        bool [h, w], the hull of each person's visible joints, grown by a tenth of its size.
    """
    mask = np.zeros(size, np.uint8)
    for person in joints:
        seen = person[person[:, 2] >= _VISIBLE, :2].astype(np.float32)
        if not len(seen):
            continue
        cv2.fillConvexPoly(mask, np.round(cv2.convexHull(seen)).astype(np.int32), 1)
        reach = max(1, round(_PERSON_REACH * float(np.ptp(seen, axis=0).max())))
        hull = np.round(cv2.convexHull(seen)).astype(np.int32)
        cv2.polylines(mask, [hull], isClosed=True, color=1, thickness=2 * reach)
    return mask.astype(np.bool_)


def _reduced(picture: Picture, people: Mask | None) -> tuple[Picture, Picture, float]:
    """Grey picture and background (uint8 0 or 1) at working size, and the scale to it."""
    height, width = picture.shape[:2]
    if people is not None and people.shape != (height, width):
        msg = f"a mask of {people.shape} for a picture of {(height, width)}"
        raise EngineError(msg)
    scale = min(1.0, _LONG_EDGE / max(height, width))
    size = (max(16, round(width * scale)), max(16, round(height * scale)))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    gray = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.uint8)
    back = np.ones(gray.shape, np.uint8)
    if people is not None:
        mask = people.astype(np.uint8)
        back -= cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST)
    return gray, back, scale


def _by_marks(grays: list[Picture], backs: list[Picture]) -> Floats:
    """A first map by matched marks; the identity where there are too few."""
    finder = cv2.SIFT.create(_MARKS, contrastThreshold=_FAINT)
    (here, these), (there, those) = (
        finder.detectAndCompute(gray, back) for gray, back in zip(grays, backs, strict=True)
    )
    if these is None or those is None or min(len(these), len(those)) < _MIN_MATCHES:
        return np.eye(3)
    pairs = cv2.BFMatcher(cv2.NORM_L2).knnMatch(those, these, k=2)
    matches = [best for best, other in pairs if best.distance < _CLEARER * other.distance]
    if len(matches) < _MIN_MATCHES:
        return np.eye(3)
    source = np.array([there[m.queryIdx].pt for m in matches])
    target = np.array([here[m.trainIdx].pt for m in matches])
    found, inlier = cv2.findHomography(source, target, cv2.USAC_MAGSAC, _MATCH_PX)
    if found is None or int(inlier.sum()) < _MIN_MATCHES:
        return np.eye(3)
    return np.asarray(found, np.float64)


def _by_flow(grays: list[Picture], backs: list[Picture], matrix: Floats) -> Registration | None:
    """The map fitted to the flow that is left when the second view is laid over the first."""
    height, width = grays[0].shape
    laid = cv2.warpPerspective(grays[1], matrix, (width, height))
    shared = cv2.warpPerspective(backs[1], matrix, (width, height)) & backs[0]
    method = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    ahead = method.calc(grays[0], laid, None)
    back = method.calc(laid, grays[0], None)
    y, x = (axis.ravel() for axis in np.mgrid[0:height:_GRID, 0:width:_GRID])
    start = np.stack([x, y], axis=1).astype(np.float64)
    moved = start + ahead[y, x]
    column = np.clip(np.round(moved[:, 0]).astype(int), 0, width - 1)
    row = np.clip(np.round(moved[:, 1]).astype(int), 0, height - 1)
    common = (shared[y, x] > 0) & (shared[row, column] > 0) & _textured(grays[0])[y, x]
    lost = np.linalg.norm(ahead[y, x] + back[row, column], axis=1)
    usable = common & (lost < _BOTH_WAYS_PX)
    if usable.sum() < _MIN_POINTS:
        return None
    source = _project(np.asarray(np.linalg.inv(matrix), np.float64), moved[usable])
    found, _ = cv2.findHomography(source, start[usable], cv2.USAC_MAGSAC, _FIT_PX)
    if found is None:
        return None
    left = np.linalg.norm(_project(np.asarray(found, np.float64), source) - start[usable], axis=1)
    fits = left < _FIT_PX
    return Registration(
        matrix=np.asarray(found, np.float64),
        agreement=float(fits.sum() / max(1, common.sum())),
        residual_px=float(np.sqrt(np.mean(left[fits] ** 2))) if fits.any() else 0.0,
    )


def _textured(gray: Picture) -> Mask:
    """Where there is something whose movement can be seen; bool [h, w]."""
    level = gray.astype(np.float32)
    size = (_PATCH, _PATCH)
    spread = cv2.blur(level * level, size) - cv2.blur(level, size) ** 2
    return np.asarray(spread > _TEXTURE**2)


def _project(matrix: Floats, points: Floats) -> Floats:
    extended = np.concatenate([points, np.ones((*points.shape[:-1], 1))], axis=-1) @ matrix.T
    return np.asarray(extended[..., :2] / extended[..., 2:])
