"""Times as people read them."""

SECONDS_PER_MINUTE = 60


def clock(seconds: float) -> str:
    """``m:ss.cc`` on the asset's clock."""
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(abs(seconds), SECONDS_PER_MINUTE)
    return f"{sign}{int(minutes)}:{rest:05.2f}"
