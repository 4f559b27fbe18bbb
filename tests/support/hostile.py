"""Makers of odd and hostile inputs: each writes one file into a folder and returns its path.

Two groups. Files of ``REFUSED`` hold no media of their own and must be refused, with nothing
outside the file opened. The other makers write files that are odd or damaged but have something to
give. All are deterministic.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np
from made_media import write_video
from made_scenes import click_train, noise_free_scene, tone

_SIZE = (160, 120)
_BOX_HEAD = 8
_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"dinf", b"stbl", b"edts"}
# Where 32-bit duration stands behind the head of a version 0 box, in bytes.
_DURATION_AT = {b"mvhd": 16, b"tkhd": 20, b"mdhd": 16, b"elst": 8}
# Matroska's Duration element: an 8-byte float, in milliseconds.
_MKV_DURATION = b"\x44\x89\x88"
_TIMESCALE_AT = {b"mvhd": 12, b"mdhd": 12}

ODD_NAMES: Sequence[str] = (
    "with spaces and  two.mp4",
    "-rf.mp4",
    "$(touch PWNED).mp4",
    "`id`;|&<>.mp4",
    "quote'\"quote.mp4",
    "emoji 🎬🔔.mp4",
    "日本語 ü é.mp4",
    "percent %d %s %03d.mp4",
    "new\nline.mp4",
    "..hidden..mp4",
    "a:b?c=d#e.mp4",
    "l" * 247 + ".mp4",
)


def small_mp4(folder: Path, name: str = "plain.mp4", *, faststart: bool = False) -> Path:
    """A clip in order: two seconds, 50 frames of 160 x 120, with clicks at 0.5 and 1.5 s."""
    return _written(folder / name, _small(Path(name).suffix, faststart))


@cache
def _small(suffix: str, faststart: bool) -> bytes:
    """The bytes of ``small_mp4``: encoded once per process, since many tests want them."""
    with TemporaryDirectory() as folder:
        path = write_video(
            Path(folder) / f"small{suffix}",
            noise_free_scene(9, 50, _SIZE),
            options={"g": "12"},
            audio=click_train([0.5, 1.5], 2.0),
            container_options={"movflags": "faststart"} if faststart else None,
        )
        return path.read_bytes()


def _written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def zero_bytes(folder: Path) -> Path:
    """An empty file."""
    return _written(folder / "zero_bytes.mp4", b"")


def text_renamed(folder: Path) -> Path:
    """Plain text under the name of a video."""
    return _written(folder / "text.mp4", "this is a letter, not a film\nsecond line\n" * 40)


def random_bytes(folder: Path) -> Path:
    """64 kB of seeded noise."""
    return _written(folder / "random.mp4", np.random.default_rng(7).bytes(65_536))


def ftyp_only(folder: Path) -> Path:
    """An MP4 that ends after its first box."""
    return _written(folder / "ftyp.mp4", struct.pack(">I4s4sI", 16, b"ftyp", b"isom", 512))


def hls_playlist(folder: Path, target: str = "secret.ts", name: str = "hls.mp4") -> Path:
    """An HLS playlist that points at ``target``, a path or URL.

    FFmpeg 8 takes it for HLS only where ``name`` ends in .m3u8; older builds whatever the name.
    """
    head = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:10\n#EXT-X-MEDIA-SEQUENCE:0\n"
    return _written(folder / name, f"{head}#EXTINF:10.0,\n{target}\n#EXT-X-ENDLIST\n")


def hls_m3u8(folder: Path, target: str = "secret.ts") -> Path:
    """The playlist under its own suffix."""
    return hls_playlist(folder, target, "list.m3u8")


def concat_script(folder: Path, target: str = "secret.mp4") -> Path:
    """An ffconcat script named .mp4 that points at ``target``."""
    return _written(folder / "concat.mp4", f"ffconcat version 1.0\nfile '{target}'\n")


def session_description(folder: Path, host: str = "127.0.0.1", port: int = 9) -> Path:
    """An SDP file named .mp4: a reader that follows it waits for packets on a UDP port."""
    lines = (
        "v=0",
        f"o=- 0 0 IN IP4 {host}",
        "s=x",
        f"c=IN IP4 {host}",
        "t=0 0",
        f"m=video {port} RTP/AVP 96",
        "a=rtpmap:96 H264/90000",
    )
    return _written(folder / "sdp.mp4", "\r\n".join(lines) + "\r\n")


def dash_manifest(folder: Path, target: str = "secret.mp4") -> Path:
    """A DASH manifest named .mp4 that points at ``target``; builds with libxml2 follow it."""
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"'
        ' mediaPresentationDuration="PT10S" minBufferTime="PT2S"'
        ' profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">\n'
        ' <Period><AdaptationSet mimeType="video/mp4">'
        '<Representation id="1" bandwidth="1000" codecs="avc1.42c00d" width="160" height="120">'
        f"<BaseURL>{target}</BaseURL>"
        '<SegmentBase indexRange="0-100"/></Representation></AdaptationSet></Period>\n</MPD>\n'
    )
    return _written(folder / "dash.mp4", text)


def gif_bomb(folder: Path) -> Path:
    """A GIF of 35 bytes that claims 65535 x 65535 pixels: 17 GB as RGBA."""
    edge = struct.pack("<HH", 65_535, 65_535)
    head = b"GIF89a" + edge + b"\x80\x00\x00" + b"\x00\x00\x00\xff\xff\xff"
    image = b"\x2c\x00\x00\x00\x00" + edge + b"\x00" + b"\x02\x02\x4c\x01\x00"
    return _written(folder / "bomb.gif", head + image + b"\x3b")


def png_bomb(folder: Path, edge: int = 20_000) -> Path:
    """A valid black PNG of 220 kB with ``edge`` x ``edge`` pixels, one bit each: 1.2 GB as RGB."""
    rows = zlib.compress(bytes((edge // 8 + 1) * edge), 1)
    head = struct.pack(">IIBBBBB", edge, edge, 1, 0, 0, 0, 0)
    chunks = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b""))
    ]
    return _written(folder / "bomb.png", b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def without_index(folder: Path) -> Path:
    """An MP4 cut off in its media data: the index that stood at the end is gone."""
    whole = _small(".mp4", faststart=False)
    return _written(folder / "without_index.mp4", whole[: len(whole) // 2])


def encrypted(folder: Path) -> Path:
    """An MP4 under common encryption; its first picture would decode, to noise."""
    return write_video(
        folder / "encrypted.mp4",
        noise_free_scene(9, 20, _SIZE),
        audio=tone(440, 0.8),
        container_options={
            # Without it every file starts from another random vector.
            "fflags": "+bitexact",
            "encryption_scheme": "cenc-aes-ctr",
            "encryption_key": "00112233445566778899aabbccddeeff",
            "encryption_kid": "ffeeddccbbaa99887766554433221100",
        },
    )


def animated_webp(folder: Path) -> Path:
    """The head of a WebP with the mark of an animation, which no decoder here reads."""
    body = b"WEBP" + struct.pack("<4sIB9x", b"VP8X", 10, 2)
    return _written(folder / "animated.webp", b"RIFF" + struct.pack("<I", len(body)) + body)


REFUSED: dict[str, Callable[[Path], Path]] = {
    "zero_bytes": zero_bytes,
    "text_renamed": text_renamed,
    "random_bytes": random_bytes,
    "ftyp_only": ftyp_only,
    "hls_playlist": hls_playlist,
    "hls_m3u8": hls_m3u8,
    "concat_script": concat_script,
    "session_description": session_description,
    "dash_manifest": dash_manifest,
    "gif_bomb": gif_bomb,
    "png_bomb": png_bomb,
    "without_index": without_index,
    "encrypted": encrypted,
    "animated_webp": animated_webp,
}


def truncated(folder: Path, keep: float = 0.6) -> Path:
    """An MP4 whose index stands in front and whose media data ends early.

    Args:
        folder: Where to write.
        keep: Share of the media data that is left; the frames in it can be decoded.

    Returns:
        The path.
    """
    path = small_mp4(folder, "truncated.mp4", faststart=True)
    data = path.read_bytes()
    start, end = _find_box(data, b"mdat")
    return _written(path, data[: start + round((end - start) * keep)])


def damaged(folder: Path, n_bytes: int = 60, *, seed: int = 3) -> Path:
    """An MP4 with seeded random bytes written over its media data, in the second half."""
    path = small_mp4(folder, "damaged.mp4")
    data = bytearray(path.read_bytes())
    start, end = _find_box(bytes(data), b"mdat")
    rng = np.random.default_rng(seed)
    for at in rng.integers((start + end) // 2, end, size=n_bytes):
        data[int(at)] = int(rng.integers(0, 256))
    return _written(path, bytes(data))


def trailing_garbage(folder: Path, n_bytes: int = 100_000) -> Path:
    """A whole MP4 with junk behind its last box."""
    path = small_mp4(folder, "trailing.mp4")
    return _written(path, path.read_bytes() + b"Z" * n_bytes)


def wrong_suffix(folder: Path) -> Path:
    """A Matroska file that is named .avi."""
    return _written(folder / "matroska.avi", _small(".mkv", faststart=False))


def odd_name(folder: Path, name: str) -> Path:
    """A small good clip under a name such as those in ``ODD_NAMES``."""
    return _written(folder / name, _small(".mp4", faststart=False))


def claims_hours(folder: Path, hours: int = 100) -> Path:
    """A Matroska file of two seconds whose header says that it lasts ``hours``."""
    data = _small(".mkv", faststart=False)
    at = data.index(_MKV_DURATION) + len(_MKV_DURATION)
    claim = struct.pack(">d", hours * 3_600_000.0)
    return _written(folder / "claims_hours.mkv", data[:at] + claim + data[at + len(claim) :])


def claims_hours_mp4(folder: Path, hours: int = 20) -> Path:
    """An MP4 of two seconds whose movie, track, media and edit headers say ``hours``.

    FFmpeg trusts the sample table instead; readers of the headers alone do not.
    """
    data = bytearray(_small(".mp4", faststart=False))
    scale = movie_scale = 1000
    for kind, at in list(_walk(bytes(data))):
        if kind in _TIMESCALE_AT:
            scale = struct.unpack_from(">I", data, at + _TIMESCALE_AT[kind])[0]
            movie_scale = scale if kind == b"mvhd" else movie_scale
        if kind in _DURATION_AT:
            unit = scale if kind == b"mdhd" else movie_scale
            struct.pack_into(">I", data, at + _DURATION_AT[kind], hours * 3600 * unit)
    return _written(folder / "claims_hours.mp4", bytes(data))


def external_reference(folder: Path, url: str = "http://127.0.0.1:9/secret.mp4") -> Path:
    """An MP4 whose data reference names ``url`` where "this file" should stand."""
    path = small_mp4(folder, "external_reference.mp4")
    entry_body = b"\x00\x00\x00\x00" + url.encode() + b"\x00"
    entry = struct.pack(">I4s", _BOX_HEAD + len(entry_body), b"url ") + entry_body
    return _written(path, _replace(path.read_bytes(), b"dref", struct.pack(">II", 0, 1) + entry))


def cover_art_m4a(folder: Path) -> Path:
    """A sound file whose only "video" is an attached cover picture."""
    path = folder / "cover_art.m4a"
    cover = np.ascontiguousarray(noise_free_scene(2, 1, (96, 96))[0])
    with av.open(str(path), "w", format="mp4") as container:
        sound = container.add_stream("aac", rate=16_000, layout="mono")
        picture = container.add_stream("mjpeg", rate=1)
        picture.width, picture.height, picture.pix_fmt = 96, 96, "yuvj420p"
        picture.codec_context.color_range = 2
        picture.disposition = av.stream.Disposition.attached_pic
        frame = av.VideoFrame.from_ndarray(cover, format="rgb24")
        frame = frame.reformat(format="yuvj420p", dst_color_range=2)
        frame.pts = 0
        container.mux(picture.encode(frame) + picture.encode(None))
        samples = tone(440, 2.0)[None, :]
        block = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
        block.sample_rate, block.pts = 16_000, 0
        container.mux(sound.encode(block) + sound.encode(None))
    return path


def _walk(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int]]:
    """Kind and body offset of every box, outer boxes first."""
    at, stop = start, len(data) if end is None else end
    while at + _BOX_HEAD <= stop:
        size, kind = struct.unpack_from(">I4s", data, at)
        if size < _BOX_HEAD:
            return
        yield kind, at + _BOX_HEAD
        if kind in _CONTAINERS:
            yield from _walk(data, at + _BOX_HEAD, at + size)
        at += size


def _find_box(data: bytes, wanted: bytes) -> tuple[int, int]:
    """First and last+1 byte of the body of the first box of this kind."""
    for kind, body in _walk(data):
        if kind == wanted:
            size = struct.unpack_from(">I", data, body - _BOX_HEAD)[0]
            return body, body - _BOX_HEAD + size
    msg = f"no box {wanted!r}"
    raise ValueError(msg)


def _replace(data: bytes, wanted: bytes, body: bytes) -> bytes:
    """Give every box of this kind a new body; the sizes of the boxes around it follow.

    Chunk offsets stay right as long as the media data stands in front of the index.
    """
    parts: list[bytes] = []
    at = 0
    while at + _BOX_HEAD <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        inner = data[at + _BOX_HEAD : at + size]
        if kind == wanted:
            inner = body
        elif kind in _CONTAINERS:
            inner = _replace(inner, wanted, body)
        parts.append(struct.pack(">I4s", _BOX_HEAD + len(inner), kind) + inner)
        at += size
    return b"".join(parts)
