"""Stages that wait for nothing but what they read, and of which one may fail alone."""

from typing import Any

from prefect import Task
from prefect.futures import PrefectFuture

from engines.errors import ReelgraphError, RefusedError
from flows.placement import Placement
from tasks.run import Ending, Run
from tasks.stage import StageRef, skip_stage


class FanOut:
    """Stages started side by side: those that found something, and why the others did not."""

    def __init__(self, run: Run, ending: Ending, place: Placement) -> None:
        """Nothing is started yet."""
        self._place = place
        self._run = run
        self._ending = ending
        self._futures: dict[str, PrefectFuture[StageRef]] = {}
        self._after: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        """Stage -> why it has no result; becomes its row of coverage."""

    def start(
        self, task: Task[..., StageRef], *, after: str | None = None, **arguments: Any
    ) -> None:
        """Begin a stage of this run on the pool that fits it.

        Args:
            task: the stage's task.
            after: a stage that was started or skipped before; its result is given to the task
                under its name, and without one there is nothing for the task to work on.
            arguments: of the task, beside the run.
        """
        if after in self.missing:
            self.skip(task.name, self.missing[after])
            return
        if after is not None:
            self._after[task.name] = after
            arguments[after] = self._futures[after]
        self._futures[task.name] = self._place.task_for(task).submit(self._run, **arguments)

    def skip(self, stage: str, reason: str) -> None:
        """Record that a stage has nothing to work on."""
        skip_stage(self._run, stage, reason)
        self.missing[stage] = reason

    def collect(self) -> dict[str, StageRef]:
        """Wait for all; a stage that failed for good is said on the run and left out.

        Raises:
            ReelgraphError: a service is not there, or the input was refused: that ends the run.
        """
        found: dict[str, StageRef] = {}
        fatal: ReelgraphError | None = None
        for name, future in self._futures.items():
            before = self._after.get(name)
            if before is not None and before not in found:
                # Its task was never run: Prefect has no result to wait for.
                if before in self.missing:
                    self.skip(name, f"{before} failed: {self.missing[before]}")
                continue
            try:
                found[name] = future.result()
            except ReelgraphError as error:
                if error.retryable or isinstance(error, RefusedError):
                    fatal = fatal or error
                    continue
                self.missing[name] = f"{error.code}: {error}"
                self._ending.partial = True
                self._ending.degraded.append(f"{name} failed: {error}")
        if fatal is not None:
            raise fatal
        return found
