"""Reading the archive of sampled pictures."""

import zipfile
from pathlib import Path
from typing import Self

import cv2
import numpy as np
import numpy.typing as npt

from engines.errors import EngineError


class SampleArchive:
    """The ``samples`` blob: one JPEG for each sampled picture, by name."""

    def __init__(self, path: Path) -> None:
        """Open the archive at ``path``; close it, or use it as a context manager."""
        self._zip = zipfile.ZipFile(path)

    @property
    def names(self) -> tuple[str, ...]:
        """Entry names in the order of their time."""
        return tuple(self._zip.namelist())

    def read(self, name: str) -> npt.NDArray[np.uint8]:
        """Decode one picture.

        Args:
            name: a ``Sample.name`` of the document that the archive belongs to.

        Returns:
            uint8 [h, w, 3] RGB, upright and with square pixels.

        Raises:
            EngineError: there is no such entry or it is no picture.
        """
        try:
            raw = self._zip.read(name)
        except KeyError as error:
            msg = f"no sample {name!r} in the archive of {len(self.names)}"
            raise EngineError(msg) from error
        picture = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR_RGB)
        if picture is None:
            msg = f"sample {name!r} is not a picture"
            raise EngineError(msg)
        return np.asarray(picture, dtype=np.uint8)

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
