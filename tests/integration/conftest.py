"""A real Postgres for the tests: one cluster, migrated once, cloned for each test."""

from collections.abc import Iterator

import pytest
from pg_cluster import READER_PASSWORD, Cluster, running_cluster
from psycopg import sql

from tasks.store import migrate


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running server."""
    with running_cluster() as running:
        yield running


@pytest.fixture(scope="session")
def template(cluster: Cluster) -> Iterator[str]:
    """Name of a migrated database that others are cloned from."""
    with cluster.database() as name:
        migrate.upgrade(cluster.url(name))
        cluster.execute(
            sql.SQL("alter role reel_reader login password {}").format(sql.Literal(READER_PASSWORD))
        )
        yield name
