"""Whether the videos of a corpus agree on what an edge does.

A mean over videos hides that some say yes and some say no. Cochran's Q asks whether the videos
differ by more than chance, I-squared says how much of the spread that is (Higgins and Thompson
2002), and the interval of the mean lets the effect differ from video to video (DerSimonian and
Laird 1986, with the t-interval of Hartung and Knapp 2001).
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from engines.causal.counterfactual import Removal

DIFFER_ALPHA = 0.01
SOME = 0.5
"""Effects lost per removed cause from which a video speaks for the edge."""


@dataclass(frozen=True)
class Agreement:
    """What the videos say of one edge.

    Attributes:
        num_videos: videos in which the cause occurred.
        num_for: those in which half or more of its occurrences brought the effect.
        i_squared: share of the spread between videos that chance does not explain, 0 to 1.
        p_value: of all videos having the same effect (Cochran's Q).
        mean: effects lost per removed cause, over videos whose effects may differ.
        low: lower end of its interval.
        high: upper end.
    """

    num_videos: int
    num_for: int
    i_squared: float
    p_value: float
    mean: float
    low: float
    high: float

    @property
    def differ(self) -> bool:
        """Whether the videos differ by more than chance."""
        return self.p_value < DIFFER_ALPHA

    @property
    def is_contradiction(self) -> bool:
        """Whether they differ so much that another video could as well show no effect."""
        return self.differ and self.low <= 0.0

    def describe(self) -> str:
        """The numbers in words."""
        return (
            f"{self.num_for} of {self.num_videos} videos show it, I2 = {self.i_squared:.2f}, "
            f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}] lost per removed cause over videos"
        )


def agreement(removal: Removal, alpha: float) -> Agreement | None:
    """Compare the videos; None when the cause occurred in one alone.

    Args:
        removal: the effect of taking the cause away, by video.
        alpha: the interval covers 1 - alpha.
    """
    delta, number = removal.per_video, removal.video_weight
    k = len(delta)
    if k < 2:  # noqa: PLR2004
        return None
    # One spread for all: that of each video's own share would be none where every cause worked,
    # and would give most weight to the extremes. One success and one failure more for the same
    # reason.
    total = float(number.sum())
    share = (float(np.clip(delta, 0.0, 1.0) @ number) + 1.0) / (total + 2.0)
    variance = share * (1.0 - share) / number
    weight = 1.0 / variance
    fixed = float(weight @ delta / weight.sum())
    q = float(weight @ (delta - fixed) ** 2)
    between = (q - (k - 1)) / float(weight.sum() - (weight**2).sum() / weight.sum())
    weight = 1.0 / (variance + max(0.0, between))
    mean = float(weight @ delta / weight.sum())
    spread = float(weight @ (delta - mean) ** 2) / ((k - 1) * float(weight.sum()))
    half = float(stats.t.ppf(1.0 - alpha / 2.0, k - 1)) * float(np.sqrt(spread))
    return Agreement(
        num_videos=k,
        num_for=int((delta >= SOME).sum()),
        i_squared=max(0.0, (q - (k - 1)) / q) if q > 0 else 0.0,
        p_value=float(stats.chi2.sf(q, k - 1)),
        mean=mean,
        low=mean - half,
        high=mean + half,
    )
