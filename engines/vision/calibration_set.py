"""The user's own pictures: what INT8 is calibrated on, and what it is judged by."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import cv2
import numpy as np

from engines.errors import EngineError, ModelMissingError
from engines.vision.label_engine import Picture

MIN_CALIBRATION = 512
MAX_GATE = 256
_PICTURES = {".jpg", ".jpeg", ".png"}
_BLOCKS = 12
"""The sorted pictures are cut into so many runs, every third of which is for judging: neighbours
in time look alike, and one calibrated on would make the other's verdict too kind."""


@dataclass(frozen=True)
class _Entry:
    path: Path
    name: str | None
    """Of an archive's member; None for a file of its own."""


class CalibrationSet:
    """Pictures of a directory, in two parts that share no neighbours."""

    def __init__(self, directory: Path) -> None:
        """List what is there; nothing is decoded yet.

        Args:
            directory: with JPEG and PNG files, and zip archives of them, at any depth.

        Raises:
            ModelMissingError: no such directory.
            EngineError: too few pictures; the message has the number.
        """
        if not directory.is_dir():
            msg = f"no directory {directory} with pictures to calibrate on"
            raise ModelMissingError(msg)
        entries = list(_entries(directory))
        blocks = [
            entries[i * len(entries) // _BLOCKS :][: _size(entries, i)] for i in range(_BLOCKS)
        ]
        calibration = [e for i, block in enumerate(blocks) if i % 3 != 1 for e in block]
        gate = [e for i, block in enumerate(blocks) if i % 3 == 1 for e in block]
        if len(calibration) < MIN_CALIBRATION:
            msg = (
                f"{directory} has {len(entries)} pictures; INT8 needs {MIN_CALIBRATION} to "
                f"calibrate on and half as many to be judged by"
            )
            raise EngineError(msg)
        self._calibration = _spread(calibration, MIN_CALIBRATION)
        self._gate = _spread(gate, MAX_GATE)

    def calibration(self) -> Iterator[Picture]:
        """``MIN_CALIBRATION`` pictures."""
        return _decoded(self._calibration)

    def gate(self) -> Iterator[Picture]:
        """At most ``MAX_GATE`` others."""
        return _decoded(self._gate)


def _size(entries: Sequence[_Entry], block: int) -> int:
    return (block + 1) * len(entries) // _BLOCKS - block * len(entries) // _BLOCKS


def _entries(directory: Path) -> Iterator[_Entry]:
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        if path.suffix.lower() in _PICTURES:
            yield _Entry(path, None)
        elif path.suffix.lower() == ".zip":
            try:
                with ZipFile(path) as archive:
                    names = archive.namelist()
            except BadZipFile as error:
                msg = f"{path} is no zip archive"
                raise EngineError(msg) from error
            for name in names:
                if Path(name).suffix.lower() in _PICTURES:
                    yield _Entry(path, name)


def _spread(entries: list[_Entry], count: int) -> list[_Entry]:
    if len(entries) <= count:
        return entries
    return [entries[i * len(entries) // count] for i in range(count)]


def _decoded(entries: Sequence[_Entry]) -> Iterator[Picture]:
    for path, group in groupby(entries, key=lambda entry: entry.path):
        with ExitStack() as stack:
            archive = (
                None if path.suffix.lower() in _PICTURES else stack.enter_context(ZipFile(path))
            )
            for entry in group:
                raw = path.read_bytes() if archive is None else archive.read(entry.name or "")
                picture = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR_RGB)
                if picture is None:
                    msg = f"{path} {entry.name or ''} is not a picture"
                    raise EngineError(msg)
                yield np.asarray(picture, np.uint8)
