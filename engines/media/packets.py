"""Packet by packet through a container: one bad packet costs itself, not the rest of the file."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import av
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.stream import Discard, Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from engines.media.clock import JUMP_BACK_S, Epochs
from engines.media.joins import Joins, may_be_joined
from engines.media.limits import MediaLimits
from engines.media.losses import Losses
from engines.media.streams import open_decoder, time_base_of

_DEMUX_RETRIES = 20
_MERGE_S = 1.0
_MERGE_DECODED_S = 0.1
"""What lies between two packets that decode in spite of their losses is no loss."""
_SOUND_EXTRA = 0.2
_MAX_DELAY = 64
"""Pictures that a decoder may hold: those of its threads, and those that wait for their turn."""


class NeedsSerialError(Exception):
    """Damage met while decoding on several threads, where errors cannot be located."""


@dataclass
class Damage:
    """Packets that did not decode, and when they were due."""

    packets: int = 0
    spans: list[tuple[float, float]] = field(default_factory=list)
    stopped: str | None = None
    """Why decoding ended before the file did."""

    def note(self, start_s: float | None, length_s: float, merge_s: float = _MERGE_S) -> None:
        """Count one bad packet; spans less than ``merge_s`` apart become one."""
        self.packets += 1
        if start_s is None:
            return
        end_s = start_s + max(length_s, 0.0)
        if self.spans and self.spans[-1][0] - merge_s <= start_s <= self.spans[-1][1] + merge_s:
            first, last = self.spans[-1]
            self.spans[-1] = (min(first, start_s), max(last, end_s))
        else:
            self.spans.append((start_s, end_s))


class PacketDecoder:
    """Iterates over decoded frames of up to two streams in the order they come out."""

    def __init__(
        self,
        container: InputContainer,
        video: VideoStream | None,
        audio: AudioStream | None,
        limits: MediaLimits,
        *,
        threads: int,
        damage: Damage,
        epochs: Epochs | None = None,
    ) -> None:
        """Prepare the decoders; nothing is read yet.

        Args:
            container: an open container; it may have been sought to a position.
            video: picture stream to decode.
            audio: sound stream to decode.
            limits: caps on errors and time.
            threads: decoder threads for the picture; 0 lets the library choose, and then the
                first damaged packet raises NeedsSerialError.
            damage: receives what goes wrong.
            epochs: receives where the parts of a joined file end.
        """
        self._container = container
        self._streams = [s for s in (video, audio) if s is not None]
        self._limits = limits
        self._threads = threads
        self._video = video
        self._budget_s = limits.decode_budget_s
        self._started = time.monotonic()
        self.damage = damage
        self._joins: Joins | None = None
        if epochs is not None and may_be_joined(container.format.name):
            self._joins = Joins(self._streams, epochs)
        self._consecutive = 0
        self._picture_given_up = False
        # Others mark a last packet that is merely shorter than they asked for.
        self._losses = Losses() if container.format.name == "mpegts" else None
        self._sent: deque[int] = deque(maxlen=_MAX_DELAY)
        """Times of the latest pictures that went into a decoder with several threads."""
        self._shown: int | None = None
        """Time of the latest one that came out."""
        self.seen: set[int] = set()
        """Streams that had a packet with data in it."""
        self.read_to: int | None = None
        """Where the latest packet lies in the file, in bytes; None where that is unknown."""
        for stream in self._streams:
            open_decoder(stream, limits, threads if stream is video else 1)

    def __iter__(self) -> Iterator[VideoFrame | AudioFrame]:
        for packet in self._packets():
            yield from self._decode(packet)
            if self._consecutive > self._limits.max_consecutive_errors:
                self.damage.stopped = (
                    f"{self._consecutive} damaged packets in a row: the rest was given up"
                )
                return
            if self._budget_s is not None and self._out_of_time(self._budget_s):
                return

    def _out_of_time(self, budget_s: float) -> bool:
        """Give up the picture at the budget, and the cheap sound a fifth of it later."""
        spent_s = time.monotonic() - self._started
        if spent_s <= budget_s:
            return False
        if self.damage.stopped is None:
            self.damage.stopped = f"the limit of {budget_s:g} s of decoding was reached"
            if self._video is not None:
                self._video.discard = Discard.all
                self._picture_given_up = True
        return len(self._streams) == 1 or spent_s > budget_s * (1 + _SOUND_EXTRA)

    def _packets(self) -> Iterator[Packet[Stream]]:
        """Packets of the chosen streams; reading goes on behind an unreadable place."""
        retries = 0
        while retries <= _DEMUX_RETRIES:
            try:
                packets = self._container.demux(self._streams)
                for packet in packets if self._joins is None else self._joins.arrange(packets):
                    yield packet
                    if packet.size:
                        retries = 0
            except av.FFmpegError:
                retries += 1
                self.damage.note(None, 0.0)
            else:
                return
        if self._joins is not None:
            yield from self._joins.flush()
        self.damage.stopped = "the container cannot be read any further"

    def _decode(self, packet: Packet[Stream]) -> list[VideoFrame | AudioFrame]:
        if self._picture_given_up and packet.stream is self._video:
            return []
        if packet.size:
            self.seen.add(packet.stream_index)
            self.read_to = packet.pos
        try:
            frames = packet.decode()
        except av.FFmpegError as error:
            if isinstance(error, av.error.EOFError):
                return []
            if self._threads != 1 and isinstance(packet.stream, VideoStream):
                raise NeedsSerialError from error
            self._note(packet)
            return []
        if self._losses is not None and (packet.is_corrupt or self._losses.waiting):
            damaged = self._losses.watch(packet)
            if damaged is not None:
                self._locate(damaged, _MERGE_DECODED_S)
        if frames:
            self._consecutive = 0
        if self._threads != 1 and packet.stream is self._video:
            self._watch_tail(packet, frames)
        return [f for f in frames if isinstance(f, VideoFrame | AudioFrame)]

    def _watch_tail(self, packet: Packet[Stream], frames: Sequence[object]) -> None:
        """Notice pictures that are lost without an error at the end of a damaged file.

        Raises:
            NeedsSerialError: the decoder is empty and did not give the last pictures.
        """
        if packet.pts is not None and not packet.is_discard:
            self._sent.append(packet.pts)
        if frames and isinstance(frames[-1], VideoFrame):
            self._shown = frames[-1].pts
        if not packet.size and self._shown is not None and self._last_sent() > self._shown:
            raise NeedsSerialError

    def _last_sent(self) -> int:
        """Time of the last picture, in the order they are shown, that went into the decoder."""
        assert self._video is not None
        back = int(JUMP_BACK_S / time_base_of(self._video))
        last = self._sent[0] if self._sent else 0
        for pts in self._sent:
            # A larger step back is another recording.
            last = pts if pts < last - back else max(last, pts)
        return last

    def _note(self, packet: Packet[Stream]) -> None:
        self._consecutive += 1
        self._locate(packet, _MERGE_S)

    def _locate(self, packet: Packet[Stream], merge_s: float) -> None:
        """Count a damaged packet at its time."""
        base = time_base_of(packet.stream)
        stamp = packet.pts if packet.pts is not None else packet.dts
        self.damage.note(
            None if stamp is None else float(stamp * base),
            float((packet.duration or 0) * base),
            merge_s,
        )
