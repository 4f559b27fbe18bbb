"""Helpers that the media tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engines.contracts.media import SampleDocument, SampleParams
from engines.media.probe import probe
from engines.media.sample import decode

Decode = Callable[..., tuple[SampleDocument, Path]]


@pytest.fixture
def decoded(tmp_path: Path) -> Decode:
    """Probe and decode a file into a fresh directory; the document and that directory."""
    count = 0

    def run(path: Path, **params: object) -> tuple[SampleDocument, Path]:
        nonlocal count
        count += 1
        out = tmp_path / f"out{count}"
        document = decode(path, probe(path), SampleParams.model_validate(params), out)
        return document, out

    return run
