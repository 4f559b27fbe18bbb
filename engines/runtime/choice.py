"""Which backend runs a network: the fastest that gives the reference's numbers, by measurement."""

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from engines.contracts.base import Contract
from engines.errors import EngineError, UsageError
from engines.runtime.backends import open_session
from engines.runtime.conversion import recipe_hash, write_atomically
from engines.runtime.session import Array, Backend, NetworkSource, Session, SessionOptions

_ROUNDS = 3


class Measured(Contract):
    """What one backend did."""

    backend: Backend
    rows_per_s: float | None
    """None where it did not run or did not pass."""
    max_error: float | None
    """Largest absolute difference from the reference; None where it did not run."""
    reason: str | None
    """Why it did not pass; None where it did."""


class Choice(Contract):
    """The decision, kept beside the converted network."""

    backend: Backend
    measured: tuple[Measured, ...]
    situation: dict[str, str]
    """What would make the measurement stale: weights, machine, library versions, options."""


@dataclass(frozen=True)
class Reference:
    """Inputs and what torch float32 computes for them: no backend is used that disagrees."""

    inputs: dict[str, Array]
    outputs: dict[str, Array]
    tolerance: float
    """Largest absolute difference allowed in any element of any output."""


def check_reference(session: Session, reference: Reference) -> float:
    """Hold a loaded network to the reference; also warms it.

    Returns:
        The largest absolute difference.

    Raises:
        EngineError: it is above the tolerance.
    """
    outputs = session.run(reference.inputs)
    error = max(
        float(np.abs(outputs[name].astype(np.float64) - expected.astype(np.float64)).max())
        for name, expected in reference.outputs.items()
    )
    if error > reference.tolerance:
        msg = (
            f"{session.describe().provider} differs from the reference by {error:.3g}, "
            f"allowed is {reference.tolerance:g}"
        )
        raise EngineError(msg)
    return error


def choose_session(
    source: NetworkSource,
    options: SessionOptions,
    reference: Reference,
    candidates: Sequence[Backend],
    *,
    timing_rows: Mapping[str, Array],
    cache_dir: Path,
) -> tuple[Session, Choice]:
    """Open the fastest candidate that passes; measured once per machine and recipe.

    Args:
        source: the network.
        options: precision and threads, the same for all.
        reference: see ``Reference``.
        candidates: backends to try; those that are not installed are recorded as such.
        timing_rows: the batch to time, as long as those to come.
        cache_dir: where the record is kept.

    Raises:
        EngineError: none passes; the message says why for each.
    """
    situation = _situation(source, options, candidates, timing_rows)
    path = cache_dir / f"{source.name}-choice-{recipe_hash(situation)[:16]}.json"
    known = _read(path)
    if known is not None and known.situation == situation:
        session = open_session(known.backend, source, options)
        check_reference(session, reference)
        return session, known
    measured = tuple(_measure(b, source, options, reference, timing_rows) for b in candidates)
    passed = [m for m in measured if m.rows_per_s is not None]
    if not passed:
        reasons = "; ".join(f"{m.backend}: {m.reason}" for m in measured)
        msg = f"no backend can run {source.name}: {reasons}"
        raise EngineError(msg)
    best = max(passed, key=lambda m: m.rows_per_s or 0.0)
    choice = Choice(backend=best.backend, measured=measured, situation=situation)
    cache_dir.mkdir(parents=True, exist_ok=True)
    write_atomically(path, choice.model_dump_json(indent=1).encode())
    session = open_session(best.backend, source, options)
    check_reference(session, reference)
    return session, choice


def rows_per_second(session: Session, rows: Mapping[str, Array]) -> float:
    """Best of a few runs: the rest of the machine can only make a run slower."""
    session.run(rows)
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        session.run(rows)
        times.append(time.perf_counter() - start)
    return len(next(iter(rows.values()))) / min(times)


def _measure(
    backend: Backend,
    source: NetworkSource,
    options: SessionOptions,
    reference: Reference,
    rows: Mapping[str, Array],
) -> Measured:
    try:
        session = open_session(backend, source, options)
        error = check_reference(session, reference)
        speed = rows_per_second(session, rows)
    except (EngineError, UsageError) as problem:
        return Measured(backend=backend, rows_per_s=None, max_error=None, reason=str(problem))
    return Measured(backend=backend, rows_per_s=speed, max_error=error, reason=None)


def _situation(
    source: NetworkSource,
    options: SessionOptions,
    candidates: Sequence[Backend],
    rows: Mapping[str, Array],
) -> dict[str, str]:
    return {
        "weights": source.weights_sha256,
        "machine": f"{platform.machine()} {platform.processor()} {_cpu_name()}",
        "precision": options.precision,
        "threads": str(options.threads),
        "streams": str(options.streams),
        "device": options.device,
        "rows": str(len(next(iter(rows.values())))),
        **{f"candidate:{b}": _version(b) for b in candidates},
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _read(path: Path) -> Choice | None:
    try:
        return Choice.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
