"""Fixtures of the commands for a running scheduler."""

from __future__ import annotations

import pytest

from tests.rest.commands.operator_kit import answered, small_cluster, through
from tests.rest.kit import Rest


@pytest.fixture
def rest() -> Rest:
    """A cluster of three nodes with two applications, one of which waits for a part."""
    return small_cluster()


@pytest.fixture
def asked(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the commands ask the cluster; the list of requests."""
    return answered(monkeypatch, through(rest))
