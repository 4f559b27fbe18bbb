"""Bounds and allow-lists: what a file may ask of this machine, and which code may read it.

Every demuxer and decoder is attack surface. Only the ones below are ever reached; text formats
that name other files (playlists, concat scripts, SDP, DASH) are not among them.
"""

from pydantic import Field

from engines.contracts.base import Contract

DEMUXERS = frozenset(
    [
        "aac",
        "ac3",
        "aiff",
        "amr",
        "amrnb",
        "amrwb",
        "ape",
        "apng",
        "asf",
        "au",
        "avi",
        "bmp_pipe",
        "caf",
        "dts",
        "dv",
        "eac3",
        "flac",
        "flv",
        "gif",
        "h261",
        "h263",
        "h264",
        "hevc",
        "ivf",
        "jpeg_pipe",
        "m4v",
        "matroska",
        "mjpeg",
        "mov",
        "mp3",
        "mpeg",
        "mpegts",
        "mpegvideo",
        "mxf",
        "nut",
        "obu",
        "ogg",
        "png_pipe",
        "tiff_pipe",
        "truehd",
        "tta",
        "w64",
        "wav",
        "webp_pipe",
        "wv",
        "yuv4mpegpipe",
    ]
)
"""Names as in ``av_find_input_format``; one entry of a demuxer's comma list is enough."""

STILL_DEMUXERS = frozenset({"bmp_pipe", "jpeg_pipe", "png_pipe", "tiff_pipe", "webp_pipe"})

RAW_DEMUXERS = frozenset({"h261", "h263", "h264", "hevc", "m4v", "mjpeg", "mpegvideo", "obu"})
"""Elementary streams: no container, so no times; they are derived from the frame rate."""

VIDEO_DECODERS = frozenset(
    [
        "apng",
        "av1",
        "libdav1d",
        "bmp",
        "cinepak",
        "dnxhd",
        "dvvideo",
        "ffv1",
        "ffvhuff",
        "flashsv",
        "flv",
        "gif",
        "h261",
        "h263",
        "h263p",
        "h264",
        "hevc",
        "huffyuv",
        "indeo5",
        "jpeg2000",
        "magicyuv",
        "mjpeg",
        "mpeg1video",
        "mpeg2video",
        "mpeg4",
        "msmpeg4",
        "msmpeg4v1",
        "msmpeg4v2",
        "msrle",
        "msvideo1",
        "png",
        "prores",
        "qtrle",
        "rawvideo",
        "svq1",
        "svq3",
        "theora",
        "tiff",
        "utvideo",
        "v210",
        "vc1",
        "vp3",
        "vp6",
        "vp6f",
        "vp8",
        "vp9",
        "libvpx",
        "libvpx-vp9",
        "webp",
        "wmv1",
        "wmv2",
        "wmv3",
        "zlib",
    ]
)

AUDIO_DECODERS = frozenset(
    [
        "aac",
        "aac_latm",
        "ac3",
        "adpcm_ima_qt",
        "adpcm_ima_wav",
        "adpcm_ms",
        "alac",
        "amrnb",
        "amrwb",
        "libopencore_amrnb",
        "libopencore_amrwb",
        "ape",
        "dca",
        "eac3",
        "flac",
        "gsm",
        "gsm_ms",
        "mlp",
        "mp1",
        "mp1float",
        "mp2",
        "mp2float",
        "mp3",
        "mp3float",
        "nellymoser",
        "opus",
        "libopus",
        "pcm_alaw",
        "pcm_bluray",
        "pcm_dvd",
        "pcm_f32be",
        "pcm_f32le",
        "pcm_f64be",
        "pcm_f64le",
        "pcm_mulaw",
        "pcm_s16be",
        "pcm_s16le",
        "pcm_s24be",
        "pcm_s24le",
        "pcm_s32be",
        "pcm_s32le",
        "pcm_s8",
        "pcm_u8",
        "speex",
        "truehd",
        "tta",
        "vorbis",
        "wavpack",
        "wmav1",
        "wmav2",
        "wmapro",
    ]
)

TEXT_SUBTITLE_DECODERS = frozenset({"ass", "mov_text", "srt", "ssa", "subrip", "text", "webvtt"})


class MediaLimits(Contract):
    """Upper bounds, checked before the memory or the time is spent."""

    max_side: int = Field(default=16_384, gt=0)
    """Pixels along either edge of the coded picture."""
    max_pixels: int = Field(default=8192 * 8192, gt=0)
    """Pixels of one coded picture."""
    max_streams: int = Field(default=64, gt=0)
    max_box_depth: int = Field(default=24, gt=0)
    """Nesting of ISO base media boxes."""
    max_frames: int = Field(default=5_000_000, gt=0)
    max_duration_s: float = Field(default=24 * 3600.0, gt=0)
    """Decoded length; what a header claims is never planned with."""
    max_consecutive_errors: int = Field(default=400, gt=0)
    """Damaged packets in a row after which the rest of the file is given up."""
    max_output_bytes: int = Field(default=16 * 2**30, gt=0)
    """Everything that one decode may write."""
    max_subtitle_cues: int = Field(default=20_000, gt=0)
    max_subtitle_scan_bytes: int = Field(default=4 * 2**30, gt=0)
    """Text tracks of larger files are left unread, and the probe says so."""
    decode_budget_s: float | None = Field(default=None, gt=0)
    """Wall-clock seconds after which decoding stops and the rest is reported as not seen."""
