"""Two ways in turns of a tenth of a second: whatever slows the machine slows both alike.

Where other machines share the processor, the same loop was seen to cost a third more in one second
than in the next. Whole runs one after the other then compare two states of the machine. Turns that
are much shorter than such states, and much longer than it takes to fill a cache again, do not.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from threading import Barrier
from typing import Final

_TURN_S: Final = 0.1


def cpu_s() -> float:
    """CPU seconds of this process and of its children that ended."""
    own, children = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def ratios(one: Callable[[], object], other: Callable[[], object], rounds: int) -> list[float]:
    """CPU seconds of ``other`` over those of ``one``, a ratio for each round.

    Each has a process of its own for all rounds and runs once before the first, so that imports do
    not count. In a round both begin together, and only one of them is awake at any time.

    Args:
        one: the way that counts as 1; it can be pickled.
        other: the way that is judged; likewise.
        rounds: how often they run.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    pipes: list[Connection] = []
    processes: list[BaseProcess] = []
    for way in (one, other):
        ours, theirs = context.Pipe(duplex=False)
        processes.append(context.Process(target=_run, args=(way, rounds, barrier, theirs)))
        processes[-1].start()
        theirs.close()
        pipes.append(ours)
    try:
        while any(process.is_alive() for process in processes):
            for process in processes:
                _take_turn(process)
    finally:
        # A stopped process heeds no other signal.
        for process in processes:
            process.kill()
    spent = [[pipe.recv() for _ in range(rounds)] for pipe in pipes]
    return [b / a for a, b in zip(*spent, strict=True)]


def _take_turn(process: BaseProcess) -> None:
    if process.is_alive() and process.pid is not None:
        os.kill(process.pid, signal.SIGCONT)
        process.join(_TURN_S)
    if process.is_alive() and process.pid is not None:
        os.kill(process.pid, signal.SIGSTOP)


def _run(way: Callable[[], object], rounds: int, barrier: Barrier, pipe: Connection) -> None:
    try:
        way()
        for _ in range(rounds):
            barrier.wait()
            start = cpu_s()
            way()
            pipe.send(cpu_s() - start)
    except BaseException:
        # The other would wait for this one for good.
        barrier.abort()
        raise
