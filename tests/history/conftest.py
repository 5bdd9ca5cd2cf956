"""Databases for tests of histories: a SQLite file, and a database of a real PostgreSQL server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.history.postgresql_server import PostgresServer, program
from tests.history.reports_kit import ReportRun
from tests.history.small_history import SmallHistory, make_history
from yunikorn_commands.command_group import main

VARIABLE = "YUNIKORN_TEST_POSTGRES"
"""Environment variable: `required` fails where there is no server, `off` skips."""


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresServer]:
    """A running server for all tests of a process; the test is skipped where none is installed."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "required", "off"):
        pytest.fail(f"{VARIABLE} is {wanted!r}, but must be required, off or empty")
    if wanted == "off":
        pytest.skip(f"{VARIABLE} is off")
    if program("initdb") is None:
        why = "PostgreSQL is not installed (Debian: apt install postgresql)"
        pytest.fail(why, pytrace=False) if wanted == "required" else pytest.skip(why)
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def postgresql(postgresql_server: PostgresServer) -> str:
    """The location of an empty database in PostgreSQL."""
    return postgresql_server.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of a history to be made, in each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "history.db")
    return str(request.getfixturevalue("postgresql"))


@pytest.fixture(scope="session")
def history() -> SmallHistory:
    """A small made history, whose rows are known."""
    return make_history()


@pytest.fixture(scope="session")
def history_file(history: SmallHistory, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The location of the small made history, which tests do not change."""
    file = str(tmp_path_factory.mktemp("history") / "history.db")
    history.write(file)
    return file


@pytest.fixture
def report(history_file: str, capsys: pytest.CaptureFixture[str]) -> ReportRun:
    """Return a function that makes a report of the small history and returns its JSON."""

    def run(kind: str, *options: str, history: str = history_file) -> dict[str, Any]:
        source = ["--history", history] if history else []
        assert main(["report", kind, *source, "--format", "json", *options]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return run
