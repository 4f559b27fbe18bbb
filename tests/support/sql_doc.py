"""The queries of docs/sql.md and their answers; run as a program it renews the answers.

PYTHONPATH=tests/support python -m sql_doc       (on a running stack that has the demo clip)
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "sql.md"
BLOCK = re.compile(r"```sql\n(?P<query>.*?)\n```\n\n```text\n(?P<answer>.*?)```", re.DOTALL)


class Example(NamedTuple):
    """One query with its printed answer."""

    query: str
    answer: str

    @property
    def columns(self) -> list[str]:
        """Names in the first line of the answer."""
        return self.answer.splitlines()[0].split()

    @property
    def num_rows(self) -> int:
        """Rows in the answer: all lines but the two of the head and the count."""
        return len(self.answer.splitlines()) - 3


def examples() -> Iterator[Example]:
    """Every query of the document."""
    for found in BLOCK.finditer(DOCUMENT.read_text()):
        yield Example(found["query"], found["answer"])


def _renewed(found: re.Match[str]) -> str:
    command = [str(Path(sys.executable).with_name("reelgraph")), "sql", found["query"]]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return f"```sql\n{found['query']}\n```\n\n```text\n{answer}```"


if __name__ == "__main__":
    DOCUMENT.write_text(BLOCK.sub(_renewed, DOCUMENT.read_text()))
    sys.stdout.write(json.dumps({"queries": sum(1 for _ in examples())}) + "\n")
