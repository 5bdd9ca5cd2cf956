"""`yunikorn plugins`: the list as a table and as JSON, and broken plugins."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn import __version__

Run = Callable[..., subprocess.CompletedProcess[str]]

BROKEN_MODULE = "import numpi_missing\n"
ODD_MODULE = '''
import attrs
from yunikorn.api import NodeSortPolicy, hookimpl

@attrs.frozen
class Coldest(NodeSortPolicy):
    """The node with the coolest air first."""
    name = "coldest"
    attribute: str
    weights: dict[str, float] = attrs.Factory(dict)
    def score(self, node):
        return float(node.attributes.get(self.attribute, "inf"))

@hookimpl
def yunikorn_node_sort_policies():
    return [Coldest]
'''


def install(folder: Path, name: str, version: str, source: str) -> None:
    """Write a module and its distribution's metadata into `folder`, as an installer would."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(source, "utf-8")
    metadata = folder / f"{module}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    (metadata / "entry_points.txt").write_text(f"[yunikorn]\n{name} = {module}\n", "utf-8")


@pytest.fixture
def run(run_python: Run) -> Run:
    """Run `yunikorn ARGUMENTS` in a process of its own."""
    return functools.partial(run_python, "-m", "yunikorn")


@pytest.fixture
def extra(tmp_path: Path) -> Path:
    """A folder with one sound and one broken third-party distribution."""
    install(tmp_path, "coldest-nodes", "2.1", ODD_MODULE)
    install(tmp_path, "broken-import", "1.0", BROKEN_MODULE)
    return tmp_path


def test_lists_all_kinds_one_line_each_when_piped(run: Run) -> None:
    done = run("plugins")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].split() == ["KIND", "NAME", "FROM", "OPTIONS", "DESCRIPTION", "CLASS", "FILE"]
    ours = [line for line in lines[1:] if f" yunikorn {__version__} " in line]
    assert [line.split()[:2] for line in ours] == [
        ["app-sort", "fifo"],
        ["app-sort", "fair"],
        ["app-sort", "stateaware"],
        ["app-sort", "multifactor"],
        ["queue-sort", "fair"],
        ["node-sort", "fair"],
        ["node-sort", "binpacking"],
        ["node-sort", "pod-preferences"],
        ["node-sort", "weighted"],
        ["placement", "provided"],
        ["placement", "user"],
        ["placement", "fixed"],
        ["placement", "tag"],
        ["predicate", "node-selector"],
        ["predicate", "taints"],
        ["predicate", "spread"],
        ["predicate", "anti-affinity"],
        ["predicate", "licences"],
        ["predicate", "rm"],
        ["predicate", "node-unschedulable"],
        ["predicate", "taint-toleration"],
        ["predicate", "node-name"],
        ["predicate", "dynamic-resources"],
        ["predicate", "node-affinity"],
        ["predicate", "node-ports"],
        ["predicate", "volume-restrictions"],
        ["predicate", "node-volume-limits"],
        ["predicate", "volume-binding"],
        ["predicate", "volume-zone"],
        ["predicate", "pod-topology-spread"],
        ["predicate", "inter-pod-affinity"],
        ["event-sink", "log"],
        ["event-sink", "jsonl"],
        ["event-sink", "rm"],
        ["user-groups", "os"],
        ["user-groups", "ldap"],
        ["preemption", "standard"],
        ["submit", "default-tags"],
        ["admission", "admission-window"],
        ["quota", "time-of-day"],
        ["quota", "borrowing"],
        ["reservation", "standard"],
        ["reservation", "easy"],
        ["reservation", "conservative"],
        ["permit", "together"],
        ["topology", "attributes"],
        ["gang-placement", "best-fit"],
        ["gang-placement", "least-free"],
        ["gang-placement", "balanced"],
        ["run-time", "request"],
        ["run-time", "learned"],
        ["run-time", "file"],
        ["run-time", "history"],
        ["door", "grpc"],
        ["door", "rest"],
        ["door", "record"],
        ["door", "history"],
        ["workload-reader", "Job"],
        ["workload-reader", "JobSet"],
        ["workload-reader", "LeaderWorkerSet"],
        ["workload-reader", "RayCluster"],
        ["workload-reader", "PyTorchJob"],
        ["workload-reader", "TFJob"],
        ["workload-reader", "XGBoostJob"],
        ["workload-reader", "PaddleJob"],
        ["workload-reader", "JAXJob"],
        ["workload-reader", "MPIJob"],
    ]
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("columns", [80, 140])
def test_list_fits_the_terminal_width(columns: int, extra: Path, run: Run) -> None:
    done = run("plugins", "--kind", "node-sort", installed=extra, COLUMNS=str(columns))
    table = done.stdout.partition("\nBroken")[0].splitlines()
    assert max(len(line) for line in table) <= columns
    assert "coldest-nodes 2.1" in done.stdout
    assert "attribute: str (required)" in done.stdout
    assert "weights: dict[str, float] = {}" in done.stdout
    assert "The node with the coolest air first." in " ".join(done.stdout.split())


def test_broken_plugins_are_listed_and_exit_with_1(extra: Path, run: Run) -> None:
    done = run("plugins", "--kind", "node-sort", installed=extra)
    assert done.returncode == 1
    names = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("node-sort ")]
    # A developer who has other plugins installed sees more.
    assert names[:2] == ["fair", "binpacking"]
    assert "coldest" in names
    assert done.stdout.splitlines()[-2:] == [
        "Broken, not loaded:",
        "  plugin broken-import (broken-import 1.0): importing: ModuleNotFoundError: "
        "No module named 'numpi_missing'",
    ]


def test_json(extra: Path, run: Run) -> None:
    done = run("plugins", "--json", installed=extra)
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert data["broken"] == [
        {
            "plugin": "broken-import",
            "distribution": "broken-import",
            "version": "1.0",
            "reason": "importing: ModuleNotFoundError: No module named 'numpi_missing'",
        }
    ]
    assert next(plugin for plugin in data["plugins"] if plugin["name"] == "coldest") == {
        "kind": "node-sort",
        "name": "coldest",
        "plugin": "coldest-nodes",
        "distribution": "coldest-nodes",
        "version": "2.1",
        "class": "coldest_nodes.Coldest",
        "file": str(extra / "coldest_nodes.py"),
        "description": "The node with the coolest air first.",
        "options": [
            {"name": "attribute", "type": "str", "required": True},
            {"name": "weights", "type": "dict[str, float]", "required": False, "default": {}},
        ],
    }


def test_json_of_one_kind(run: Run) -> None:
    data = json.loads(run("plugins", "--json", "--kind", "user-groups").stdout)
    assert [(plugin["kind"], plugin["name"]) for plugin in data["plugins"]] == [
        ("user-groups", "os"),
        ("user-groups", "ldap"),
    ]
    assert data["broken"] == []


def test_unknown_kind_is_a_usage_error(run: Run) -> None:
    done = run("plugins", "--kind", "nodes")
    assert done.returncode == 2
    assert "'nodes' is not one of 'app-sort', 'queue-sort', 'node-sort'" in done.stderr


def test_list_is_deterministic(extra: Path, run: Run) -> None:
    assert run("plugins", installed=extra).stdout == run("plugins", installed=extra).stdout


USES = """
partitions:
  - name: default
    nodesortpolicy: {type: weighted, scores: [{name: binpacking, weight: 3}, {name: fair}]}
    nodesortpolicies: [{name: packed, type: binpacking}]
    predicates: [taints, {name: node-selector}]
    placementrules: [{name: Tag, value: x, create: true, parent: {name: user, create: true}}]
    usergroupresolver: {type: os}
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a, properties: {application.sort.policy: fair}}, {name: b, queues: [{name: c}]}]
events: {sinks: [log]}
plugins: {disable: [rm, "app-sort:stateaware"]}
"""


@pytest.fixture
def uses(tmp_path: Path) -> Path:
    path = tmp_path / "queues.yaml"
    path.write_text(USES, "utf-8")
    return path


def test_plugins_of_a_configuration_with_their_places(uses: Path, run: Run) -> None:
    done = run("plugins", "--config", str(uses), "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert {(one["kind"], one["name"]): one["used"] for one in data["plugins"]} == {
        ("app-sort", "fifo"): ["root.b.c: application.sort.policy"],
        ("app-sort", "fair"): ["root.a: application.sort.policy"],
        ("queue-sort", "fair"): ["root: queue.sort.policy", "root.b: queue.sort.policy"],
        ("node-sort", "fair"): ["partitions[0].nodesortpolicy.scores[1]"],
        ("node-sort", "binpacking"): [
            "partitions[0].nodesortpolicy.scores[0]",
            "partitions[0].nodesortpolicies[packed]",
        ],
        ("node-sort", "weighted"): ["partitions[0].nodesortpolicy"],
        ("placement", "user"): ["partitions[0].placementrules[0].parent"],
        ("placement", "tag"): ["partitions[0].placementrules[0]"],
        ("predicate", "node-selector"): ["partitions[0].predicates[1]"],
        ("predicate", "taints"): ["partitions[0].predicates[0]"],
        ("event-sink", "log"): ["events.sinks[0]"],
        ("user-groups", "os"): ["partitions[0].usergroupresolver"],
        ("preemption", "standard"): ["partitions[0].preemption.policy"],
        ("reservation", "standard"): ["partitions[0].reservations"],
        ("gang-placement", "best-fit"): ["partitions[0].gangplacement"],
    }
    assert {name: [one["kind"] for one in gone] for name, gone in data["disabled"].items()} == {
        "rm": ["predicate", "event-sink"],
        "app-sort:stateaware": ["app-sort"],
    }


def test_table_of_a_configuration_has_uses_and_disabled_plugins(uses: Path, run: Run) -> None:
    done = run("plugins", "--config", str(uses), "--kind", "predicate")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:5] == ["KIND", "NAME", "FROM", "USED", "AT"]
    assert "partitions[0].predicates[0]" in next(line for line in lines if " taints " in line)
    assert lines[3:5] == ["", "Disabled:"]
    assert lines[5].startswith("  rm: predicate rm of yunikorn_plugins.rm (yunikorn ")
    narrow = run("plugins", "--config", str(uses), "--kind", "predicate", COLUMNS="80").stdout
    assert "used at partitions[0].predicates[0]" in narrow
    assert "yunikorn_plugins.predicates.Taints" in narrow


def test_invalid_configuration_is_reported_with_its_place(uses: Path, run: Run) -> None:
    uses.write_text(USES.replace("type: os", "type: oss"), "utf-8")
    done = run("plugins", "--config", str(uses))
    assert done.returncode == 2
    assert "partitions[0].usergroupresolver.type (line 8, column 31)" in done.stderr
    assert run("plugins", "--config", str(uses), "--faults", str(uses)).returncode == 2


def test_plugins_that_a_configuration_loads_are_listed(uses: Path, run: Run) -> None:
    (uses.parent / "mine.py").write_text(ODD_MODULE, "utf-8")
    text = USES.replace("plugins: {", "plugins: {load: [./mine.py], ").replace("{name: fair}]", "LATER]")
    uses.write_text(text.replace("LATER", "{name: coldest, attribute: inlet, range: [0, 50]}"), "utf-8")
    done = run("plugins", "--config", str(uses), "--kind", "node-sort", "--json")
    (coldest,) = (one for one in json.loads(done.stdout)["plugins"] if one["name"] == "coldest")
    assert coldest["used"] == ["partitions[0].nodesortpolicy.scores[1]"]
    assert Path(coldest["file"]).name == "mine.py"
