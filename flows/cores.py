"""Runs one function over many items, one process for each core."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def on_every_core(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Results in the order of the items, each as soon as it and those before it are there.

    Args:
        function: of a module; it and its results must bear pickling.
        items: likewise.
    """
    workers = max(1, min(len(items), len(os.sched_getaffinity(0))))
    if workers == 1:
        yield from map(function, items)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin) as pool:
        yield from pool.map(function, items)


def _begin() -> None:
    """One thread each, and no life of its own: work that is killed leaves nothing running."""
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
