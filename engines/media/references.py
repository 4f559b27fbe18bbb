"""Which coded pictures no other picture needs, read from the first bytes of their packets.

The demuxer's own "disposable" mark is not set by most containers, so the headers are read: the
reference bits of H.264 slices, the picture types of HEVC, the coding type of MPEG-2 and MPEG-4.
Of other codecs no picture is called disposable.
"""

from collections.abc import Callable, Iterator
from typing import Final

_H264_SLICES: Final = range(1, 6)
_HEVC_VIDEO: Final = range(32)
_HEVC_RASL: Final = (8, 9)
_HEVC_NON_REFERENCE: Final = (0, 2, 4, 6, 8, 10, 12, 14)
_MPEG_PICTURE = b"\x00\x00\x01\x00"
_MPEG4_VOP = b"\x00\x00\x01\xb6"
_MPEG2_B = 3
_MPEG4_B = 2

PictureKind = tuple[bool, int, bool]
"""(is a reference, temporal layer, is a skipped leading picture (RASL))."""

Reader = Callable[[bytes], PictureKind]
_NEEDED: PictureKind = (True, 0, False)


def _length_prefixed(data: bytes, size: int) -> Iterator[int]:
    at = 0
    while at + size < len(data):
        length = int.from_bytes(data[at : at + size], "big")
        yield at + size
        at += size + length


def _start_codes(data: bytes) -> Iterator[int]:
    at = data.find(b"\x00\x00\x01")
    while 0 <= at < len(data) - 3:
        yield at + 3
        at = data.find(b"\x00\x00\x01", at + 3)


def _units(data: bytes, length_size: int) -> Iterator[int]:
    """Offsets of the units in a packet; ``length_size`` 0 stands for start codes."""
    return _length_prefixed(data, length_size) if length_size else _start_codes(data)


def _h264(length_size: int) -> Reader:
    def read(data: bytes) -> PictureKind:
        for at in _units(data, length_size):
            if data[at] & 0x1F in _H264_SLICES:
                return bool(data[at] & 0x60), 0, False
        return _NEEDED

    return read


def _hevc(length_size: int) -> Reader:
    def read(data: bytes) -> PictureKind:
        for at in _units(data, length_size):
            kind = data[at] >> 1 & 0x3F
            if kind in _HEVC_VIDEO and at + 1 < len(data):
                layer = (data[at + 1] & 7) - 1
                return kind not in _HEVC_NON_REFERENCE, layer, kind in _HEVC_RASL
        return _NEEDED

    return read


def _mpeg2(data: bytes) -> PictureKind:
    at = data.find(_MPEG_PICTURE)
    if at < 0 or at + 6 > len(data) or data.find(_MPEG_PICTURE, at + 4) >= 0:
        return _NEEDED
    return data[at + 5] >> 3 & 7 != _MPEG2_B, 0, False


def _mpeg4(data: bytes) -> PictureKind:
    at = data.find(_MPEG4_VOP)
    # Two pictures in one packet ("packed"): neither can be left out alone.
    if at < 0 or at + 5 > len(data) or data.find(_MPEG4_VOP, at + 4) >= 0:
        return _NEEDED
    return data[at + 4] >> 6 != _MPEG4_B, 0, False


def reader_for(codec: str, extradata: bytes | None) -> Reader | None:
    """How to read the packets of a codec; None where nothing is known of it.

    Args:
        codec: the codec's canonical name.
        extradata: the stream's configuration record, which says how units are delimited.
    """
    record = extradata or b""
    configured = len(record) > 4 and record[0] == 1  # noqa: PLR2004 (avcC and hvcC begin with 1)
    if codec == "h264":
        return _h264((record[4] & 3) + 1 if configured else 0)
    if codec == "hevc":
        size = (record[21] & 3) + 1 if configured and len(record) > 22 else 0  # noqa: PLR2004
        return _hevc(size)
    return {"mpeg2video": _mpeg2, "mpeg1video": _mpeg2, "mpeg4": _mpeg4}.get(codec)
