"""Two replicas with one history in PostgreSQL: the leader writes, and the next one continues its rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.postgresql_server import PostgresServer, program
from tests.history.recorded_core import read_rows
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.objects import deployment, node, pod
from tests.kubernetes.scenarios.test_leaders import standby
from tests.kubernetes.scheduling import scheduling
from yunikorn_history.database import HistoryError

TRIES = 600
"""Number of looks into the database, a tenth of a second apart, until it has what is expected."""


@pytest.fixture
def location() -> Iterator[str]:
    """A database in a server for this test."""
    if program("initdb") is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")
    server = PostgresServer()
    try:
        server.start()
        yield server.new_database()
    finally:
        server.close()


def wait_for(location: str, placed: int) -> None:
    """Wait until the history has so many allocations."""
    for _ in range(TRIES):
        try:
            if len(read_rows(location, "allocations")) >= placed:
                return
        except HistoryError:
            pass  # not there yet
        threading.Event().wait(0.1)
    raise AssertionError(f"there are no {placed} rows: {read_rows(location, 'allocations')}")


def test_only_the_leader_writes_and_the_next_one_continues(
    cluster: Cluster, tmp_path: Path, location: str
) -> None:
    given = "--history", location
    with scheduling(cluster, tmp_path, *given, leader_election=True) as first:
        first.make_nodes(node("only", cpu="6"))
        first.create(deployment("web", replicas=2))
        first.create(pod("ends"))
        first.running(3)
        wait_for(location, 3)
        with standby(cluster, tmp_path, *given) as second:
            # Waiting, the standby has neither the lock nor a run of its own.
            (run,) = read_rows(location, "runs")
            first.scheduler.kill()
            # There is no leader now.
            cluster.kubectl.delete("Pod", "ends")
            second.create(pod("next"))
            second.running(3)
            wait_for(location, 4)
            assert second.scheduler.stop() == 0
        runs = read_rows(location, "runs")
        assert [one["id"] for one in runs] == [run["id"], run["id"] + 1]
        # The gap is the real one: nothing was observed, and nothing is lost.
        assert runs[0]["started"] <= runs[0]["seen"] == runs[0]["ended"] <= runs[1]["started"]
        assert read_rows(location, "gaps") == []
        tasks = read_rows(location, "allocations")
        assert len({one["key"] for one in tasks}) == len(tasks) == 4
        apps = read_rows(location, "applications")
        assert len({one["app_id"] for one in apps}) == len(apps)
        assert sum(one["tasks"] for one in apps) == 4
        # That of the pod that ended meanwhile is estimated, once the recovery is over.
        running = [one["ended"] is None for one in tasks]
        assert running.count(True) >= 3
        assert running[-1]
