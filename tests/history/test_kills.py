"""Kills of a service under load, whose database fails at times: the history equals the account of the RM."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.history.killed_service import differences, disk_is_full, run, server_is_killed
from tests.history.postgresql_server import PostgresServer

KILLS = 5

pytestmark = pytest.mark.slow


def test_a_file_and_a_full_disk(tmp_path: Path) -> None:
    location = str(tmp_path / "history.db")
    account = run(location, tmp_path, KILLS, random.Random(1), disk_is_full)
    assert len(account.tasks) > 100 * KILLS
    assert differences(location, account) == []


def test_postgresql_that_is_killed_too(tmp_path: Path, postgresql_server: PostgresServer) -> None:
    location = postgresql_server.new_database()
    account = run(location, tmp_path, KILLS, random.Random(2), server_is_killed(postgresql_server))
    assert len(account.tasks) > 100 * KILLS
    assert differences(location, account) == []
