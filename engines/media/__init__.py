"""A file in; what it truly is, sampled pictures, shots, motion and sound out, on one clock."""

from engines.media.limits import MediaLimits

__all__ = ["MediaLimits"]
