"""Times of decoded frames on the asset clock: strictly rising, estimated only where missing."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

_LONGEST_FRAME_S = 24 * 3600
"""A header that has one frame shown for longer than a day is not believed."""
JUMP_BACK_S = Fraction(1, 2)
"""A step back of more than this is a new recording appended, not reordering or jitter."""
STEP_BACK_S = Fraction(1, 10)
"""The same, where the packets show that one ends here; less is a muxer's rounding."""
_LONGEST_DELAY_S = 10.0
"""Frames that a decoder holds back do not last longer than this; else an end is not believed."""


@dataclass
class Epochs:
    """Offsets of the appended parts of a file, shared by its streams.

    Transport streams that were concatenated start their clock again in the middle. The first
    stream that sees the step fixes the offset of the new part; the others follow it, so that
    picture and sound stay together.
    """

    offsets_s: list[Fraction] = field(default_factory=lambda: [Fraction(0)])
    """Seconds to add to the container's times, one for each part."""
    reached_s: float = 0.0
    """End of the latest frame of any stream, on the asset clock."""
    part_ends_s: list[float] = field(default_factory=list)
    """Ends of the finished parts on the container's clock, where the packets told them."""

    def begin(self, raw_s: Fraction) -> None:
        """Open the next part, whose first frame has this time on the container's clock.

        It goes on where the longest stream of the part before ended. Frames that a decoder
        still holds have not been seen by then; the packets know their ends.
        """
        reached_s = self.reached_s
        part = len(self.offsets_s) - 1
        if part < len(self.part_ends_s):
            end_s = self.part_ends_s[part] + float(self.offsets_s[part])
            reached_s = max(reached_s, min(end_s, reached_s + _LONGEST_DELAY_S))
        self.offsets_s.append(Fraction(reached_s).limit_denominator(1_000_000) - raw_s)


class StreamClock:
    """Puts the frames of one stream, in the order they are shown, on the asset clock.

    Called for every frame, so it counts in integer ticks; fractions appear at a jump only.
    """

    def __init__(
        self,
        time_base: Fraction,
        nominal_ticks: int,
        epochs: Epochs,
        *,
        ignore_pts: bool = False,
    ) -> None:
        """Start before the first frame.

        Args:
            time_base: seconds per tick.
            nominal_ticks: length of a frame where none is stated.
            epochs: shared with the other stream of the file.
            ignore_pts: the container states decoding times alone (AVI); what the library makes
                of them as presentation times is off by the reordering delay.
        """
        self.time_base = time_base
        self.epochs = epochs
        self._tick_s = float(time_base)
        self._longest_ticks = int(_LONGEST_FRAME_S / time_base)
        self._jump_ticks = -int(JUMP_BACK_S / time_base)
        self._step_ticks = -int(STEP_BACK_S / time_base)
        self._ignore_pts = ignore_pts
        self.nominal_ticks = max(1, nominal_ticks)
        self.epoch = 0
        self.offset = 0
        """Ticks added to the container's times in the present part."""
        self.estimated = 0
        """Frames without a time of their own."""
        self.repaired = 0
        """Frames whose time did not rise and was moved."""
        self.last_raw: int | None = None
        self.last_dts: int | None = None
        self.last: int | None = None
        self.end = 0

    def seconds(self, ticks: int) -> float:
        """Ticks of this stream in seconds."""
        return ticks * self._tick_s

    def rescale(self, ticks: int, rate_hz: int) -> int:
        """Ticks of this stream in units of 1/rate_hz s, rounded."""
        numerator = ticks * self.time_base.numerator * rate_hz
        return (2 * numerator + self.time_base.denominator) // (2 * self.time_base.denominator)

    def place(self, raw_pts: int | None, duration: int, dts: int | None = None) -> int:
        """Time of the next frame, in ticks on the asset clock.

        Args:
            raw_pts: as the decoder gives it; None where the container states none.
            duration: ticks the frame is shown; 0 where unknown.
            dts: decoding time that came out with the frame. Its steps are those of the shown
                frames, though its values are not: AVI states nothing else.
        """
        length = duration if 0 < duration <= self._longest_ticks else self.nominal_ticks
        if raw_pts is None or self._ignore_pts:
            self.estimated += raw_pts is None
            length = self._estimate(dts, length)
            pts = 0 if self.last is None else self.end
        else:
            if self.last_raw is not None and raw_pts < self.last_raw:
                self._step_back(raw_pts, raw_pts - self.last_raw)
            self.last_raw = raw_pts
            self.last_dts = dts if dts is not None else self.last_dts
            pts = raw_pts + self.offset
        if self.last is not None and pts <= self.last:
            self.repaired += 1
            pts = self.last + 1
        self.last = pts
        self.end = pts + length
        self.epochs.reached_s = max(self.epochs.reached_s, self.end * self._tick_s)
        return pts

    def _estimate(self, dts: int | None, length: int) -> int:
        """Move ``end`` to where this frame begins; its likely length comes back."""
        if dts is not None and self.last_dts is not None and dts > self.last_dts:
            self.nominal_ticks = dts - self.last_dts
            self.end = (self.last or 0) + self.nominal_ticks
        if dts is None and self.last_dts is None:
            return length
        self.last_dts = dts if dts is not None else self.last_dts
        return self.nominal_ticks

    def _step_back(self, raw_pts: int, step: int) -> None:
        """Go over to the next part, if this is one and no jitter."""
        is_known = self.epoch < len(self.epochs.part_ends_s)
        if step >= (self._step_ticks if is_known else self._jump_ticks):
            return
        self.epoch += 1
        if self.epoch == len(self.epochs.offsets_s):
            self.epochs.begin(raw_pts * self.time_base)
        self.offset = round(self.epochs.offsets_s[self.epoch] / self.time_base)

    def state(self) -> dict[str, Any]:
        """JSON values to go on from."""
        names = ("nominal_ticks", "epoch", "offset", "estimated", "repaired", "last_raw",
                 "last_dts", "last", "end")  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name, value in state.items():
            setattr(self, name, value)
