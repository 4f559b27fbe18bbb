"""One clock: integer presentation timestamps with their time base; seconds are derived.

The asset clock is the container's own presentation clock, as stated by its streams after edit
lists: a frame with PTS 900 in time base 1/90000 stands at 0.01 s, whatever the first frame's
time. Nothing is shifted to zero; ``media.start_s`` says where the asset begins.
"""

from fractions import Fraction
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class TimeSpan(BaseModel):
    """Half-open interval [start_pts, end_pts) in units of time_base_num / time_base_den s."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start_pts: int
    end_pts: int
    time_base_num: int = Field(gt=0)
    time_base_den: int = Field(gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end_pts < self.start_pts:
            msg = f"span ends before it starts: [{self.start_pts}, {self.end_pts})"
            raise ValueError(msg)
        return self

    @classmethod
    def from_seconds(cls, start_s: float, end_s: float, *, rate_hz: int = 16_000) -> Self:
        """Round seconds to ticks of 1/rate_hz; for facts that come from sampled sound."""
        return cls(
            start_pts=round(start_s * rate_hz),
            end_pts=max(round(start_s * rate_hz), round(end_s * rate_hz)),
            time_base_num=1,
            time_base_den=rate_hz,
        )

    @property
    def time_base(self) -> Fraction:
        """Seconds per tick."""
        return Fraction(self.time_base_num, self.time_base_den)

    @property
    def start_s(self) -> float:
        """Start in seconds on the asset clock."""
        return float(self.start_pts * self.time_base)

    @property
    def end_s(self) -> float:
        """End in seconds on the asset clock, exclusive."""
        return float(self.end_pts * self.time_base)

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return float((self.end_pts - self.start_pts) * self.time_base)

    def overlaps(self, other: "TimeSpan") -> bool:
        """Whether the two half-open intervals share an instant."""
        return self.start_s < other.end_s and other.start_s < self.end_s
