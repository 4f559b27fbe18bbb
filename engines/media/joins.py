"""Where a recording ends and the next begins, told from the packets of joined files.

Decoded frames tell it too late: when the sound of the new part comes out, the decoder still holds
pictures of the old one. Packets state their ends before they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from engines.media.clock import JUMP_BACK_S, STEP_BACK_S, Epochs
from engines.media.streams import time_base_of

_JOINABLE = frozenset({"mpegts", "mpeg", "matroska", "webm"})
"""Containers that may simply be put one behind the other."""
_MAX_HELD = 100
"""A stream that is so far ahead is believed alone."""


def may_be_joined(container_name: str) -> bool:
    """Whether files of this container (a demuxer's name) are ever met joined."""
    return bool(_JOINABLE & set(container_name.split(",")))


class Joins:
    """Passes packets on, those of an old part before those of the new one.

    The first packet that steps back is held, with all that follow in its stream, until the other
    stream steps back as well; what that one still has of the old part goes first.
    """

    def __init__(self, streams: Sequence[Stream], epochs: Epochs) -> None:
        """Watch ``streams``; ends of parts are appended to ``epochs.part_ends_s``."""
        self._tick_s = {s.index: float(time_base_of(s)) for s in streams}
        self._epochs = epochs
        self._last_s: dict[int, float] = {}
        self._end_s: float | None = None
        """End of the latest packet of the present part."""
        self._steps_s: dict[int, float] = {}
        """How far the streams stepped back that wait for the others."""
        self._held: list[Packet[Stream]] = []
        self._behind: set[int] = set()
        """Streams that still give a part whose end is booked already."""

    def arrange(self, packets: Iterable[Packet[Stream]]) -> Iterator[Packet[Stream]]:
        """The same packets; where ``packets`` raises, a second call goes on."""
        for packet in packets:
            index = packet.stream_index
            if packet.dts is not None:
                start_s = packet.dts * self._tick_s[index]
                step_s = self._last_s.get(index, start_s) - start_s
                self._last_s[index] = start_s
                if step_s > STEP_BACK_S and index in self._behind:
                    self._behind.remove(index)
                elif step_s > STEP_BACK_S:
                    if index in self._steps_s:
                        yield from self._release()
                    self._steps_s[index] = step_s
            if not self._steps_s:
                self._note_end(packet)
                yield packet
            elif not packet.size:
                yield from self._release()
                yield packet
            elif index in self._steps_s:
                self._held.append(packet)
                if len(self._steps_s) == len(self._tick_s) or len(self._held) > _MAX_HELD:
                    yield from self._release()
            else:
                self._note_end(packet)
                yield packet

    def flush(self) -> Iterator[Packet[Stream]]:
        """The packets that are still held, where no more come."""
        if self._steps_s:
            yield from self._release()

    def _note_end(self, packet: Packet[Stream]) -> None:
        if packet.pts is not None and packet.stream_index not in self._behind:
            end = packet.pts + (packet.duration or 0)
            end_s = end * self._tick_s[packet.stream_index]
            if self._end_s is None or end_s > self._end_s:
                self._end_s = end_s

    def _release(self) -> Iterator[Packet[Stream]]:
        """Pass the held packets on, as a new part where they begin one."""
        if self._is_join() and self._end_s is not None:
            self._epochs.part_ends_s.append(self._end_s)
            self._end_s = None
            self._behind = set(self._tick_s) - set(self._steps_s)
        held, self._held = self._held, []
        self._steps_s = {}
        for packet in held:
            self._note_end(packet)
            yield packet

    def _is_join(self) -> bool:
        if max(self._steps_s.values()) > JUMP_BACK_S:
            return True
        if len(self._tick_s) > 1:
            return len(self._steps_s) == len(self._tick_s)
        first = self._held[0] if self._held else None
        return first is not None and first.is_keyframe and isinstance(first.stream, VideoStream)
