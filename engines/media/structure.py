"""What the container's own structure says, read by hand within bounds.

A demuxer hides things that matter here: that the file ends before its structure does (an upload
cut short), that its samples are encrypted, that it names data outside itself, that a photograph
ends before its file does, and that what it holds decodes to nothing true.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from engines.errors import LimitExceededError, UnsupportedCodecError
from engines.media import photographs
from engines.media.ends import early_end, short_of
from engines.media.limits import MediaLimits
from engines.media.transport import scrambled_pids

_CONTAINERS = frozenset(
    {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"moof", b"traf", b"udta",
     b"sinf", b"schi", b"mvex", b"meta", b"ilst", b"iprp", b"ipco"}
)  # fmt: skip
_ISO_FIRST = frozenset(
    {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"styp", b"moof", b"sidx",
     b"uuid"}
)  # fmt: skip
_ENCRYPTED = frozenset({b"encv", b"enca", b"pssh", b"senc", b"drmi", b"drms"})
_MAX_BOXES = 20_000
_SAMPLE_ENTRY_SKIP = 8
_ENTRY_HEAD = 12
_MAX_LENGTH_BYTES = 8
_HEAD_BYTES = 16
_SHORT_HEADER = 8
_WEBP_HEAD_BYTES = 32
_WEBP_ANIMATION = 2
_TIFF_ORDERS: Final[dict[bytes, Literal["<", ">"]]] = {b"II*\0": "<", b"MM\0*": ">"}
_TIFF_ENTRY_BYTES = 12
_TIFF_COMPRESSION = 259
_TIFF_JPEG = (6, 7)
_TIFF_RAW_CAMERA = 50_706
"""The tag that says which version of DNG a file follows."""
_SEGMENT_ID = b"\x18\x53\x80\x67"
_EBML_MAGIC = b"\x1a\x45\xdf\xa3"

Kind = Literal["iso", "matroska", "riff", "unknown"]


@dataclass
class Structure:
    """Findings about one file."""

    kind: Kind = "unknown"
    size_bytes: int = 0
    truncated: str | None = None
    """Why the file is known to end early; None when its structure fits its size."""
    encrypted: bool = False
    encrypted_tracks: set[int] = field(default_factory=set)
    """Ordinals of the tracks whose samples are encrypted; the demuxer counts its streams alike.
    Such a track is not tried: its first pictures may decode, to noise."""
    scrambled_pids: set[int] = field(default_factory=set)
    """Streams of a transport stream, by their PID, whose samples are scrambled."""
    partly_scrambled_pids: set[int] = field(default_factory=set)
    """The same, where most samples are in the clear."""
    external_references: list[str] = field(default_factory=list)
    sample_entries: list[str] = field(default_factory=list)
    """Four-letter codes of the tracks' codecs."""
    dolby_vision: bool = False
    edit_lists: bool = False
    read_to: int | None = None
    """Where the demuxer shall believe that the file ends; None for its true end."""
    opened_by_name: bool = False
    """No demuxer knew the first bytes; the name's ending chose one (see container.py)."""
    has_index: bool = True
    """False for an ISO file without a moov box."""


class _Boxes:
    """A bounded walk over the boxes of an ISO base media file."""

    def __init__(self, descriptor: int, size: int, limits: MediaLimits, found: Structure) -> None:
        self._descriptor = descriptor
        self._size = size
        self._limits = limits
        self._found = found
        self._left = _MAX_BOXES
        self._top: list[bytes] = []
        self._track = -1

    def run(self) -> None:
        self._walk(0, self._size, 0)
        self._found.has_index = b"moov" in self._top
        if b"moov" not in self._top and b"mdat" in self._top and not self._found.truncated:
            self._found.truncated = "the index (moov) is missing"

    def _walk(self, start: int, end: int, depth: int) -> None:
        if depth > self._limits.max_box_depth:
            msg = f"boxes nested deeper than {self._limits.max_box_depth}"
            raise LimitExceededError(msg)
        at = start
        while at + 8 <= end and self._left > 0:
            self._left -= 1
            size, name, header = self._header(at, end)
            if size < header:
                return
            if depth == 0:
                self._note_top(name, at, size)
            self._look(name, at + header, min(at + size, end), depth)
            at += size

    def _header(self, at: int, end: int) -> tuple[int, bytes, int]:
        raw = os.pread(self._descriptor, _HEAD_BYTES, at)
        if len(raw) < _SHORT_HEADER:
            return 0, b"", 8
        size, name = struct.unpack(">I4s", raw[:8])
        if size == 1 and len(raw) == _HEAD_BYTES:
            return struct.unpack(">Q", raw[8:])[0], name, 16
        return (end - at if size == 0 else size), name, 8

    def _note_top(self, name: bytes, at: int, size: int) -> None:
        self._top.append(name)
        missing = short_of(at + size, self._size, f"box {name.decode('latin-1')}")
        if missing and name in _ISO_FIRST:
            self._found.truncated = missing

    def _look(self, name: bytes, start: int, end: int, depth: int) -> None:
        if name in _ENCRYPTED:
            self._found.encrypted = True
        elif name == b"stsd":
            self._sample_entries(start + _SAMPLE_ENTRY_SKIP, end)
        elif name == b"dref":
            self._references(start + 8, end)
        elif name == b"elst":
            self._found.edit_lists = True
        elif name in _CONTAINERS:
            self._track += name == b"trak"
            self._walk(start + (4 if name == b"meta" else 0), end, depth + 1)

    def _sample_entries(self, start: int, end: int) -> None:
        raw = os.pread(self._descriptor, min(end - start, 65_536), start)
        # Any of them: which samples use which entry is known to the demuxer alone.
        if _ENCRYPTED & set(_entry_codes(raw)):
            self._found.encrypted = True
            self._found.encrypted_tracks.add(self._track)
        code = raw[4:8].decode("ascii", "replace")
        if code.isprintable() and code.strip():
            self._found.sample_entries.append(code)
        if b"dvcC" in raw or b"dvvC" in raw:
            self._found.dolby_vision = True

    def _references(self, start: int, end: int) -> None:
        raw = os.pread(self._descriptor, min(end - start, 65_536), start)
        at = 0
        while at + _ENTRY_HEAD <= len(raw):
            size, name, flags = struct.unpack(">I4sI", raw[at : at + 12])
            if size < _ENTRY_HEAD:
                return
            if not flags & 1 and name in {b"url ", b"urn ", b"alis"}:
                target = raw[at + _ENTRY_HEAD : at + size].rstrip(b"\0")
                text = target.decode("utf-8", "replace")[:200]
                if text not in self._found.external_references:
                    self._found.external_references.append(text)
            at += size


def _entry_codes(raw: bytes) -> Iterator[bytes]:
    """Four-letter codes of the sample entries that follow each other in ``raw``."""
    at = 0
    while at + _SHORT_HEADER <= len(raw):
        size, code = struct.unpack(">I4s", raw[at : at + _SHORT_HEADER])
        yield code
        if size < _SHORT_HEADER:
            return
        at += size


def _matroska(descriptor: int, size: int, found: Structure) -> None:
    """Compare the declared size of the segment with the file."""
    head = os.pread(descriptor, 4096, 0)
    at = head.find(_SEGMENT_ID)
    if at < 0 or at + 5 > len(head):
        return
    first = head[at + 4]
    length = 9 - first.bit_length()
    raw = head[at + 4 : at + 4 + length]
    if not 1 <= length <= _MAX_LENGTH_BYTES or len(raw) < length:
        return
    value = int.from_bytes(raw, "big") & ((1 << (7 * length)) - 1)
    unknown = (1 << (7 * length)) - 1
    ends = at + 4 + length + value
    if value not in (0, unknown):
        found.truncated = short_of(ends, size, "the segment")


def _refuse_animated_webp(descriptor: int) -> None:
    """The demuxer takes the whole file for one picture, and the decoder finds none in it."""
    head = os.pread(descriptor, _WEBP_HEAD_BYTES, 0)
    if head[8:16] == b"WEBPVP8X" and head[20] & _WEBP_ANIMATION:
        msg = "animated WebP: no allowed decoder reads it"
        raise UnsupportedCodecError(msg)


def _refuse_jpeg_in_tiff(descriptor: int, order: Literal["<", ">"]) -> None:
    """The decoder reads such strips in raw camera files alone; of others it makes black ones."""
    (at,) = struct.unpack(f"{order}I", os.pread(descriptor, 4, 4).ljust(4, b"\0"))
    raw = os.pread(descriptor, 2, at).ljust(2, b"\0")
    count = struct.unpack(f"{order}H", raw)[0]
    entries = os.pread(descriptor, count * _TIFF_ENTRY_BYTES, at + 2)
    tags = {}
    for entry in range(len(entries) // _TIFF_ENTRY_BYTES):
        tag, _, _, value, _ = struct.unpack_from(
            f"{order}HHIHH", entries, entry * _TIFF_ENTRY_BYTES
        )
        tags[tag] = value
    if tags.get(_TIFF_COMPRESSION) in _TIFF_JPEG and _TIFF_RAW_CAMERA not in tags:
        msg = "TIFF with JPEG compression: no allowed decoder reads it"
        raise UnsupportedCodecError(msg)


def _photograph(descriptor: int, size: int, found: Structure) -> None:
    """Cut off what a camera puts behind its picture."""
    is_photograph, end = photographs.first_picture_end(descriptor, size)
    if end is None:
        found.truncated = "the end mark of the picture is missing"
    elif is_photograph:
        found.read_to = end


def read_structure(descriptor: int, size: int, limits: MediaLimits) -> Structure:
    """Walk the structure of an open file of ``size`` bytes.

    Raises:
        LimitExceededError: boxes are nested too deeply.
        UnsupportedCodecError: an animated WebP, a TIFF with JPEG compression.
    """
    found = Structure(size_bytes=size)
    head = os.pread(descriptor, _HEAD_BYTES, 0)
    if head[4:8] in _ISO_FIRST:
        found.kind = "iso"
        _Boxes(descriptor, size, limits, found).run()
    elif head.startswith(_EBML_MAGIC):
        found.kind = "matroska"
        _matroska(descriptor, size, found)
    elif head.startswith(b"RIFF") and len(head) == _HEAD_BYTES:
        _refuse_animated_webp(descriptor)
        found.kind = "riff"
        declared = struct.unpack("<I", head[4:8])[0] + 8
        if declared < 2**32 - 1:
            found.truncated = short_of(declared, size, "the RIFF chunk")
    elif head[:4] in _TIFF_ORDERS:
        _refuse_jpeg_in_tiff(descriptor, _TIFF_ORDERS[head[:4]])
    elif head.startswith(photographs.SIGNATURE):
        _photograph(descriptor, size, found)
    else:
        found.truncated = early_end(descriptor, size)
        found.scrambled_pids, found.partly_scrambled_pids = scrambled_pids(descriptor, size)
        found.encrypted = bool(found.scrambled_pids)
    return found
