"""Packets from which something is missing, as the demuxer marks them, also where they decode."""

from __future__ import annotations

from typing import Final

from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

_PICTURES_BEFORE_JOIN: Final = 2


class Losses:
    """Tells real losses from the marks at the join of two recordings.

    At a join nothing is missing, but the counters of the transport stream jump, and one of the
    last two pictures before it is marked. So the mark of a picture counts only when no key
    picture follows it that closely.
    """

    def __init__(self) -> None:
        """No mark is waiting."""
        self.waiting: dict[int, tuple[Packet[Stream], int]] = {}
        """By stream: a marked picture, and how many packets came since."""

    def watch(self, packet: Packet[Stream]) -> Packet[Stream] | None:
        """Look at a packet that decoded; a damaged one comes back, once that is sure.

        Needs to be called for marked packets, and for all packets while one is waiting.
        """
        if not isinstance(packet.stream, VideoStream):
            return packet if packet.is_corrupt else None
        index = packet.stream_index
        marked, later = self.waiting.pop(index, (None, 0))
        if packet.is_corrupt:
            self.waiting[index] = (packet, 0)
        elif packet.is_keyframe and packet.size:
            return None
        elif marked is not None and packet.size and later + 1 < _PICTURES_BEFORE_JOIN:
            self.waiting[index] = (marked, later + 1)
            return None
        return marked
