"""Compute in a child process that can be killed: time and memory limits that hold.

A thread cannot be stopped in the middle of a decoder or a model, and memory that native code
takes cannot be taken back. So heavy work runs in a warm child: it is killed at its time limit
or when it dies (out of memory, a crash in native code), and the caller gets an error, not the
same fate. Arguments and results cross by pickle: pass paths and contracts, never frames.
"""

import multiprocessing
import resource
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from pebble import ProcessExpired, ProcessPool

from engines.errors import StageCrashedError, StageTimeoutError

P = ParamSpec("P")
R = TypeVar("R")


def _limit_memory(memory_bytes: int | None) -> None:
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


class ChildPool:
    """One or more warm child processes; engines stay loaded in them between calls."""

    def __init__(self, *, workers: int = 1, memory_bytes: int | None = None) -> None:
        """Start nothing yet: children are made at the first call.

        Args:
            workers: how many children may work at a time.
            memory_bytes: address space of each child (RLIMIT_AS); None for no limit. Native
                allocations beyond it fail inside the child.
        """
        self._pool = ProcessPool(
            max_workers=workers,
            context=multiprocessing.get_context("spawn"),
            initializer=partial(_limit_memory, memory_bytes),
        )

    def run(self, timeout_s: float, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call ``work`` in a child and return what it returns or raises.

        Raises:
            StageTimeoutError: the child was killed after ``timeout_s`` seconds.
            StageCrashedError: the child died; the message has its exit code.
        """
        name = getattr(work, "__name__", repr(work))
        future = self._pool.schedule(work, args=args, kwargs=kwargs, timeout=timeout_s)
        try:
            return future.result()  # type: ignore[no-any-return]
        except FutureTimeoutError as error:
            if future.done() and not isinstance(future.exception(), FutureTimeoutError):
                raise
            msg = f"{name} was killed at its limit of {timeout_s:g} s"
            raise StageTimeoutError(msg) from error
        except ProcessExpired as error:
            msg = f"the process of {name} died with exit code {error.exitcode} (out of memory?)"
            raise StageCrashedError(msg) from error

    def close(self) -> None:
        """End the children at once; work in progress is lost."""
        self._pool.stop()
        self._pool.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
