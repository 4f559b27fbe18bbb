"""Whether a file ends before it should, told by the lengths and end marks of simple formats.

The demuxers of these formats give what is there and say nothing.
"""

import os
import re
import struct
from collections.abc import Callable
from typing import Final

from engines.media.transport import SYNC, cut_packet

_UNKNOWN_LENGTH: Final = 2**32 - 1
_ASF_START: Final = bytes.fromhex("3026b2758e66cf11")
_ASF_PROPERTIES: Final = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_ASF_SIZE_AT: Final = 40
_OGG_PAGE: Final = 27
_CAF_CHUNK: Final = 12
_GIF_HEAD: Final = 13
_GIF_PICTURE: Final = 10
_GIF_ZEROS: Final = re.compile(rb"\0+")
_MAX_GIF_BYTES: Final = 16 << 20
_MAX_CHUNKS: Final = 1000
"""More than any writer makes before the sound; a hostile file may hold millions of empty ones."""
_UNKNOWN_LENGTH_64: Final = 2**64 - 1
_ASF_FLAGS_AT: Final = 88
_ASF_BROADCAST: Final = 1


def early_end(descriptor: int, size: int) -> str | None:
    """Why an open file of ``size`` bytes is known to end early; None where nothing says so."""
    head = os.pread(descriptor, 16, 0)
    for signature, look in _LOOKS:
        if head.startswith(signature):
            return look(descriptor, size)
    return None


def short_of(declared: int, size: int, what: str) -> str | None:
    """Why a file of ``size`` bytes is short of where ``what`` ends in it; None where it is not."""
    return f"{what} ends {declared - size} bytes after the file" if declared > size else None


def _aiff(descriptor: int, size: int) -> str | None:
    (length,) = struct.unpack(">I", os.pread(descriptor, 4, 4).ljust(4, b"\0"))
    # The last byte may be a pad that the writer left out.
    return None if length == _UNKNOWN_LENGTH else short_of(length + 7, size, "the FORM chunk")


def _au(descriptor: int, size: int) -> str | None:
    head, length = struct.unpack(">II", os.pread(descriptor, 8, 4).ljust(8, b"\0"))
    return None if length == _UNKNOWN_LENGTH else short_of(head + length, size, "the sound")


def _rf64(descriptor: int, size: int) -> str | None:
    raw = os.pread(descriptor, 8, 20).ljust(8, b"\0")
    (length,) = struct.unpack("<Q", raw)
    return None if length == _UNKNOWN_LENGTH_64 else short_of(length + 8, size, "the RF64 chunk")


def _w64(descriptor: int, size: int) -> str | None:
    raw = os.pread(descriptor, 8, 16).ljust(8, b"\0")
    return short_of(struct.unpack("<Q", raw)[0], size, "the RIFF chunk")


def _caf(descriptor: int, size: int) -> str | None:
    at = 8
    for _ in range(_MAX_CHUNKS):
        if at >= size:
            break
        raw = os.pread(descriptor, _CAF_CHUNK, at)
        if len(raw) < _CAF_CHUNK:
            return "the file ends within the head of a chunk"
        name, length = struct.unpack(">4sq", raw)
        if length < 0:
            return None
        at += _CAF_CHUNK + length
        if name == b"data":
            return short_of(at, size, "the sound")
    return None


def _asf(descriptor: int, size: int) -> str | None:
    data = os.pread(descriptor, 65_536, 0)
    at = data.find(_ASF_PROPERTIES)
    raw = data[at + _ASF_SIZE_AT : at + _ASF_SIZE_AT + 8]
    flags = data[at + _ASF_FLAGS_AT : at + _ASF_FLAGS_AT + 1]
    # A live recording's header cannot know its length.
    if at < 0 or not flags or flags[0] & _ASF_BROADCAST:
        return None
    return short_of(struct.unpack("<Q", raw)[0], size, "what the header announces")


def _ogg(descriptor: int, size: int) -> str | None:
    start = max(0, size - 2 * 65_536)
    data = os.pread(descriptor, size - start, start)
    at = data.rfind(b"OggS")
    if at < 0:
        return None
    page = data[at:]
    if len(page) < _OGG_PAGE:
        return "the file ends within the head of a page"
    lengths = page[_OGG_PAGE : _OGG_PAGE + page[_OGG_PAGE - 1]]
    return short_of(start + at + _OGG_PAGE + page[_OGG_PAGE - 1] + sum(lengths), size, "a page")


def _gif(descriptor: int, size: int) -> str | None:
    if size > _MAX_GIF_BYTES:
        return None
    data = os.pread(descriptor, size, 0)
    at = _GIF_HEAD + (_colours(data[10]) if len(data) > _GIF_HEAD else 0)
    while at < len(data):
        kind = data[at : at + 1]
        if kind == b"!":
            at += 2
        elif kind == b"," and at + _GIF_PICTURE <= len(data):
            at += _GIF_PICTURE + _colours(data[min(at + 9, len(data) - 1)]) + 1
        elif kind == b"\0":
            # Some writers leave one between two blocks.
            zeros = _GIF_ZEROS.match(data, at)
            at = zeros.end() if zeros else at + 1
            continue
        else:
            return None if kind == b";" else f"behind {at} bytes there is no picture any more"
        while at < len(data) and data[at]:
            at += data[at] + 1
        at += 1
    return "the end mark is missing"


def _colours(flags: int) -> int:
    """Bytes of the colour table that these flags announce."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


_LOOKS: Final[tuple[tuple[bytes, Callable[[int, int], str | None]], ...]] = (
    (b"FORM", _aiff),
    (b".snd", _au),
    (b"RF64", _rf64),
    (b"riff\x2e\x91\xcf\x11", _w64),
    (b"caff", _caf),
    (_ASF_START, _asf),
    (b"OggS", _ogg),
    (b"GIF8", _gif),
    (bytes([SYNC]), cut_packet),
)
"""What each format's first bytes are, and how its end is told."""
