"""A real service with a history: configurations, nodes, series and operators are in the database."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.history.recorded_core import read_rows
from tests.rest.served.test_rest import address_of
from tests.rest.served.test_steering_served import FREE, NODE, ask
from tests.service.kit import PATIENCE
from tests.service.process import Service
from yunikorn.errors import YunikornError
from yunikorn_rest.operator_credentials import hash_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.fixture
def services() -> Iterator[list[Service]]:
    """Return a list of services that are ended after the test."""
    started: list[Service] = []
    yield started
    for service in started:
        service.close()


def rows_when(place: Path, table: str, is_enough: Callable[[list[dict[str, Any]]], bool]) -> list[Any]:
    """Return the rows of a table, once there are enough."""
    for _ in range(int(PATIENCE * 10)):
        try:
            rows = read_rows(str(place), table)
            if is_enough(rows):
                return rows
        except YunikornError:
            pass
        threading.Event().wait(0.1)
    raise AssertionError(f"{table} has too few rows")


def test_the_demo_leaves_its_configuration_nodes_use_and_operators(
    services: list[Service], tmp_path: Path
) -> None:
    credentials, place = tmp_path / "credentials.yaml", tmp_path / "history.db"
    credentials.write_text(f"- {{name: anna, role: admin, token: '{hash_of('anna')}'}}\n")
    options = ("--rest-credentials", str(credentials), "--history", str(place))
    service = Service("--demo", "--grpc", "off", "--rest", FREE, *options)
    services.append(service)
    address = address_of(service)
    service.wait_for("runs on node-1")
    [first] = rows_when(place, "configs", bool)
    assert (first["rm"], first["group"], first["source"], first["by"]) == ("", "demo", "file", "")
    assert ask(f"{address}/{NODE}/drain", "anna")[0] == 200
    assert ask(f"{address}/{NODE}/drain", "wrong")[0] == 401
    text = first["text"] + "\n# changed\n"
    assert ask(f"{address}/ws/v1/config?policyGroup=demo", "anna", "PUT", body=text.encode())[0] == 200
    second = rows_when(place, "configs", lambda rows: len(rows) == 2)[1]
    assert (second["text"], second["source"], second["by"]) == (text, "REST", "anna")
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    audit = read_rows(str(place), "audit")
    done = [(one["operator"], one["what"], one["outcome"]) for one in audit]
    assert done[0] == ("anna", "drain node", "done")
    assert [one["outcome"] for one in audit] == ["done", "refused", "done"]
    assert audit[0]["target"]["node"] == "node-1"
    nodes = {one["name"]: one for one in read_rows(str(place), "nodes")}
    assert [change[1:] for change in nodes["node-1"]["changes"]] == [["drain", "node drained by an operator"]]
    series = read_rows(str(place), "series")
    assert {one["kind"] for one in series} >= {1, 2, 4}
    usage = read_rows(str(place), "usage")
    assert all(one["data"]["service"] for one in usage if one["data"].get("started"))
    assert sum(one["data"].get("started", 0) for one in usage if one["level"] == 3) > 0
