"""What every migration must say and be."""

from pathlib import Path

import pytest

VERSIONS = Path(__file__).resolve().parents[3] / "migrations" / "versions"
REVISIONS = sorted(path for path in VERSIONS.glob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("path", REVISIONS, ids=lambda path: path.stem)
def test_the_header_says_why_it_is_safe_beside_the_code_before(path: Path) -> None:
    header = " ".join(path.read_text().split('"""')[1].split())
    assert "Safe while the previous version of the code is running, because " in header
    assert "(say why)" not in header


@pytest.mark.parametrize("path", REVISIONS, ids=lambda path: path.stem)
def test_a_revision_is_frozen(path: Path) -> None:
    """It imports no code of ours that may change after it was applied somewhere."""
    body = path.read_text()
    assert "from tasks" not in body
    assert "from engines" not in body
