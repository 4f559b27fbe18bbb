"""The whole embedded stack, once, in a directory of its own; and a Postgres for the inbox alone."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pg_cluster import Cluster, running_cluster
from sqlalchemy import Engine

from deploy.local import StackStatus, down, up
from tasks.settings import Settings
from tasks.store import migrate
from tasks.store.session import create_engine

NAMED_SERVERS = (
    "REELGRAPH_DATABASE_URL",
    "REELGRAPH_S3_ENDPOINT",
    "REELGRAPH_S3_ACCESS_KEY",
    "REELGRAPH_S3_SECRET_KEY",
    "REELGRAPH_LLM_BASE_URL",
    "PREFECT_API_URL",
)


@pytest.fixture(scope="session")
def no_named_servers() -> Iterator[None]:
    """Whatever the caller's environment names, these tests start servers of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMED_SERVERS:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def stack_home(no_named_servers: None) -> Iterator[Path]:
    """Directly below the temporary directory: pytest's own is closed to other users."""
    home = Path(tempfile.mkdtemp(prefix="reelgraph-test-"))
    yield home
    down(Settings(home=home), lambda _line: None)
    shutil.rmtree(home)


@pytest.fixture(scope="session")
def stack(stack_home: Path) -> StackStatus:
    """The stack, up and healthy."""
    return up(Settings(home=stack_home), lambda _line: None)


@pytest.fixture(scope="session")
def inbox_cluster() -> Iterator[tuple[Cluster, str]]:
    """A server, and the name of a migrated database to clone."""
    with running_cluster() as cluster, cluster.database() as template:
        migrate.upgrade(cluster.url(template))
        yield cluster, template


@pytest.fixture
def inbox_db(inbox_cluster: tuple[Cluster, str]) -> Iterator[Engine]:
    """An empty, migrated database of this test alone."""
    cluster, template = inbox_cluster
    with cluster.database(template=template) as name:
        engine = create_engine(cluster.url(name))
        yield engine
        engine.dispose()
