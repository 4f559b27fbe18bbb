"""Text tracks inside a file, as cues on the asset clock."""

from __future__ import annotations

import re
from fractions import Fraction

import av
from av.container import InputContainer
from av.packet import Packet
from av.stream import Discard, Stream
from av.subtitles.stream import SubtitleStream
from av.subtitles.subtitle import AssSubtitle

from engines.contracts.media import SubtitleCue
from engines.media.limits import TEXT_SUBTITLE_DECODERS, MediaLimits
from engines.media.streams import decoder_name, time_base_of

_OVERRIDE = re.compile(r"\{[^}]*\}|<[^<>]*>")
_ASS_FIELDS = 8
_MAX_TEXT = 4000


def text_tracks(container: InputContainer) -> list[SubtitleStream]:
    """Subtitle streams that carry text, not pictures."""
    return [s for s in container.streams.subtitles if decoder_name(s) in TEXT_SUBTITLE_DECODERS]


def plain_text(event: str) -> str:
    """The spoken text of an ASS event line: the ninth field, without override tags."""
    fields = event.split(",", _ASS_FIELDS)
    text = fields[-1] if len(fields) > _ASS_FIELDS else event
    text = _OVERRIDE.sub("", text).replace("\\N", "\n").replace("\\n", "\n").replace("\\h", " ")
    return "".join(c for c in text if c.isprintable() or c == "\n").strip()[:_MAX_TEXT]


def read_cues(container: InputContainer, limits: MediaLimits) -> tuple[SubtitleCue, ...]:
    """Read all cues of the text tracks; the container is at its end afterwards.

    Other streams are told to be discarded, which lets most demuxers jump over their bytes.
    """
    tracks = text_tracks(container)
    if not tracks:
        return ()
    for stream in container.streams:
        if stream not in tracks:
            stream.discard = Discard.all
    cues: list[SubtitleCue] = []
    try:
        for packet in container.demux(tracks):
            cues.extend(_cues_of(packet))
            if len(cues) >= limits.max_subtitle_cues:
                break
    except av.FFmpegError:
        # What was read before the damage stands; the decode pass reports the damage itself.
        pass
    return tuple(sorted(cues, key=lambda c: (c.start_s, c.stream_index)))


def _cues_of(packet: Packet[Stream]) -> list[SubtitleCue]:
    if packet.pts is None or not packet.size:
        return []
    stream = packet.stream
    base = time_base_of(stream)
    try:
        rects = packet.decode()
    except av.FFmpegError:
        return []
    texts = [
        plain_text((rect.dialogue or rect.ass or rect.text).decode("utf-8", "replace"))
        for rect in rects
        if isinstance(rect, AssSubtitle)
    ]
    text = "\n".join(t for t in texts if t)
    if not text:
        return []
    start = packet.pts * base
    end = start + (packet.duration or 0) * base
    language = stream.language
    return [
        SubtitleCue(
            start_s=float(start),
            end_s=float(max(end, start + Fraction(1, 1000))),
            text=text,
            language=language if language and language != "und" else None,
            stream_index=stream.index,
        )
    ]
