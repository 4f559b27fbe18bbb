"""One call of a stage's computation, as it crosses into the child process and back."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Generic, TypeVar

from engines.contracts.base import Contract, StageDocument
from tasks.clean import clean_document

P = TypeVar("P", bound=Contract)
D = TypeVar("D", bound=StageDocument)

DOCUMENT = "document.json"
"""Name of the file in the work directory that holds the stage's output document."""

_RESET_PEAK = "5"
"""Written to /proc/self/clear_refs: start the peak of resident memory again."""


@dataclass(frozen=True)
class StageCall(Generic[P]):
    """What a computation gets: local paths of its inputs, parameters, and where to write."""

    inputs: dict[str, Path]
    params: P
    work_dir: Path
    """Blobs go here; it outlives a killed process, so work in chunks can resume."""
    cache_dir: Path
    """Converted models, shared by all calls on this machine."""
    threads: int

    def document(self, name: str, kind: type[D]) -> D:
        """The input document called ``name``."""
        return kind.model_validate_json(self.inputs[name].read_bytes())

    def optional(self, name: str, kind: type[D]) -> D | None:
        """The same, or None where that stage was skipped."""
        return self.document(name, kind) if name in self.inputs else None


@dataclass(frozen=True)
class Usage:
    """What a computation took, measured inside its child process."""

    seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    degraded: tuple[str, ...]
    reusable: bool


def execute(compute: str, call: StageCall[P]) -> Usage:
    """Run ``compute`` (``module:function``) and write its cleaned document beside its blobs.

    Raises:
        ReelgraphError: whatever the engine refuses or fails with.
        NotFiniteError: a number that must be there came out as NaN or infinity.
    """
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
    started, cpu_started = time.monotonic(), time.process_time()
    module, _, function = compute.partition(":")
    run: Callable[[StageCall[P]], StageDocument] = getattr(import_module(module), function)
    document = clean_document(run(call))
    (call.work_dir / DOCUMENT).write_text(document.model_dump_json())
    return Usage(
        seconds=time.monotonic() - started,
        cpu_seconds=time.process_time() - cpu_started,
        peak_rss_bytes=_peak_rss_bytes(),
        degraded=document.degraded,
        reusable=document.reusable,
    )


def _peak_rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
