"""Markers of tests follow rules, and the list of slow tests names existing tests."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import costs, markers
from tests.costs import PROPERTY, Bill, Meter, function_of
from tests.distribution import SLOW_TESTS, TOGETHER, WholeFiles

CHECKOUT = Path(__file__).parent.parent
MARKERS = {"slow", "docs", "packages", "net", "kubernetes"}


def marked(request: pytest.FixtureRequest, name: str, *fixtures: str) -> set[str]:
    """Return the project's markers of a test with this name, beside this one."""
    parent = request.node.parent
    arguments = ", ".join(fixtures)
    made: dict[str, object] = {}
    exec(f"def test({arguments}): pass", made)
    item = pytest.Function.from_parent(parent, name=name, callobj=made["test"])
    markers.mark(item)
    return {marker.name for marker in item.iter_markers()} & MARKERS


def test_every_slow_test_exists() -> None:
    by_file: dict[str, set[str]] = defaultdict(set)
    for line in sorted(markers.SLOW):
        file, name = line.split("::")[:2]
        by_file[file].add(name)
    for file, names in by_file.items():
        tree = ast.parse((CHECKOUT / file).read_text("utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert names <= defined | assigned, f"{file}: remove or rename these in tests/slow.txt"


def test_a_slow_function_is_slow_with_every_parameter(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = request.node.parent.nodeid
    monkeypatch.setattr(markers, "SLOW", {f"{here}::test_long"})
    assert marked(request, "test_long") == {"slow"}
    assert marked(request, "test_long[a::b[0]]") == {"slow"}
    assert marked(request, "test_longer") == set()


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/a/test_b.py::test_c[x::y@z]", "tests/a/test_b.py"),
        ("tests/a/test_b.py::TestC::test_d", "tests/a/test_b.py"),
        ("tests/kubernetes/shim/test_b.py::test_c[x]", "tests/kubernetes/shim/test_b.py"),
        ("tests/kubernetes/scenarios/test_b.py::test_c[x]", TOGETHER),
        ("tests/kubernetes/test_cluster.py::test_c", TOGETHER),
    ],
)
def test_a_worker_runs_whole_files_and_all_tests_of_the_cluster(nodeid: str, unit: str) -> None:
    assert WholeFiles._split_scope(object.__new__(WholeFiles), nodeid) == unit


class Worker:
    """A worker of pytest-xdist that runs a test when it is told to."""

    shutting_down = False

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.waiting: list[int] = []
        self.ran: list[str] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        """Run these tests, too."""
        self.waiting += indices

    def shutdown(self) -> None:
        """End after the tests that wait."""
        self.shutting_down = True


def test_long_files_come_first_and_each_test_runs_once(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = max(SLOW_TESTS, key=lambda file: SLOW_TESTS[file])
    cluster = "tests/kubernetes/scenarios/test_b.py"
    files = {"tests/a/test_one.py": 1, "tests/a/test_many.py": 9, slow: 2, cluster: 3}
    tests = [f"{file}::test_{number}" for file, count in files.items() for number in range(count)]
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    scheduler = WholeFiles(pytestconfig)
    workers = [Worker("gw0"), Worker("gw1")]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    first = [tests[worker.waiting[0]].partition("::")[0] for worker in workers]
    assert first == [cluster, slow]
    while any(worker.waiting for worker in workers):
        for worker in workers:
            if worker.waiting:
                number = worker.waiting.pop(0)
                worker.ran.append(tests[number])
                scheduler.mark_test_complete(worker, number)
    assert scheduler.tests_finished
    assert sorted(workers[0].ran + workers[1].ran) == sorted(tests)
    assert all(worker.shutting_down for worker in workers)
    for file, count in files.items():
        together = [[name for name in worker.ran if name.startswith(file)] for worker in workers]
        assert sorted(map(len, together)) == [0, count]


@pytest.mark.parametrize(("rule", "marker"), [("DOCS", "docs"), ("NET", "net")])
def test_folders_determine_markers(
    rule: str, marker: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert marked(request, "test_a") == set()
    monkeypatch.setattr(markers, rule, (request.node.parent.nodeid,))
    assert marked(request, "test_a") == {marker}


def test_every_folder_of_a_rule_has_tests() -> None:
    for place in (*markers.DOCS, *markers.NET, *markers.CLUSTER_TESTS):
        path = CHECKOUT / place
        assert path.is_file() or any(path.glob("test_*.py")), place


def test_a_test_that_builds_a_package_is_marked(request: pytest.FixtureRequest) -> None:
    assert marked(request, "test_a", "can_build") == {"packages"}
    assert marked(request, "test_a", "install_packages") == {"packages"}


def test_a_test_of_the_cluster_is_marked_and_in_a_listed_file(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(pytest.UsageError, match="add its file to CLUSTER_TESTS"):
        marked(request, "test_a", "shared_cluster")
    monkeypatch.setattr(markers, "CLUSTER_TESTS", (request.node.parent.nodeid,))
    assert marked(request, "test_a", "shared_cluster") == {"kubernetes", "net", "slow"}


def test_slow_function_is_written_to_the_file(tmp_path: Path) -> None:
    bill = Bill(tmp_path / "slow.txt")
    for nodeid, own, shared in [
        ("a.py::test_all[0]", costs.LIMIT * 0.6, 0.0),
        ("a.py::test_all[1]", costs.LIMIT * 0.6, 0.0),
        ("a.py::test_quick", costs.LIMIT * 0.9, 0.0),
        ("a.py::test_with_a_fixture[0]", 0.0, costs.LIMIT),
    ]:
        for when in ("setup", "call", "teardown"):
            properties = [(PROPERTY, f"{own} {shared}")]
            bill.pytest_runtest_logreport(
                pytest.TestReport(
                    nodeid, ("a.py", 0, ""), {}, "passed", None, when, user_properties=properties
                )
            )
    bill.pytest_sessionfinish()
    written = (tmp_path / "slow.txt").read_text("utf-8").split()
    assert written == ["a.py::test_all", "a.py::test_with_a_fixture"]


def test_parameters_are_not_part_of_the_function_id() -> None:
    assert function_of("a.py::TestA::test_b[c::d[0]]") == "a.py::TestA::test_b"


def test_processor_time_is_measured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    item = pytest.Function.from_parent(request.node.parent, name="test_costs", callobj=lambda: None)
    meter = Meter()
    spent = iter((5.0, 7.5))
    monkeypatch.setattr(costs, "spent", lambda: next(spent))
    meter.pytest_runtest_setup()
    teardown = meter.pytest_runtest_teardown(item)
    next(teardown)
    with pytest.raises(StopIteration):
        teardown.send(None)
    assert item.user_properties == [(PROPERTY, "2.5 0.0")]


def test_child_processes_are_measured() -> None:
    before = os.times()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    after = os.times()
    assert costs.spent() >= sum(after[:4]) > after.user + after.system + sum(before[2:4])
