"""Fixtures of the reasoning tests."""

import pytest
from reason_facts import Made


@pytest.fixture
def made() -> Made:
    """Builds stage documents of a small made video."""
    return Made()
