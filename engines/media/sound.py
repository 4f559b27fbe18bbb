"""Sound at 16 kHz on the asset clock: gaps stay gaps, however the packets came."""

from pathlib import Path
from typing import Any, BinaryIO

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from engines.media.clock import StreamClock

RATE_HZ = 16_000
GAP_SAMPLES = RATE_HZ // 25
"""A step of the stream's times of more than 40 ms is a gap, a lag as large an overlap; smaller
ones are jitter."""
_MAX_GAP_SAMPLES = 6 * 3600 * RATE_HZ
_MAX_OVERLAP_SHARE = 0.25
_BLOCK_SAMPLES = 1 << 16


class SoundWriter:
    """Resamples decoded sound to interleaved int16 and appends it to a raw file."""

    def __init__(self, file: BinaryIO, channels: int) -> None:
        """Write to ``file``.

        Args:
            file: open for appending; int16, ``channels`` values for each sample.
            channels: 1 or 2; more than two are mixed down.
        """
        self._file = file
        self.channels = channels
        self._resampler: AudioResampler | None = None
        self._shape: tuple[int, str, str] | None = None
        self.written = 0
        """Samples in the file, gaps included."""
        self.start: int | None = None
        """Time of sample 0 in 1/16000 s."""
        self._due = 0.0
        """Where the next sample belongs if nothing is missing, in 1/16000 s. Compared with the
        stated times, so that many small losses add up to a gap as one large loss does."""
        self.decoded: dict[int, int] = {}
        """Decoded samples by their rate in Hz."""
        self.gaps: list[tuple[float, float]] = []
        self.overlapped = 0
        """Samples left out because their time was taken already."""
        self._surplus = 0
        """Samples still to leave out of what the resampler gives next."""
        self.shortened_s = 0.0
        """Silence that was asked for beyond the longest gap, and not written."""

    @property
    def decoded_s(self) -> float:
        """Seconds of sound that decoded, gaps not counted."""
        return sum(samples / rate for rate, samples in self.decoded.items())

    def push(self, frame: AudioFrame, clock: StreamClock) -> None:
        """Append one decoded frame at its time."""
        rate, samples = frame.sample_rate, frame.samples
        if rate <= 0 or samples <= 0:
            return
        base = clock.time_base
        length = round(samples * base.denominator / (rate * base.numerator))
        same_time = frame.pts == clock.last_raw
        at = clock.rescale(clock.place(frame.pts, length), RATE_HZ)
        self.decoded[rate] = self.decoded.get(rate, 0) + samples
        if self.start is None:
            self.start = at
            self._due = float(at)
        elif at - self._due > GAP_SAMPLES:
            self._fill_gap(round(self._due), at)
            self._due = float(at)
        own = samples * RATE_HZ / rate
        if frame.pts is not None and not same_time:
            behind = self._due - clock.rescale(frame.pts + clock.offset, RATE_HZ)
            if behind > GAP_SAMPLES:
                own -= self._leave_out(round(min(own, behind)))
        self._due += own
        shape = (rate, frame.format.name, frame.layout.name)
        if shape != self._shape:
            self.flush()
            self._shape = shape
        if self._resampler is None:
            layout = "mono" if self.channels == 1 else "stereo"
            self._resampler = AudioResampler(format="s16", layout=layout, rate=RATE_HZ)
        frame.pts = None
        self._write(self._resampler.resample(frame))

    def _leave_out(self, overlap: int) -> int:
        """Samples of the next frame that are left out, their time being taken.

        What came first stays, or all that follows would be late. Times that would have much of
        the sound left out are not believed.
        """
        left_out = self.overlapped + self._surplus + overlap
        if left_out > _MAX_OVERLAP_SHARE * self.decoded_s * RATE_HZ:
            return 0
        self._surplus += overlap
        return overlap

    def flush(self) -> None:
        """Write what the resampler still holds; it starts afresh afterwards."""
        if self._resampler is not None:
            self._write(self._resampler.resample(None))
            self._resampler = None

    def _fill_gap(self, expected: int, at: int) -> None:
        """Zeros up to ``at``, both in 1/16000 s on the asset clock."""
        self.flush()
        assert self.start is not None
        missing = at - self.start - self.written
        if missing <= 0:
            return
        self.shortened_s += max(0, missing - _MAX_GAP_SAMPLES) / RATE_HZ
        missing = min(missing, _MAX_GAP_SAMPLES)
        self.gaps.append((expected / RATE_HZ, at / RATE_HZ))
        while missing > 0:
            block = min(missing, _BLOCK_SAMPLES)
            self._file.write(bytes(2 * self.channels * block))
            self.written += block
            missing -= block

    def _write(self, frames: list[AudioFrame]) -> None:
        for frame in frames:
            left_out = min(self._surplus, frame.samples)
            first, last = (2 * self.channels * n for n in (left_out, frame.samples))
            self._file.write(memoryview(frame.planes[0])[first:last])
            self._surplus -= left_out
            self.overlapped += left_out
            self.written += frame.samples - left_out

    def state(self) -> dict[str, Any]:
        """JSON values to go on from; the resampler is flushed."""
        self.flush()
        return {
            "written": self.written,
            "start": self.start,
            "due": self._due,
            "decoded": [[rate, samples] for rate, samples in self.decoded.items()],
            "gaps": self.gaps,
            "overlapped": self.overlapped,
            "surplus": self._surplus,
            "shortened_s": self.shortened_s,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.written = state["written"]
        self.start = state["start"]
        self._due = state["due"]
        self.decoded = dict(state["decoded"])
        self.gaps = [(start, end) for start, end in state["gaps"]]
        self.overlapped = state["overlapped"]
        self._surplus = state["surplus"]
        self.shortened_s = state["shortened_s"]


def channels_of(stream: av.AudioStream) -> int:
    """Channels to keep: 1 for mono, otherwise 2."""
    return 1 if stream.codec_context.channels == 1 else 2


def save_npy(raw: Path, target: Path, channels: int) -> None:
    """Turn the interleaved file into npy int16 [channels, n], block by block.

    Plain writes, one channel after the other: a memory map of a long file would count as
    resident memory of the worker.
    """
    total = raw.stat().st_size // (2 * channels)
    header = {"descr": "<i2", "fortran_order": False, "shape": (channels, total)}
    with target.open("wb") as out:
        np.lib.format.write_array_header_1_0(out, header)
        for channel in range(channels):
            with raw.open("rb") as file:
                while chunk := file.read(2 * channels * _BLOCK_SAMPLES):
                    block = np.frombuffer(chunk, dtype="<i2").reshape(-1, channels)
                    out.write(np.ascontiguousarray(block[:, channel]).tobytes())
