"""Fixtures of the commands for a running scheduler."""

from __future__ import annotations

import pytest

from tests.cli.operator_kit import Run, answered, small_cluster, through
from tests.rest.kit import Rest
from yunikorn.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line, and returns the status and both outputs."""
    for name in ("YUNIKORN_SERVER", "YUNIKORN_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def rest() -> Rest:
    """A cluster of three nodes with two applications, one of which waits for a part."""
    return small_cluster()


@pytest.fixture
def asked(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the commands ask the cluster; the list of requests."""
    return answered(monkeypatch, through(rest))
