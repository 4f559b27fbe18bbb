"""Where the picture of a JPEG file ends, and whether the file is a photograph.

Phones put more behind it: a gain map, a depth map, the second eye, a short film. Read on, such a
file looks like a stream of JPEG pictures.
"""

import os
import struct
from typing import Final

SIGNATURE: Final = b"\xff\xd8\xff"
_MARKS: Final = (b"Exif\0\0", b"MPF\0")
"""What cameras write into the application segments, and encoders of JPEG streams do not."""
_APPLICATION: Final = range(0xE0, 0xF0)
_START_OF_SCAN: Final = 0xDA
_END_OF_PICTURE: Final = b"\xff\xd9"
_SEGMENT_HEAD: Final = 4
_MARKER: Final = 0xFF
_BLOCK_BYTES: Final = 1 << 20
_MAX_SEGMENTS: Final = 1000
"""Before the picture's data; a hostile file may hold millions of empty ones."""
_MAX_SCAN_BYTES: Final = 256 << 20


def first_picture_end(descriptor: int, size: int) -> tuple[bool, int | None]:
    """(Is a photograph, offset behind the first picture or None where it has no end).

    Args:
        descriptor: an open file that begins with ``SIGNATURE``.
        size: its bytes.
    """
    is_photograph, at = False, 2
    for _ in range(_MAX_SEGMENTS):
        if at >= size:
            break
        raw = os.pread(descriptor, _SEGMENT_HEAD + max(map(len, _MARKS)), at)
        if len(raw) < _SEGMENT_HEAD or raw[0] != _MARKER:
            # Damaged or of a strange kind; the decoder shall say so.
            return False, size
        marker, length = struct.unpack_from(">xBH", raw)
        at += 2 + length
        is_photograph |= marker in _APPLICATION and raw[_SEGMENT_HEAD:].startswith(_MARKS)
        if marker == _START_OF_SCAN:
            break
    else:
        return False, size
    scanned_to = min(size, at + _MAX_SCAN_BYTES)
    while at < scanned_to:
        found = os.pread(descriptor, _BLOCK_BYTES + 1, at).find(_END_OF_PICTURE)
        if found >= 0:
            return is_photograph, at + found + len(_END_OF_PICTURE)
        at += _BLOCK_BYTES
    return (is_photograph, None) if scanned_to == size else (False, size)
