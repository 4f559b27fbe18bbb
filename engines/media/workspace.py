"""Files of a decode in progress: appended to, cut back to the last checkpoint on resumption."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, BinaryIO, Final

from engines.errors import LimitExceededError

FILES: Final = ("pts", "signals", "thumbs", "pictures", "people", "sound")
_STATE = "state.json"


class Workspace:
    """A directory with one append-only file for each kind of output, and a state."""

    def __init__(self, directory: Path, identity: str, max_bytes: int) -> None:
        """Open or create the directory.

        Args:
            directory: belongs to this decode alone.
            identity: of input and parameters; what another identity left is thrown away.
            max_bytes: bound on the sum of all files.
        """
        self.directory = directory
        self._identity = identity
        self._max_bytes = max_bytes
        directory.mkdir(parents=True, exist_ok=True)
        self._files: dict[str, BinaryIO] = {}
        self._generation = dict.fromkeys(FILES, 0)
        self.state: dict[str, Any] | None = None
        self.rewind()

    def rewind(self) -> None:
        """Cut every file back to the last checkpoint, or to nothing where there is none."""
        self.close()
        self.state = self._load()
        sizes = self.state["sizes"] if self.state else dict.fromkeys(FILES, 0)
        self._generation = self.state["generation"] if self.state else dict.fromkeys(FILES, 0)
        self._remove_strangers()
        for name in FILES:
            path = self.path(name)
            path.touch()
            os.truncate(path, sizes[name])
            self._files[name] = path.open("ab")

    def _load(self) -> dict[str, Any] | None:
        try:
            stored = json.loads((self.directory / _STATE).read_text())
        except (FileNotFoundError, ValueError):
            return None
        if stored.get("identity") != self._identity:
            return None
        sizes, generation = stored["sizes"], stored["generation"]
        for name in FILES:
            path = self.directory / f"{name}.{generation[name]}"
            if not path.is_file() or path.stat().st_size < sizes[name]:
                return None
        return dict(stored)

    def _remove_strangers(self) -> None:
        """Delete files that the last checkpoint does not speak of."""
        known = {self.path(name) for name in FILES} | {self.directory / _STATE}
        for path in self.directory.iterdir():
            if path not in known:
                path.unlink()

    def path(self, name: str) -> Path:
        """Where a file lies."""
        return self.directory / f"{name}.{self._generation[name]}"

    def file(self, name: str) -> BinaryIO:
        """The open file for appending."""
        return self._files[name]

    def check_size(self) -> None:
        """Hold the files to their bound.

        Raises:
            LimitExceededError: they are larger together than allowed.
        """
        if sum(file.tell() for file in self._files.values()) > self._max_bytes:
            msg = f"decoding would write more than {self._max_bytes} bytes"
            raise LimitExceededError(msg)

    def save(self, state: dict[str, Any]) -> None:
        """Make everything appended so far the checkpoint; atomic."""
        sizes = {}
        for name, file in self._files.items():
            file.flush()
            sizes[name] = file.tell()
        stored = {
            "identity": self._identity,
            "sizes": sizes,
            "generation": self._generation,
            **state,
        }
        fresh = self.directory / (_STATE + ".new")
        fresh.write_text(json.dumps(stored))
        fresh.replace(self.directory / _STATE)
        self.state = stored
        self._remove_strangers()

    def rewrite(self, name: str, keep: list[tuple[int, int]]) -> list[int]:
        """Keep only these (offset, size) pieces of a file; their new offsets are returned.

        The old file stays until the next checkpoint, since the last one speaks of it.
        """
        self._files[name].close()
        old = self.path(name)
        self._generation = {**self._generation, name: self._generation[name] + 1}
        offsets = []
        self._files[name] = self.path(name).open("ab")
        with old.open("rb") as source:
            for offset, size in keep:
                offsets.append(self._files[name].tell())
                source.seek(offset)
                self._files[name].write(source.read(size))
        return offsets

    def close(self) -> None:
        """Close the files; what is on disk stays."""
        for file in self._files.values():
            file.close()

    def clear(self) -> None:
        """Forget the checkpoint and everything written."""
        (self.directory / _STATE).unlink(missing_ok=True)
        self.rewind()

    def remove(self) -> None:
        """Close and delete everything."""
        self.close()
        shutil.rmtree(self.directory, ignore_errors=True)
