"""bench: measure, side by side in one run, with the baseline and the limit beside every row."""

import sys
from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path

from engines.errors import UsageError
from flows.bench import BenchReport
from flows.commands.output import dump, say, table
from tasks.settings import CHECKOUT

BENCHES = {
    "overhead": "flows.bench.overhead",
    "media": "flows.bench.media",
    "speech": "flows.bench.speech",
    "perception": "flows.bench.perception",
    "actions": "flows.bench.actions",
    "causal-numbers": "flows.bench.causal_numbers",
    "causal-world": "flows.bench.causal_world",
    "causal-speed": "flows.bench.causal_speed",
    "mecd": "flows.bench.mecd",
}
CORPUS = CHECKOUT.parent / "shared" / "corpus"


def bench(name: str, files: dict[str, Path | None], *, as_json: bool) -> None:
    """Run one benchmark.

    Args:
        name: which one.
        files: ``train``, ``test``, ``corpus``: given to those benchmarks that take them.
        as_json: print the report as one JSON document.

    Raises:
        UsageError: no such benchmark, or a file is missing.
        SystemExit: 1 when a row misses its mark.
    """
    if name not in BENCHES:
        msg = f"no benchmark {name!r}; there are: {', '.join(BENCHES)}"
        raise UsageError(msg)
    run: Callable[..., BenchReport] = import_module(BENCHES[name]).run
    report = run(**_wanted(name, run, files))
    if as_json:
        dump({"rows": [row.model_dump() for row in report.rows], "ok": report.ok})
    else:
        _print(report)
    if not report.ok:
        sys.exit(1)


def _wanted(
    name: str, run: Callable[..., BenchReport], files: dict[str, Path | None]
) -> dict[str, Path]:
    """Those of ``files`` that a benchmark takes; all that it cannot do without must be there."""
    given = {key: path for key, path in files.items() if path is not None}
    if CORPUS.is_dir():
        given.setdefault("corpus", CORPUS)
    taken = {}
    for key, parameter in signature(run).parameters.items():
        if key in given:
            if not given[key].exists():
                msg = f"no such file: {str(given[key])!r}"
                raise UsageError(msg)
            taken[key] = given[key]
        elif key in files and parameter.default is Parameter.empty:
            msg = f"bench {name} needs --{key}"
            raise UsageError(msg)
    return taken


def _print(report: BenchReport) -> None:
    marks = {True: "holds", False: "MISSED", None: ""}
    rows = []
    for row in report.rows:
        figures = ", ".join(f"{name} {_figure(value)}" for name, value in row.figures.items())
        rows.append((row.name, figures, row.must or "", marks[row.holds]))
    table(("row", "figures", "must reach", ""), rows)
    say(f"{sum(row.holds is False for row in report.rows)} rows missed their mark")


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
