"""From poses to what the network reads: joints about the body's centre, in torso lengths.

    clip [T, J, 3] -> holes filled, jumps taken out -> resampled by time -> centred at the hips,
    divided by the torso's length, turned to face the picture (with depth) -> [N, J + 1, 3]

The row after the joints is the path of the centre itself, from where it began: without it
walking and jogging on the spot would look alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d, median_filter

from engines.actions.skeleton import Floats, SkeletonClip, joint_rows, mirror_rows

CLIP_FRAMES: Final = 64
"""Moments kept of a clip before the network's own, shorter resampling."""
View = Literal["front", "kept", "flat"]
"""``front``: depth is used, and bodies are turned to face the picture. ``kept``: depth is kept, but
not used. ``flat``: depth is dropped. The last two have the same x and y."""
SEEN: Final = 0.5
"""Visibility from which on a joint counts as seen: BlazePose's own convention."""
SMOOTHING_S: Final = 0.17
"""A limb needs longer for a stroke there and back; a Kinect jump lasts a frame or two."""
MIN_SEEN_SHARE: Final = 0.15
"""A joint that was seen less is left out of the clip rather than guessed."""
TORSO_QUANTILE: Final = 0.75
"""In a flat picture a bent torso looks short: the longer moments tell its length."""
_SHOULDER_TO_TORSO: Final = 1.4
"""Torso length over shoulder width, for people seen from the waist up only."""
_SPAN_TO_TORSO: Final = 0.4
"""Torso length over the extent of what is seen, where neither can be measured."""
_LEAST_TORSO: Final = 0.1
"""A torso that looks shorter than this share of the body is seen from above, or is a mistake."""
_LOUD_JOINTS: Final = 4
"""A movement's pace is that of the few joints that move most."""
_EFFORT: Final = 0.5
"""Power of the speed by which time is stretched: 0 keeps time, 1 counts nothing but the way.
Chosen on the training files, with one and with two persons left out."""
_LEAST_EFFORT: Final = 1e-3
_EFFORT_SMOOTHING: Final = 1.0 / 32.0
"""Of the clip's length: effort is that of strokes, not that of a pose that shakes."""
_TINY: Final = 1e-6


@dataclass(frozen=True)
class NormalisedClips:
    """Many clips, ready to be augmented or read by a network."""

    joints: Floats
    """float32 [B, N, J + 1, 3]; the last row is the centre's path."""
    mask: Floats
    """float32 [B, J + 1]; 0 where a joint was not seen in the clip and its position is 0."""

    def __len__(self) -> int:
        """Number of clips."""
        return len(self.joints)

    def select(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> "NormalisedClips":
        """Some of the clips."""
        return NormalisedClips(self.joints[rows], self.mask[rows])

    def join(self, others: "NormalisedClips") -> "NormalisedClips":
        """These and, after them, others of the same joints."""
        return NormalisedClips(
            np.concatenate([self.joints, others.joints]), np.concatenate([self.mask, others.mask])
        )


def normalise_clips(
    clips: Sequence[SkeletonClip],
    names: Sequence[str],
    *,
    view: View,
    frames: int = CLIP_FRAMES,
) -> NormalisedClips:
    """Normalise clips of one source.

    Args:
        clips: any lengths and rates.
        names: of the joints; must hold shoulders and hips.
        view: what is done with depth.
        frames: moments per clip that come out.

    Returns:
        joints float32 [B, frames, J + 1, 3] and their mask; no clip gives B = 0.
    """
    out = np.zeros((len(clips), frames, len(names) + 1, 3), np.float32)
    mask = np.ones((len(clips), len(names) + 1), np.float32)
    for row, clip in enumerate(clips):
        out[row], mask[row, :-1] = normalise(clip, names, view=view, frames=frames)
    return NormalisedClips(out, mask)


def normalise(
    clip: SkeletonClip, names: Sequence[str], *, view: View, frames: int = CLIP_FRAMES
) -> tuple[Floats, Floats]:
    """One clip: float32 [frames, J + 1, 3] and mask float32 [J]."""
    filled, known = fill_holes(clip, names)
    smooth = remove_jumps(filled, clip.rate_hz)
    at = np.linspace(0.0, len(smooth) - 1, frames)
    centred, path = to_body_frame(sample_at(smooth, at), names, known, view=view)
    centred[:, ~known] = 0.0
    joined = np.concatenate([centred, path[:, None]], axis=1)
    if view == "flat":
        joined[..., 2] = 0.0
    return joined.astype(np.float32), known.astype(np.float32)


def fill_holes(
    clip: SkeletonClip, names: Sequence[str]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Interpolate unseen moments of each joint over time.

    Returns:
        float64 [T, J, 3], and bool [J]: which joints were seen often enough to be believed.
    """
    joints = np.array(clip.joints, np.float64)
    seen = (clip.visibility >= SEEN) & np.isfinite(joints).all(axis=2)
    moments = np.arange(len(joints))
    known = seen.mean(axis=0) >= MIN_SEEN_SHARE if len(joints) else np.zeros(len(names), np.bool_)
    for j in np.flatnonzero(~seen.all(axis=0)):
        at = seen[:, j]
        if not at.any():
            joints[:, j] = 0.0
            continue
        for axis in range(joints.shape[2]):
            joints[:, j, axis] = np.interp(moments, moments[at], joints[at, j, axis])
    return joints, known


def remove_jumps(joints: npt.NDArray[np.float64], rate_hz: float) -> npt.NDArray[np.float64]:
    """Median over about a sixth of a second: single wild moments go, strokes stay."""
    width = 2 * int(SMOOTHING_S * rate_hz / 2.0) + 1
    if width <= 1 or len(joints) < width:
        return joints
    return np.asarray(median_filter(joints, size=(width, 1, 1), mode="nearest"))


def sample_at(
    joints: npt.NDArray[np.floating], at: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Linear interpolation at fractional rows ``at`` [N] of joints [T, J, 3]."""
    low = np.clip(np.floor(at).astype(np.int64), 0, len(joints) - 1)
    high = np.minimum(low + 1, len(joints) - 1)
    share = (at - low)[:, None, None]
    return np.asarray(joints[low] * (1.0 - share) + joints[high] * share)


def to_body_frame(
    joints: npt.NDArray[np.float64],
    names: Sequence[str],
    known: npt.NDArray[np.bool_],
    *,
    view: View,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Centre at the hips (shoulders where hips are unseen), scale, and turn to the front.

    Of a pair of which one is unseen the other stands for both. Where shoulders or hips are missing
    altogether, the extent of what is seen gives the scale.

    Returns:
        float64 [T, J, 3] about the centre, and [T, 3]: the centre's path from where it began;
        both in torso lengths.
    """
    ls, rs, lh, rh = joint_rows(names, ("left_shoulder", "right_shoulder", "left_hip", "right_hip"))
    axes = slice(0, 3 if view == "front" else 2)
    span = _span(joints[:, known, axes])
    shoulders, hips = _middle(joints, (ls, rs), known), _middle(joints, (lh, rh), known)
    if hips is None and shoulders is not None:
        width = np.linalg.norm(joints[:, ls] - joints[:, rs], axis=1)
        wide = float(np.quantile(width, TORSO_QUANTILE)) * _SHOULDER_TO_TORSO
        below = wide if known[ls] and known[rs] else span * _SPAN_TO_TORSO
        hips = shoulders + np.array([0.0, below, 0.0])
    if hips is None:
        hips = joints[:, known if known.any() else slice(None)].mean(axis=1)
    torso = span * _SPAN_TO_TORSO
    if shoulders is not None:
        lengths = np.linalg.norm((shoulders - hips)[:, axes], axis=1)
        torso = float(np.quantile(lengths, TORSO_QUANTILE))
    length = max(torso, span * _LEAST_TORSO, _TINY)
    centred = (joints - hips[:, None]) / length
    path = (hips - hips[:1]) / length
    if view != "front":
        return centred, path
    across = centred[:, ls] - centred[:, rs] + centred[:, lh] - centred[:, rh]
    turn = rotation_about_vertical(math.atan2(across[:, 2].mean(), across[:, 0].mean()))
    return centred @ turn.T, path @ turn.T


def _middle(
    joints: npt.NDArray[np.float64], rows: tuple[int, int], known: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64] | None:
    """Middle of a pair of joints, [T, 3]; the one that is known, or None where neither is."""
    seen = [row for row in rows if known[row]]
    return np.asarray(joints[:, seen].mean(axis=1)) if seen else None


def _span(joints: npt.NDArray[np.float64]) -> float:
    """How far the joints that are known lie apart, in the longer direction: [T, K, D]."""
    if not joints.size:
        return 0.0
    return float(np.quantile(np.ptp(joints, axis=1).max(axis=1), TORSO_QUANTILE))


def rotation_about_vertical(angle: float) -> npt.NDArray[np.float64]:
    """Matrix [3, 3] that takes a direction at ``angle`` in the x-z plane to the x axis."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def even_effort(clips: NormalisedClips, dimensions: int) -> NormalisedClips:
    """The same movements, sampled densely where the body moves and sparsely where it rests.

    People who wait, hurry or linger come to look alike.

    Args:
        clips: evenly sampled in time.
        dimensions: 2 measures movement in x and y only.
    """
    path = clips.joints[..., :dimensions].astype(np.float64)
    path = gaussian_filter1d(path, _EFFORT_SMOOTHING * path.shape[1], axis=1, mode="nearest")
    steps = np.linalg.norm(np.diff(path, axis=1), axis=3)
    loud = np.sort(steps, axis=2)[..., -_LOUD_JOINTS:].mean(axis=2)
    spent = np.pad(np.cumsum(loud**_EFFORT + _LEAST_EFFORT, axis=1), ((0, 0), (1, 0)))
    moments = np.arange(path.shape[1], dtype=np.float64)
    out = np.empty_like(clips.joints)
    for row, effort in enumerate(spent):
        at = np.interp(np.linspace(0.0, effort[-1], len(moments)), effort, moments)
        out[row] = sample_at(clips.joints[row], at)
    return NormalisedClips(out, clips.mask)


def mirror(clips: NormalisedClips, names: Sequence[str]) -> NormalisedClips:
    """The same movements with left and right exchanged."""
    rows = [*mirror_rows(names), len(names)]
    flipped = clips.joints[:, :, rows] * np.array([-1.0, 1.0, 1.0], np.float32)
    return NormalisedClips(flipped, clips.mask[:, rows])


def spin(clips: NormalisedClips, degrees: float) -> NormalisedClips:
    """The same movements turned about the vertical; means something only where depth was kept."""
    matrix = rotation_about_vertical(math.radians(degrees)).T.astype(np.float32)
    return NormalisedClips(np.asarray(clips.joints @ matrix, np.float32), clips.mask)


def turn(clip: SkeletonClip, degrees: float) -> SkeletonClip:
    """The same movement seen from elsewhere; means something only for a clip with depth."""
    centre = clip.joints.mean(axis=(0, 1))
    matrix = rotation_about_vertical(math.radians(degrees)).T.astype(np.float32)
    joints = np.asarray((clip.joints - centre) @ matrix + centre, np.float32)
    return SkeletonClip(joints, clip.visibility, clip.rate_hz)


def disturb(clips: NormalisedClips, noise: float, dropout: float, seed: int) -> NormalisedClips:
    """Add what a pose estimator may do: jitter and joints that are not seen.

    Args:
        clips: left as they are.
        noise: standard deviation of each coordinate of each joint at each moment, torso lengths.
        dropout: share of joints that are missing from a whole clip.
        seed: of the random numbers.
    """
    rng = np.random.default_rng(seed)
    joints = clips.joints + rng.normal(0.0, noise, clips.joints.shape).astype(np.float32)
    mask = clips.mask * (rng.random(clips.mask.shape) >= dropout)
    mask[:, -1] = clips.mask[:, -1]
    return NormalisedClips(
        np.asarray(joints * mask[:, None, :, None], np.float32), mask.astype(np.float32)
    )
