"""Rows as they come: a benchmark of minutes that is stopped loses none of them."""

import time
from collections.abc import Iterable

from flows.bench import BenchRow
from flows.commands.output import tell


def _line(row: BenchRow) -> str:
    """A row on one line: whether it holds, its name and its figures."""
    mark = {True: "holds: ", False: "MISSED: ", None: ""}[row.holds]
    figures = ", ".join(f"{name} {value}" for name, value in row.figures.items())
    return f"{mark}{row.name}: {figures}"


class Rows:
    """Rows in their order, each told on stderr when it is there."""

    def __init__(self) -> None:
        """None yet."""
        self.all: list[BenchRow] = []
        self._began = time.monotonic()

    def add(self, rows: Iterable[BenchRow]) -> None:
        """Some more; an iterator's are told one by one."""
        for row in rows:
            self.say(_line(row))
            self.all.append(row)

    def say(self, text: str) -> None:
        """A line about progress, with the time since the start."""
        tell(f"{time.monotonic() - self._began:4.0f} s  {text}")
