"""Text tracks inside a file, as cues on the asset clock."""

from __future__ import annotations

import re
from collections import Counter
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

_DRAWING = re.compile(r"\{[^{}]*\\p[1-9][^{}]*\}.*?(?=\{[^{}]*\\p0[^{}]*\}|$)", re.DOTALL)
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")
_TAG = re.compile(r"</?(?:b|i|u|s|font|ruby|rt|c|v|lang)(?:[ .][^<>]*)?>", re.IGNORECASE)
_PLAIN = frozenset({"srt", "subrip", "text"})
"""Decoders whose packets are the text itself. What the library makes of it loses things that look
like its own markup: a path with backslashes, a comparison with two angle brackets."""
_GUESS = "cp1252"
_ASS_FIELDS = 8
_MAX_TEXT = 4000


def text_tracks(container: InputContainer) -> list[SubtitleStream]:
    """Subtitle streams that carry text, not pictures."""
    return [s for s in container.streams.subtitles if decoder_name(s) in TEXT_SUBTITLE_DECODERS]


def plain_text(text: str) -> str:
    """A cue's text without override blocks, drawings and markup, one spoken line a line."""
    text = _OVERRIDE.sub("", _DRAWING.sub("", text))
    text = _TAG.sub("", text)
    return "".join(c for c in text if c.isprintable() or c == "\n").strip()[:_MAX_TEXT]


def _ass_text(event: bytes) -> str:
    """The ninth field of an ASS event, its line breaks and hard spaces resolved."""
    text = event.decode("utf-8", "replace").split(",", _ASS_FIELDS)[-1]
    return text.replace("\\N", "\n").replace("\\n", "\n").replace("\\h", " ")


def read_cues(
    container: InputContainer, limits: MediaLimits
) -> tuple[tuple[SubtitleCue, ...], tuple[str, ...]]:
    """Read all cues of the text tracks; the container is at its end afterwards.

    Other streams are told to be discarded, which lets most demuxers jump over their bytes.

    Returns:
        The cues by time, and what was left out or guessed at, for people.
    """
    tracks = text_tracks(container)
    if not tracks:
        return (), ()
    for stream in container.streams:
        if stream not in tracks:
            stream.discard = Discard.all
    cues: list[SubtitleCue] = []
    guessed: Counter[int] = Counter()
    unreadable: Counter[int] = Counter()
    try:
        for packet in container.demux(tracks):
            if packet.pts is None or not packet.size:
                continue
            try:
                text = _text_of(packet, guessed)
            except av.FFmpegError:
                unreadable[packet.stream_index] += 1
                continue
            if text:
                cues.append(_cue(packet, text))
            if len(cues) >= limits.max_subtitle_cues:
                break
    except av.FFmpegError:
        # What was read before the damage stands; the decode pass reports the damage itself.
        pass
    notes = [
        f"text track {i}: {n} cues were no UTF-8, read as {_GUESS}" for i, n in guessed.items()
    ]
    notes += [f"text track {i}: {n} cues could not be read" for i, n in unreadable.items()]
    return tuple(sorted(cues, key=lambda c: (c.start_s, c.stream_index))), tuple(notes)


def _text_of(packet: Packet[Stream], guessed: Counter[int]) -> str:
    """Text of a packet, "" where it shows none.

    Raises:
        av.FFmpegError: the packet does not decode.
    """
    if decoder_name(packet.stream) in _PLAIN:
        raw = bytes(packet)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            guessed[packet.stream_index] += 1
            text = raw.decode(_GUESS, "replace")
        return plain_text(text.replace("\r\n", "\n"))
    texts = [plain_text(_ass_text(r.ass)) for r in packet.decode() if isinstance(r, AssSubtitle)]
    return "\n".join(t for t in texts if t)


def _cue(packet: Packet[Stream], text: str) -> SubtitleCue:
    stream, base = packet.stream, time_base_of(packet.stream)
    assert packet.pts is not None, "packets without a time are passed over"
    start = packet.pts * base
    end = start + (packet.duration or 0) * base
    language = stream.language
    return SubtitleCue(
        start_s=float(start),
        end_s=float(max(end, start + Fraction(1, 1000))),
        text=text,
        language=language if language and language != "und" else None,
        stream_index=stream.index,
    )
