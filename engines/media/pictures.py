"""Decoded frames as upright RGB pictures with square pixels in standard range."""

from fractions import Fraction

import av
import cv2
import numpy as np
import numpy.typing as npt
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter

from engines.errors import UnsupportedCodecError
from engines.media.orientation import Orientation
from engines.media.signals import THUMB_HEIGHT, THUMB_WIDTH
from engines.media.tonemap import ToneMap

_JPEG_QUALITY = 90
_UNSPECIFIED = 2
_KNOWN_MATRICES = frozenset({0, 1, _UNSPECIFIED, 4, 5, 6, 7, 9})
"""Matrix coefficients (ITU-T H.273) that the scaler has numbers for."""

UInt8Array = npt.NDArray[np.uint8]


def target_size(width: int, height: int, aspect: Fraction, long_edge: int) -> tuple[int, int]:
    """Coded-orientation size of a picture with square pixels, its long edge bounded.

    Args:
        width: stored pixels along a row.
        height: rows.
        aspect: width of a stored pixel over its height.
        long_edge: bound in pixels; smaller pictures are not enlarged, but for ``aspect``.
    """
    square_width = width * float(aspect)
    scale = min(1.0, long_edge / max(square_width, height))
    return max(1, round(square_width * scale)), max(1, round(height * scale))


def has_known_matrix(frame: VideoFrame) -> bool:
    """Whether the scaler can turn this frame's stated colour matrix into RGB."""
    return frame.colorspace in _KNOWN_MATRICES


class PictureMaker:
    """Turns decoded frames into pictures; keep one for a stream, its scaler is reused."""

    def __init__(
        self, orientation: Orientation, aspect: Fraction, *, hdr: str | None, long_edge: int
    ) -> None:
        """Prepare for one stream.

        Args:
            orientation: applied to every picture, once.
            aspect: width of a stored pixel over its height.
            hdr: kind of high dynamic range, None for standard range.
            long_edge: bound on the longer side in pixels.
        """
        self._orientation = orientation
        self._aspect = aspect
        self._long_edge = long_edge
        self._tone_map = ToneMap(hdr) if hdr is not None else None
        self._scaler = VideoReformatter()
        self._small_scaler = VideoReformatter()

    def thumb(self, frame: VideoFrame) -> UInt8Array:
        """uint8 [27, 48, 4] RGBA by area averaging, in coded orientation.

        Four bytes a pixel: the scaler has a faster last step for those than for three (seen: 150
        against 174 microseconds from 720p), at most four of 255 apart.
        """
        small = _scaled(
            self._small_scaler, frame, THUMB_WIDTH, THUMB_HEIGHT, "rgba", Interpolation.AREA
        )
        return np.asarray(small.to_ndarray(), dtype=np.uint8)

    def picture(self, frame: VideoFrame) -> UInt8Array:
        """uint8 [h, w, 3] RGB: upright, square pixels, standard range, bounded size."""
        width, height = target_size(frame.width, frame.height, self._aspect, self._long_edge)
        shrinks = width < frame.width or height < frame.height
        wanted = "rgb24" if self._tone_map is None else "rgb48le"
        how = Interpolation.AREA if shrinks else Interpolation.BICUBIC
        converted = _scaled(self._scaler, frame, width, height, wanted, how)
        pixels = converted.to_ndarray()
        if self._tone_map is not None:
            pixels = self._tone_map.apply(np.asarray(pixels, dtype=np.uint16))
        return self._orientation.apply(np.asarray(pixels, dtype=np.uint8))


def _scaled(
    scaler: VideoReformatter,
    frame: VideoFrame,
    width: int,
    height: int,
    pixel_format: str,
    interpolation: Interpolation,
) -> VideoFrame:
    """One call of the scaler; a colour matrix that it does not know counts as unspecified.

    Raises:
        UnsupportedCodecError: pixels of a kind that the scaler cannot read at all.
    """
    if not has_known_matrix(frame):
        frame.colorspace = _UNSPECIFIED
    try:
        return scaler.reformat(
            frame, width, height, pixel_format, interpolation=interpolation, threads=1
        )
    except av.FFmpegError as error:
        msg = f"pictures of pixel format {frame.format.name} cannot be converted to RGB"
        raise UnsupportedCodecError(msg) from error


def encode_jpeg(picture: UInt8Array, quality: int = _JPEG_QUALITY) -> bytes:
    """JPEG of uint8 [h, w, 3] RGB."""
    # Turned round by the library: a view of reversed channels takes it twice as long.
    turned = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    ok, encoded = cv2.imencode(".jpg", turned, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert ok, "encoding a valid array cannot fail"
    return bytes(encoded)


def sharpness_of(picture: UInt8Array) -> float:
    """Variance of the Laplacian of the luma (0-255) of uint8 [h, w, 3] RGB."""
    gray = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    _, deviation = cv2.meanStdDev(cv2.Laplacian(gray, cv2.CV_16S))
    return float(deviation[0, 0] ** 2)
