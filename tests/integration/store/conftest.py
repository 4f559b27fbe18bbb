"""A real Postgres for the tests: one cluster, migrated once, cloned for each test."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pg_cluster import Cluster, running_cluster
from psycopg import sql
from sqlalchemy import Engine
from store_data import Pipeline

from tasks.store import migrate
from tasks.store.session import create_engine

READER_PASSWORD = "reader"


@dataclass(frozen=True)
class Database:
    """A migrated database of this test alone."""

    cluster: Cluster
    name: str

    @property
    def url(self) -> str:
        """As the owner."""
        return self.cluster.url(self.name)

    @property
    def reader_url(self) -> str:
        """As the reader."""
        return self.cluster.url(self.name, user="reel_reader", password=READER_PASSWORD)


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


@pytest.fixture
def database(cluster: Cluster, template: str) -> Iterator[Database]:
    """A migrated database."""
    with cluster.database(template=template) as name:
        yield Database(cluster, name)


@pytest.fixture(scope="module")
def published_database(cluster: Cluster, template: str) -> Iterator[Database]:
    """A database with one published asset, for tests that only read."""
    with cluster.database(template=template) as name:
        database = Database(cluster, name)
        engine = create_engine(database.url)
        Pipeline(engine).publish()
        engine.dispose()
        yield database


@pytest.fixture(scope="module")
def published(published_database: Database) -> Iterator[Engine]:
    """The owner's connections to it."""
    engine = create_engine(published_database.url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def reader(published_database: Database) -> Iterator[Engine]:
    """The reader's connections to it."""
    engine = create_engine(published_database.reader_url)
    yield engine
    engine.dispose()


@pytest.fixture
def db(database: Database) -> Iterator[Engine]:
    """The owner's pool of connections."""
    engine = create_engine(database.url)
    yield engine
    engine.dispose()


@pytest.fixture
def pipeline(db: Engine) -> Pipeline:
    """Something to publish."""
    return Pipeline(db)


@pytest.fixture
def empty_database(cluster: Cluster) -> Iterator[str]:
    """Address of a database that was never migrated."""
    with cluster.database() as name:
        yield cluster.url(name)
