"""Two calls to the C library's allocator, so that a worker's memory stays small and flat."""

import ctypes
from functools import cache
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
"""``mallopt``'s number for the size from which a block gets a mapping of its own (glibc)."""
_LARGE_BYTES: Final = 1 << 18


@cache
def keep_large_blocks_apart() -> bool:
    """Give every block of 256 kB or more a mapping of its own, for the rest of the process.

    A demuxer's index of hours is tens of megabytes and grows by reallocation. glibc answers the
    first free of such a block by raising its threshold to that size: from then on the index lies
    on the heap, among the holes that its growth left. That cost 20 MB for two hours of MP4.

    Returns:
        Whether the library took the setting; others than glibc have none and need none.
    """
    setter = getattr(ctypes.CDLL(None), "mallopt", None)
    return setter is not None and bool(setter(_M_MMAP_THRESHOLD, _LARGE_BYTES))


def give_back() -> None:
    """Return to the system what lies free on the heap; a millisecond, for a checkpoint."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
