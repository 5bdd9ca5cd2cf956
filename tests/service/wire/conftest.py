"""Fixtures of the wire tests: the descriptors of the published files."""

from __future__ import annotations

from pathlib import Path

import pytest

PUBLISHED = Path(__file__).parent / "published"


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of the declarations from which others generate their clients."""
    return PUBLISHED
