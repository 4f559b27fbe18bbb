"""High dynamic range to standard range, so that models see what a person would see.

Transfer functions: SMPTE ST 2084 (PQ) and ARIB STD-B67 (HLG); gamut BT.2020 to BT.709; tone
curve: extended Reinhard on luminance with 203 cd/m2 (ITU-R BT.2408) as reference white.
"""

import numpy as np
import numpy.typing as npt

_PQ_M1 = 2610 / 16384
_PQ_M2 = 2523 / 4096 * 128
_PQ_C1 = 3424 / 4096
_PQ_C2 = 2413 / 4096 * 32
_PQ_C3 = 2392 / 4096 * 32
_PQ_PEAK_NITS = 10_000.0
_HLG_A = 0.17883277
_HLG_B = 0.28466892
_HLG_C = 0.55991073
_HLG_PEAK_NITS = 1000.0
_WHITE_NITS = 203.0
_MAX_WHITE = 1000.0 / _WHITE_NITS
_CODES = 65_536

_BT2020_TO_BT709 = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]],
    dtype=np.float32,
)
_BT2020_LUMA = np.array([0.2627, 0.6780, 0.0593], dtype=np.float32)


def _pq_to_nits(code: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    power = code ** (1 / _PQ_M2)
    ratio = np.maximum(power - _PQ_C1, 0) / (_PQ_C2 - _PQ_C3 * power)
    return np.asarray(_PQ_PEAK_NITS * ratio ** (1 / _PQ_M1))


def _hlg_to_nits(code: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low = code**2 / 3
    high = (np.exp((np.maximum(code, 0.5) - _HLG_C) / _HLG_A) + _HLG_B) / 12
    scene = np.where(code <= 0.5, low, high)  # noqa: PLR2004 (the curve's own knee)
    return np.asarray(_HLG_PEAK_NITS * scene**1.2)


class ToneMap:
    """Maps 16-bit RGB of one HDR kind to 8-bit BT.709."""

    def __init__(self, hdr: str) -> None:
        """Build the lookup table for ``hdr10``, ``dolby_vision`` (PQ base layer) or ``hlg``."""
        code = np.arange(_CODES, dtype=np.float64) / (_CODES - 1)
        nits = _hlg_to_nits(code) if hdr == "hlg" else _pq_to_nits(code)
        self._linear = (nits / _WHITE_NITS).astype(np.float32)

    def apply(self, picture: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
        """uint16 [h, w, 3] as decoded to uint8 [h, w, 3], gamma encoded for BT.709."""
        linear = self._linear[picture]
        luminance = (linear @ _BT2020_LUMA)[..., None]
        mapped = luminance * (1 + luminance / _MAX_WHITE**2) / (1 + luminance)
        linear = linear * (mapped / np.maximum(luminance, 1e-6))
        narrow = np.clip(linear @ _BT2020_TO_BT709.T, 0, 1)
        return np.asarray(np.rint(255 * narrow ** (1 / 2.2)), dtype=np.uint8)
