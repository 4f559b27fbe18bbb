"""Every error that Reelgraph raises on purpose.

The tree says two things about each: which exit code a command ends with, and
whether trying again can help.

    ReelgraphError
    |-- RefusedError            exit 3  the input will never work
    |   |-- NotMediaError               bytes that no allowed demuxer takes as media
    |   |-- EmptyInputError             zero bytes
    |   |-- ForbiddenFormatError        playlist, script, external reference
    |   |-- UnsupportedCodecError       media, but no decoder for any stream
    |   |-- EncryptedError              media, but locked
    |   |-- LimitExceededError          dimension, duration, streams, bytes over a bound
    |   `-- NothingDecodedError         opens, but not one frame or sample decodes
    |-- UsageError              exit 2  wrong parameter, unknown name
    |-- ServiceUnavailableError exit 4  retryable  database, store or Prefect not there
    |-- ObjectMissingError      exit 1  retryable  the key is not there (yet)
    |-- ObjectSupersededError   exit 1  the object was replaced in mid-read
    |-- AccessDeniedError       exit 3  credentials refused
    |-- StorageFullError        exit 1  no space left
    |-- StageTimeoutError       exit 1  killed at its limit
    |-- StageCrashedError       exit 1  retryable  the child process died
    |-- LeaseLostError          exit 1  another worker took over
    |-- CacheKeyError           exit 1  an ingredient cannot be hashed
    `-- EngineError             exit 1  a model or algorithm failed
        |-- ModelMissingError           weights not found
        |-- ModelHashError              weights differ from their manifest
        |-- OutOfMemoryError            does not fit even with a batch of one
        `-- NotFiniteError              NaN or infinity came out of a model
"""

from typing import ClassVar


class ReelgraphError(Exception):
    """Base of all; ``code`` is stable, the message is one line for a person."""

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    @property
    def code(self) -> str:
        """Stable snake_case name, e.g. ``not_media`` for NotMediaError."""
        name = type(self).__name__.removesuffix("Error")
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class RefusedError(ReelgraphError):
    """The input will never work, however often it is tried."""

    exit_code = 3


class NotMediaError(RefusedError):
    """No allowed demuxer takes these bytes as media."""


class EmptyInputError(RefusedError):
    """The file or object has zero bytes."""


class ForbiddenFormatError(RefusedError):
    """A playlist, script or reference that would open something else."""


class UnsupportedCodecError(RefusedError):
    """Media, but no decoder is available or allowed for any of its streams."""


class EncryptedError(RefusedError):
    """Media whose samples are encrypted."""


class LimitExceededError(RefusedError):
    """A bound on dimension, duration, streams, nesting or output was passed."""


class NothingDecodedError(RefusedError):
    """The container opens but not one frame or sample decodes."""


class UsageError(ReelgraphError):
    """A parameter or name that does not exist or does not fit."""

    exit_code = 2


class ServiceUnavailableError(ReelgraphError):
    """Postgres, the object store or Prefect cannot be reached."""

    retryable = True
    exit_code = 4


class ObjectMissingError(ReelgraphError):
    """The key is not in the bucket; may be slow visibility."""

    retryable = True


class ObjectSupersededError(ReelgraphError):
    """The object was replaced while it was read."""


class AccessDeniedError(ReelgraphError):
    """The store or database refused the credentials."""

    exit_code = 3


class StorageFullError(ReelgraphError):
    """A disk or bucket has no space left."""


class StageTimeoutError(ReelgraphError):
    """The stage was killed at its time limit."""


class StageCrashedError(ReelgraphError):
    """The child process of a stage died (out of memory, signal)."""

    retryable = True


class LeaseLostError(ReelgraphError):
    """Another worker took over this work; a late result is refused."""


class CacheKeyError(ReelgraphError):
    """An ingredient of the cache key cannot be hashed."""


class EngineError(ReelgraphError):
    """A model or an algorithm failed."""


class ModelMissingError(EngineError):
    """The weights are not where the manifest says."""


class ModelHashError(EngineError):
    """The weights differ from the SHA-256 in their manifest."""


class OutOfMemoryError(EngineError):
    """The input does not fit even with a batch of one."""


class NotFiniteError(EngineError):
    """NaN or infinity came out of a model."""
