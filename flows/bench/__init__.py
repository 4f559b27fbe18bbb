"""Side-by-side measurements: every row with its baseline, the limit, and what it must reach.

Each module has ``run(...) -> BenchReport``. Absolute times mean nothing on a shared machine, so
rows are ratios of CPU time between ways that ran in the same process, one after the other.
"""

from pydantic import BaseModel, ConfigDict


class BenchRow(BaseModel):
    """One measured thing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    figures: dict[str, float | int | str | None]
    must: str | None
    """What the row has to reach, in words with its number; None where nothing is set."""
    holds: bool | None
    """Whether it does; None where nothing is set or it could not be measured."""


class BenchReport(BaseModel):
    """All rows of one benchmark."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[BenchRow, ...]

    @property
    def ok(self) -> bool:
        """Whether no row misses what it must reach."""
        return all(row.holds is not False for row in self.rows)
