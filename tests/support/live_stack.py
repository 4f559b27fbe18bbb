"""The whole stack for tests: started by the command line in a directory of its own, and stopped."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minio import Minio

from tasks.settings import Settings

REELGRAPH = str(Path(sys.executable).with_name("reelgraph"))


class Stack:
    """A running stack, driven as a user would."""

    def __init__(self, home: Path) -> None:
        self.home = home
        # The stack of the person who runs the tests must not answer for ours.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("REELGRAPH_", "PREFECT_"))
        }
        self.env = {**inherited, "REELGRAPH_HOME": str(home)}

    def call(
        self, *arguments: str, env: dict[str, str] | None = None, timeout_s: float = 280
    ) -> subprocess.CompletedProcess[str]:
        """The command line, to its end."""
        return subprocess.run(
            [REELGRAPH, *arguments],
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def run(self, *arguments: str) -> dict[str, Any]:
        """``reelgraph run --json`` of one source."""
        done = self.call("run", "--json", *arguments)
        assert done.stdout, done.stderr
        (outcome,) = json.loads(done.stdout)
        return outcome

    def sql(self, query: str) -> list[dict[str, Any]]:
        """``reelgraph sql --json``."""
        done = self.call("sql", "--json", query)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @property
    def settings(self) -> Settings:
        """Addresses and secrets of the services."""
        return Settings(home=self.home)

    def minio(self) -> Minio:
        """A plain client, as any other program would make it."""
        found = self.settings
        assert found.s3_endpoint
        assert found.s3_access_key
        assert found.s3_secret_key
        return Minio(
            found.s3_endpoint.removeprefix("http://"),
            access_key=found.s3_access_key.get_secret_value(),
            secret_key=found.s3_secret_key.get_secret_value(),
            secure=False,
        )


@contextmanager
def running_stack() -> Iterator[Stack]:
    """Up, and down again with its data removed."""
    home = Path(tempfile.mkdtemp(prefix="reelgraph-test-"))
    # As root, Postgres runs as another user, who must be able to pass through here.
    home.chmod(0o755)
    stack = Stack(home)
    try:
        done = stack.call("up", "--json")
        assert done.returncode == 0, done.stderr
        yield stack
    finally:
        stack.call("down")
        shutil.rmtree(home, ignore_errors=True)


def wait_for(
    what: str, found: Callable[[], Any], *, timeout_s: float = 120, every_s: float = 0.5
) -> Any:
    """The first true answer of ``found``; fails with ``what`` when none comes."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if answer := found():
            return answer
        time.sleep(every_s)
    msg = f"{what} did not come in {timeout_s} s"
    raise AssertionError(msg)
