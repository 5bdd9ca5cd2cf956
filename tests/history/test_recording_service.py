"""A service that records its history: options, a second writer, a locked database, the end of a service."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.history.killed_service import CONFIG
from tests.history.recorded_core import read_rows
from tests.service.process import Service, Shim
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.resources import Resource

pytestmark = pytest.mark.slow

Begin = Callable[[str], tuple[Service, Shim]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """A function that starts a service with one history for all, and a resource manager with a node."""
    (tmp_path / "queues.yaml").write_text(CONFIG)
    started: list[tuple[Service, Shim]] = []

    def start(app: str) -> tuple[Service, Shim]:
        history = ("--history", str(tmp_path / "history.db"))
        service = Service("--config", str(tmp_path / "queues.yaml"), "--grpc", "127.0.0.1:0", *history)
        shim = Shim(service.welcome.partition(" at ")[2].partition(",")[0])
        started.append((service, shim))
        shim.register()
        owner = UserGroupInformation("ann", ["all"])
        node = NewNodeInfo("n1", {}, Resource(vcore=10_000))
        ask = AllocationAsk(f"{app}-task", app, "", Resource(vcore=1000), 1)
        shim.send(UpdateRequest("rm", new_applications=[AddApplicationRequest(app, "root.a", "", owner, {})]))
        shim.send(UpdateRequest("rm", new_schedulable_nodes=[node], asks=[ask]))
        assert [one.allocation_key for one in shim.allocations(1)] == [f"{app}-task"]
        return service, shim

    yield start
    for service, shim in started:
        service.close()
        shim.close()


def test_a_second_writer_waits_until_the_first_one_is_killed(begin: Begin, tmp_path: Path) -> None:
    first, _ = begin("first")
    second, _ = begin("second")
    second.wait_for("another process writes it")
    first.signal(signal.SIGKILL)
    second.wait_for("the history is written again")
    second.signal(signal.SIGTERM)
    assert second.end() == 0
    found = read_rows(str(tmp_path / "history.db"), "applications")
    assert [(one["app_id"], one["ended"]) for one in found][-1] == ("second", None)
    runs = read_rows(str(tmp_path / "history.db"), "runs")
    assert all(one["ended"] >= one["started"] for one in runs)


def test_a_locked_database_delays_no_decision_and_loses_nothing(begin: Begin, tmp_path: Path) -> None:
    history = str(tmp_path / "history.db")
    service, shim = begin("first")
    with sqlite3.connect(history, isolation_level=None, timeout=60) as other:
        other.execute("BEGIN IMMEDIATE")
        shim.send(UpdateRequest("rm", asks=[AllocationAsk("late", "first", "", Resource(vcore=1000), 1)]))
        # Decided while the database is locked.
        assert [one.allocation_key for one in shim.allocations(1)] == ["late"]
        other.execute("ROLLBACK")
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    assert [one["key"] for one in read_rows(history, "allocations")] == ["first-task", "late"]
    assert read_rows(history, "gaps") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--history-keep", "3d"], "needs --history"),
        (["--history", "mysql://db/x"], "mysql"),
        (["--history", "/nowhere/at/all/history.db"], "no such folder"),
    ],
)
def test_options_that_cannot_be_used(arguments: list[str], message: str) -> None:
    service = Service("--demo", "--grpc", "127.0.0.1:0", *arguments)
    try:
        assert service.end() == 2
        assert message in "".join(service.log)
    finally:
        service.close()
