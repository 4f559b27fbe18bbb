"""What the packet headers of an MPEG transport stream (ISO/IEC 13818-1) tell: scrambling, a cut."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Final

SYNC: Final = 0x47
_PACKET_BYTES: Final = 188
_SPACINGS: Final = (188, 192, 204)
"""Bytes from packet to packet: plain, with a time code before it, with error correction behind."""
_STRETCH_BYTES: Final = 1 << 18
_STRETCHES: Final = 8
_SYNCS_IN_A_ROW: Final = 5
_NULL_PID: Final = 0x1FFF
_START_CODE: Final = b"\x00\x00\x01"
_PES_MARK: Final = 0b10
_WITHOUT_FLAGS: Final = frozenset({0xBC, 0xBE, 0xBF, 0xF0, 0xF1, 0xF2, 0xF8, 0xFF})
"""Stream ids whose units have no flags behind their length (ISO/IEC 13818-1, 2.4.3.6)."""
_MIN_STARTS: Final = 2
_LAST_PACKETS: Final = 2


def _first_packet(data: bytes) -> tuple[int, int] | None:
    """Offset of the first packet and the spacing of packets; None where there are none."""
    for spacing in _SPACINGS:
        for at in range(min(spacing, len(data))):
            syncs = data[at : at + spacing * _SYNCS_IN_A_ROW : spacing]
            if len(syncs) == _SYNCS_IN_A_ROW and set(syncs) == {SYNC}:
                return at, spacing
    return None


def _unit_starts(data: bytes, first: int, spacing: int) -> Iterator[tuple[int, bool]]:
    """(PID, is scrambled) of every packet in which a unit of its stream begins."""
    for at in range(first, len(data) - _PACKET_BYTES + 1, spacing):
        flags, control = data[at + 1], data[at + 3]
        # Packets that arrived damaged (the first flag) say nothing.
        if data[at] != SYNC or flags & 0x80 or not flags & 0x40 or not control & 0x10:
            continue
        pid = (flags & 0x1F) << 8 | data[at + 2]
        payload = at + 4 + (1 + data[at + 4] if control & 0x20 else 0)
        head = data[payload : min(payload + 9, at + _PACKET_BYTES)]
        is_clear = head.startswith(_START_CODE)
        scrambled = bool(control & 0xC0) and not is_clear
        has_flags = len(head) > len(_START_CODE) + 3 and head[3] not in _WITHOUT_FLAGS
        if is_clear and has_flags and head[6] >> 6 == _PES_MARK:
            scrambled = bool(head[6] & 0x30)
        if pid != _NULL_PID:
            yield pid, scrambled


def scrambled_pids(descriptor: int, size: int) -> tuple[set[int], set[int]]:
    """PIDs of the streams in an open file that are scrambled: for the most part, and in places.

    Either the whole payload of a packet is scrambled (transport_scrambling_control; a mark alone,
    on packets that are in the clear, does not count), or what follows the header of a unit
    (PES_scrambling_control). Both empty for other files than transport streams.

    Args:
        descriptor: the open file.
        size: its bytes; of a large file stretches are looked at, from its start to its end.
    """
    starts: Counter[int] = Counter()
    scrambled: Counter[int] = Counter()
    step = max(_STRETCH_BYTES, size // _STRETCHES)
    for offset in range(0, size, step):
        data = os.pread(descriptor, _STRETCH_BYTES, offset)
        found = _first_packet(data)
        if found is None:
            # A file that does not begin as a transport stream is none.
            if not offset:
                break
            continue
        for pid, is_scrambled in _unit_starts(data, *found):
            starts[pid] += 1
            scrambled[pid] += is_scrambled
    most = {p for p, n in starts.items() if n >= _MIN_STARTS and scrambled[p] * 2 > n}
    return most, {p for p, n in scrambled.items() if n >= _MIN_STARTS} - most


def cut_packet(descriptor: int, size: int) -> str | None:
    """Why an open file is known to end early; None where it ends with a packet.

    Only where packets without additions reach to the very end: what was put behind them is no cut.

    Args:
        descriptor: the open file.
        size: its bytes.
    """
    whole, rest = divmod(size, _PACKET_BYTES)
    if not rest or whole < _LAST_PACKETS:
        return None
    starts = [n * _PACKET_BYTES for n in (0, 1, 2, whole - 2, whole - 1, whole)]
    if any(os.pread(descriptor, 1, at) != bytes([SYNC]) for at in starts):
        return None
    return "the file ends within a packet"
