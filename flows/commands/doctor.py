"""doctor: what this machine can run, what is missing, and how to get it."""

import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import psutil
from packaging.requirements import Requirement

from engines.contracts.base import Contract
from engines.runtime.manifest import is_available, load_manifest, manifest_names
from flows.commands.output import dump, table
from tasks.settings import Settings, get_settings

State = Literal["ok", "missing", "note"]
MIN_FREE_BYTES = 5 << 30
MIN_MEMORY_BYTES = 4 << 30
GIB = 1 << 30


class Finding(Contract):
    """One thing that was looked at."""

    what: str
    state: State
    found: str
    mend: str = ""
    """What to do about it; empty when nothing needs doing."""


def doctor(*, as_json: bool) -> None:
    """Look and print; always ends well, since a missing GPU is no failure."""
    findings = list(examine(get_settings()))
    if as_json:
        dump(findings)
        return
    table(
        ("what", "state", "found", "to do"), [(f.what, f.state, f.found, f.mend) for f in findings]
    )


def examine(settings: Settings) -> Iterator[Finding]:
    """Everything that decides what can run here."""
    yield Finding(what="python", state="ok", found=platform.python_version())
    yield _machine("memory", psutil.virtual_memory().total, MIN_MEMORY_BYTES)
    place = settings.home if settings.home.exists() else Path("/")
    yield _machine("free disk", shutil.disk_usage(place).free, MIN_FREE_BYTES)
    yield from _packages()
    yield from _models(settings)
    yield _gpu()
    yield _tensorrt()
    yield _language_model(settings)


def _machine(what: str, found: int, needed: int) -> Finding:
    enough = found >= needed
    return Finding(
        what=what,
        state="ok" if enough else "missing",
        found=f"{found / GIB:.1f} GiB",
        mend="" if enough else f"at least {needed / GIB:.0f} GiB is needed",
    )


def _packages() -> Iterator[Finding]:
    """Packages that are not there, or not in the version that this release was made with."""
    wrong = []
    for line in requires("reelgraph") or []:
        need = Requirement(line)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        try:
            found = version(need.name)
        except PackageNotFoundError:
            wrong.append(f"{need} is not installed")
            continue
        if not need.specifier.contains(found, prereleases=True):
            wrong.append(f"{need.name} is {found}, not {need.specifier}")
    if wrong:
        yield Finding(
            what="packages", state="missing", found="; ".join(wrong), mend="run `make setup`"
        )
    else:
        yield Finding(what="packages", state="ok", found="all there, in the pinned versions")


def _models(settings: Settings) -> Iterator[Finding]:
    for name in manifest_names():
        manifest = load_manifest(name)
        there = is_available(name)
        yield Finding(
            what=f"model {name}",
            state="ok" if there else "missing",
            found=f"{manifest.version}, licence {manifest.licence}" if there else "not installed",
            mend="" if there else f"pip install {' '.join(manifest.distributions)}",
        )
    own = settings.models_dir
    yield Finding(
        what="own models",
        state="note" if own is None or own.is_dir() else "missing",
        found="none named" if own is None else str(own),
        mend="REELGRAPH_MODELS=DIR for CLIP, SigLIP, Whisper large" if own is None else "",
    )


def _gpu() -> Finding:
    there = Path("/dev/nvidia0").exists()
    return Finding(
        what="gpu",
        state="ok" if there else "note",
        found="an NVIDIA device" if there else "none",
        mend="" if there else "stages of pool gpu run on cpu, and the run says so",
    )


def _tensorrt() -> Finding:
    there = find_spec("tensorrt") is not None
    return Finding(
        what="tensorrt",
        state="ok" if there else "note",
        found=version("tensorrt") if there else "not installed",
        mend="" if there else "pip install 'reelgraph[tensorrt]' on a machine with a GPU",
    )


def _language_model(settings: Settings) -> Finding:
    there = settings.llm_base_url is not None
    return Finding(
        what="language model",
        state="ok" if there else "note",
        found=f"{settings.llm_model} at {settings.llm_base_url}" if there else "none named",
        mend=""
        if there
        else "REELGRAPH_LLM_BASE_URL and REELGRAPH_LLM_MODEL; rules answer until then",
    )
