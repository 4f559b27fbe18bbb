"""Text that would make a demuxer open something else, recognised before any demuxer runs."""

import re

_SCRIPTS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("an HLS playlist", re.compile(rb"#EXTM3U|#EXT-X-|#EXTINF")),
    ("a concat script", re.compile(rb"ffconcat\s+version|(?m:^\s*file\s+['\"]?[\w./:-]+)")),
    ("a session description (SDP)", re.compile(rb"v=\d+\s*\r?\n(?:.*\r?\n)*?[mo]=")),
    ("a DASH manifest", re.compile(rb"<MPD[\s>]|urn:mpeg:dash:schema")),
    ("a Smooth Streaming manifest", re.compile(rb"<SmoothStreamingMedia")),
    ("a playlist", re.compile(rb"\[playlist\]|\[Reference\]|<asx[\s>]|<smil[\s>]", re.IGNORECASE)),
    ("an RTSP or RTP reference", re.compile(rb"^(?:rtsp|rtmp|rtp|udp|https?|ftp|file)://")),
    ("an image list or filter script", re.compile(rb"^(?:movie|amovie|subfile|crypto|concat):?=")),
    ("a Windows Media redirector", re.compile(rb"^ASF \x20*https?://|\[SDP\]", re.IGNORECASE)),
    ("XML or HTML", re.compile(rb"^<\?xml|^<!DOCTYPE|^<html|^<svg", re.IGNORECASE)),
)
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_LOOK_BYTES = 4096
_PICTURES_BEHIND_TEXT = b"YUV4MPEG2 "
"""Raw pictures whose header is a line of text; what follows may spell anything."""


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes are printable text in ASCII, UTF-8 or UTF-16."""
    sample = head[:_LOOK_BYTES]
    if sample.startswith(_BYTE_ORDER_MARKS[1:]):
        return True
    if b"\0" in sample:
        return False
    try:
        text = sample.decode()
    except UnicodeDecodeError as error:
        # A multi-byte character may be cut by the end of the sample.
        if error.start < len(sample) - 3:
            return False
        text = sample[: error.start].decode()
    return all(c.isprintable() or c in "\r\n\t\f" for c in text)


def forbidden_text(head: bytes) -> str | None:
    """Why these first bytes must not reach a demuxer; None when nothing speaks against it.

    Args:
        head: the first bytes of the file.
    """
    if head.startswith(_PICTURES_BEHIND_TEXT):
        return None
    sample = head[:_LOOK_BYTES]
    for mark in _BYTE_ORDER_MARKS:
        sample = sample.removeprefix(mark)
    if sample[1:2] == b"\0":
        sample = sample.replace(b"\0", b"")
    sample = sample.lstrip()
    if not looks_like_text(sample[:256]):
        return None
    for what, pattern in _SCRIPTS:
        if pattern.search(sample):
            return f"{what}: it would make the reader open other files or addresses"
    return None
