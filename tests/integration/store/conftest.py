"""Databases with something published in them, for the owner and for the reader."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pg_cluster import READER_PASSWORD, Cluster
from sqlalchemy import Engine
from store_data import Pipeline

from tasks.store.session import create_engine


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
