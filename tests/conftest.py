"""Fixtures for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_stack import Stack, running_stack

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def corpus_dir() -> Path:
    """The shared corpus beside the checkout; tests that use it skip where it is absent."""
    path = CHECKOUT.parent / "shared" / "corpus"
    if not (path / "manifest.csv").is_file():
        pytest.skip("no shared corpus beside the checkout")
    return path


@pytest.fixture(scope="session")
def skeletons_dir() -> Path:
    """The shared action data beside the checkout; tests that use it skip where it is absent."""
    path = CHECKOUT.parent / "shared" / "skeletons"
    if not path.is_dir():
        pytest.skip("no shared skeletons beside the checkout")
    return path


@pytest.fixture(scope="session")
def clips_dir() -> Path:
    """The clips that come with the repository."""
    return CHECKOUT / "tests" / "data" / "clips"


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The whole stack: Postgres, object store, Prefect server, worker, receiver."""
    with running_stack() as running:
        yield running
