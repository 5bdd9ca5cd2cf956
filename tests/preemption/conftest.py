"""Fixtures for tests of preemption."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from yunikorn.scheduling.preemption import candidate_store


@pytest.fixture(scope="module")
def kept_at_once() -> Iterator[None]:
    """Keep candidates from the first search of a cause on, however few there are."""
    with mock.patch.object(candidate_store, "WORTHWHILE", 0):
        yield
