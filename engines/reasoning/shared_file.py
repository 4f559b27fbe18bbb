"""A small JSON state that several processes share: read, change, write under one lock."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

State = dict[str, float]


@contextmanager
def locked_state(path: Path) -> Iterator[State]:
    """The numbers in a file, held by an exclusive lock; changes are written at the end.

    Args:
        path: made (mode 0600) if it is not there; its directory must exist.

    Raises:
        ValueError: the file holds something else; it is left as it is.
        OSError: it cannot be opened or written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read()
        state = json.loads(text) if text else {}
        if not isinstance(state, dict) or not all(
            isinstance(v, int | float) for v in state.values()
        ):
            msg = f"{path} does not hold numbers by name"
            raise ValueError(msg)
        yield state
        file.seek(0)
        file.truncate()
        json.dump(state, file)
