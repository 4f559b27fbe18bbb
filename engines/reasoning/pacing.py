"""One pace for all who ask the same server: a hint to wait, seen by one, is kept by all."""

import random
import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from engines.reasoning.shared_file import locked_state

MAX_HINT_S = 3600.0
"""A longer hint is taken as this: no server knows more than an hour ahead."""
JITTER_SHARE = 0.1
_NOT_BEFORE = "not_before"


class PaceError(Exception):
    """The wait that the server asks for ends after the deadline."""


class Pacer:
    """Holds back requests until a wall-clock time; across processes if it has a file."""

    def __init__(self, path: Path | None = None) -> None:
        """Share the pace through ``path`` (one file per server), or within this process only."""
        self._path = path
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._random = random.SystemRandom()

    def hold(self, wait_s: float) -> None:
        """Let nobody ask for so many seconds from now; never shortens a hold."""
        until = time.time() + min(max(wait_s, 0.0), MAX_HINT_S)
        with self._lock:
            self._not_before = max(self._not_before, until)
            if self._path is not None:
                with locked_state(self._path) as state:
                    state[_NOT_BEFORE] = max(state.get(_NOT_BEFORE, 0.0), until)

    def wait(self, remaining_s: float) -> None:
        """Sleep until asking is allowed, with some jitter so that not all wake at once.

        Raises:
            PaceError: that would be after ``remaining_s`` seconds; nothing was slept.
        """
        while (left_s := self._left_s()) > 0:
            nap_s = left_s * (1 + self._random.uniform(0, JITTER_SHARE))
            if nap_s >= remaining_s:
                msg = f"the server asks to wait {left_s:.1f} s, {remaining_s:.1f} s are left"
                raise PaceError(msg)
            time.sleep(nap_s)
            remaining_s -= nap_s

    def _left_s(self) -> float:
        with self._lock:
            if self._path is not None:
                with locked_state(self._path) as state:
                    self._not_before = max(self._not_before, state.get(_NOT_BEFORE, 0.0))
            # A wall clock set back must not hold everyone for days.
            return min(self._not_before - time.time(), MAX_HINT_S)


def retry_after_s(header: str | None) -> float | None:
    """Seconds asked for by a Retry-After header, in either of its forms; None if unusable."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
