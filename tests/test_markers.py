"""Markers of tests follow rules, and the list of slow tests names existing tests."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests import costs, markers
from tests.costs import PROPERTY, Bill, Meter, function_of
from tests.distribution import WholeFiles

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
        ("tests/kubernetes/shim/test_b.py::test_c[x]", "tests/kubernetes/"),
    ],
)
def test_a_worker_runs_whole_files_and_all_tests_of_the_shim(nodeid: str, unit: str) -> None:
    assert WholeFiles._split_scope(object.__new__(WholeFiles), nodeid) == unit


@pytest.mark.parametrize(("rule", "marker"), [("DOCS", "docs"), ("NET", "net")])
def test_folders_determine_markers(
    rule: str, marker: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert marked(request, "test_a") == set()
    monkeypatch.setattr(markers, rule, (request.node.parent.nodeid,))
    assert marked(request, "test_a") == {marker}


def test_every_folder_of_a_rule_has_tests() -> None:
    for place in (*markers.DOCS, *markers.NET):
        path = CHECKOUT / place
        assert path.is_file() or any(path.glob("test_*.py")), place


def test_a_test_that_builds_a_package_is_marked(request: pytest.FixtureRequest) -> None:
    assert marked(request, "test_a", "can_build") == {"packages"}
    assert marked(request, "test_a", "install_packages") == {"packages"}


def test_a_test_of_the_cluster_is_marked(request: pytest.FixtureRequest) -> None:
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
