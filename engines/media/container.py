"""Opening a file so that nothing but its own bytes can ever be read.

The demuxer gets a file object, never a name: no protocol, no image pattern and no leading dash
can be read into it. A demuxer that asks for a second file (playlists, references) is refused by
``io_open``; formats and codecs outside the allow-lists are refused by the library itself.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import av
from av.container import InputContainer

from engines.errors import (
    EmptyInputError,
    EncryptedError,
    ForbiddenFormatError,
    LimitExceededError,
    NothingDecodedError,
    NotMediaError,
    UsageError,
)
from engines.media.allocator import keep_large_blocks_apart
from engines.media.guard import forbidden_text, looks_like_text
from engines.media.limits import (
    AUDIO_DECODERS,
    DEMUXERS,
    TEXT_SUBTITLE_DECODERS,
    VIDEO_DECODERS,
    MediaLimits,
)
from engines.media.structure import Structure, read_structure

HEAD_BYTES = 65_536
IO_BUFFER_BYTES = 1 << 18
MAX_NAME_SUFFIX = 8

_OPTIONS = {
    "format_whitelist": ",".join(sorted(DEMUXERS)),
    "codec_whitelist": ",".join(sorted(VIDEO_DECODERS | AUDIO_DECODERS | TEXT_SUBTITLE_DECODERS)),
    "protocol_whitelist": "file",
}


class _Reader:
    """The three calls that a demuxer needs, and a name that tells it nothing."""

    def __init__(self, descriptor: int, suffix: str, end: int | None) -> None:
        self._descriptor = descriptor
        self._end = end
        self.name = f"input{suffix}"

    def read(self, size: int) -> bytes:
        if self._end is not None:
            size = max(0, min(size, self._end - self.tell()))
        return os.read(self._descriptor, size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        try:
            return os.lseek(self._descriptor, offset, whence)
        except (OSError, OverflowError):
            # Sizes of damaged chunks lead before the start or beyond all files: the demuxer is
            # told so and goes on, where an exception would end it.
            return -1

    def tell(self) -> int:
        return os.lseek(self._descriptor, 0, os.SEEK_CUR)


def _refuse_second_file(url: str, flags: int, options: dict[str, str]) -> NoReturn:
    del flags, options
    msg = f"the file refers to another one, {url[:200]!r}; references are not followed"
    raise ForbiddenFormatError(msg)


def _open_descriptor(path: Path) -> tuple[int, int]:
    """File descriptor and size in bytes of a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        msg = f"no such file: {str(path)!r}"
        raise UsageError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"cannot read {str(path)[:200]!r}: {error}"
        raise UsageError(msg) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        msg = "not a regular file: directories, devices, pipes and sockets are not media"
        raise NotMediaError(msg)
    return descriptor, status.st_size


def _refuse_unopenable(head: bytes, structure: Structure, error: Exception) -> NoReturn:
    """Say why no demuxer took the file, from what its bytes show."""
    if structure.encrypted:
        msg = "the samples are encrypted and no key is given"
        raise EncryptedError(msg) from error
    if structure.truncated:
        msg = f"unreadable: truncated: {structure.truncated}"
        raise NothingDecodedError(msg) from error
    if structure.kind == "iso":
        msg = "unreadable: the container's index is missing or contradicts itself"
        raise NothingDecodedError(msg) from error
    if looks_like_text(head):
        msg = "not media: the file is text"
        raise NotMediaError(msg) from error
    msg = "not media: no allowed demuxer recognises these bytes"
    raise NotMediaError(msg) from error


def _try_open(descriptor: int, limits: MediaLimits, suffix: str, end: int | None) -> InputContainer:
    os.lseek(descriptor, 0, os.SEEK_SET)
    options = {**_OPTIONS, "max_pixels": str(limits.max_pixels)}
    # One more than allowed: the library itself stops there without a word.
    options["max_streams"] = str(limits.max_streams + 1)
    container: InputContainer = av.open(
        _Reader(descriptor, suffix, end),
        "r",
        options=options,
        metadata_errors="replace",
        buffer_size=IO_BUFFER_BYTES,
        io_open=_refuse_second_file,
    )
    return container


def _open_by_content(
    path: Path, descriptor: int, limits: MediaLimits, head: bytes, structure: Structure
) -> InputContainer:
    """Open by what the bytes say; the name's ending is asked only when they say nothing.

    Some streams start with junk in which no demuxer finds its signature within the bytes it
    looks at; the ending then chooses among the same allowed demuxers.
    """
    try:
        return _try_open(descriptor, limits, "", structure.read_to)
    except ForbiddenFormatError:
        raise
    except (av.FFmpegError, OSError) as error:
        suffix = path.suffix.lower()
        if structure.kind == "unknown" and suffix[1:].isalnum() and len(suffix) <= MAX_NAME_SUFFIX:
            try:
                container = _try_open(descriptor, limits, suffix, structure.read_to)
            except (av.FFmpegError, OSError):
                _refuse_unopenable(head, structure, error)
            structure.opened_by_name = True
            return container
        _refuse_unopenable(head, structure, error)


@contextmanager
def open_media(path: Path, limits: MediaLimits) -> Iterator[tuple[InputContainer, Structure]]:
    """Open ``path`` for demuxing; closed on every way out.

    Yields:
        The container, and what its own structure says (see structure.py).

    Raises:
        RefusedError: one of its kinds; the message says what is wrong with the bytes.
        UsageError: there is no such file or it cannot be read.
    """
    keep_large_blocks_apart()
    descriptor, size = _open_descriptor(path)
    try:
        if size == 0:
            msg = "the file is empty (0 bytes)"
            raise EmptyInputError(msg)
        head = os.pread(descriptor, HEAD_BYTES, 0)
        reason = forbidden_text(head)
        if reason is not None:
            raise ForbiddenFormatError(reason)
        structure = read_structure(descriptor, size, limits)
        container = _open_by_content(path, descriptor, limits, head, structure)
        try:
            if len(container.streams) > limits.max_streams:
                msg = f"{len(container.streams)} streams, at most {limits.max_streams} allowed"
                raise LimitExceededError(msg)
            # Times that the container does not state stay None, so that they can be marked.
            container.flags &= ~av.container.Flags.gen_pts.value
            yield container, structure
        finally:
            container.close()
    finally:
        os.close(descriptor)
