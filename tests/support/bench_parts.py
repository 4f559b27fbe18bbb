"""Parts of a benchmark that go well or wrong, for child processes to run."""

import os
import time
from pathlib import Path

from flows.bench import BenchRow


def leaves_a_note(_cache_dir: Path, folder: Path) -> list[BenchRow]:
    (folder / "note").write_text("from the first part")
    return []


def reads_the_note(_cache_dir: Path, folder: Path) -> list[BenchRow]:
    said = (folder / "note").read_text()
    return [BenchRow(name="reads", figures={"said": said}, must=None, holds=None)]


def looks_for_what_is_not_there(_cache_dir: Path, _folder: Path) -> list[BenchRow]:
    return [{}["rows"]]


def dies(_cache_dir: Path, _folder: Path) -> list[BenchRow]:
    os._exit(3)


def hangs(_cache_dir: Path, _folder: Path) -> list[BenchRow]:
    time.sleep(600)
    return []
