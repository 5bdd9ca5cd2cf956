"""The example third-party package works once it is installed: listed, typed, named in YAML."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "yunikorn-shortest-first"


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(install_packages: Callable[..., Path]) -> Path:
    """A folder into which pip installed the example."""
    return install_packages(EXAMPLE)


def test_plugin_is_listed_with_its_distribution_and_option(installed: Path, run_python: Run) -> None:
    done = run_python("-m", "yunikorn", "plugins", "--json", "--kind", "app-sort", installed=installed)
    plugins = {plugin["name"]: plugin for plugin in json.loads(done.stdout)["plugins"]}
    assert plugins["shortest-first"] == {
        "kind": "app-sort",
        "name": "shortest-first",
        "plugin": "shortest-first",
        "distribution": "yunikorn-shortest-first",
        "version": "1.0",
        "description": "Sorts applications by their pending amount of one resource, smallest first.",
        "class": "yunikorn_shortest_first.ShortestFirst",
        "file": str(installed / "yunikorn_shortest_first" / "__init__.py"),
        "options": [{"name": "resource", "type": "str", "required": False, "default": "memory"}],
    }


def test_test_of_the_package_passes(installed: Path, run_python: Run) -> None:
    test = EXAMPLE / "test_shortest_first.py"
    plugins = ["-p", "no:cacheprovider", "-p", "yunikorn_pytest"]
    settings = ["-c", str(EXAMPLE / "pyproject.toml"), *plugins, "-q"]
    done = run_python("-m", "pytest", *settings, str(test), installed=installed)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_package_is_typed(installed: Path) -> None:
    assert (installed / "yunikorn_shortest_first" / "py.typed").is_file()


QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch
            properties:
              application.sort.policy: POLICY
"""
WORKLOAD = """
nodes:
  - name: node
    resources: {vcore: 2, memory: 4G}
applications:
  - {id: large, user: ann, queue: root.batch, tasks: [{count: 3, resources: {vcore: 2}, runtime: 9}]}
  - {id: small, user: bob, queue: root.batch, tasks: [{count: 1, resources: {vcore: 2}, runtime: 9}]}
"""


def order_under(policy: str, installed: Path, folder: Path, run: Run) -> list[str]:
    """Return the applications in the order of their allocations."""
    (folder / "queues.yaml").write_text(QUEUES.replace("POLICY", policy), "utf-8")
    (folder / "workload.yaml").write_text(WORKLOAD, "utf-8")
    command = ["simulate", "--config", "queues.yaml", "--workload", "workload.yaml", "--out", "out"]
    done = run("-m", "yunikorn", *command, "--no-plots", installed=installed, cwd=folder)
    assert done.returncode == 0, done.stderr
    decisions = map(json.loads, (folder / "out" / "decisions.jsonl").read_text("utf-8").splitlines())
    return [decision["application"] for decision in decisions if decision.get("event") == "allocation"]


def test_policy_named_in_yaml_decides(installed: Path, tmp_path: Path, run_python: Run) -> None:
    assert order_under("fifo", installed, tmp_path, run_python) == ["large", "large", "large", "small"]
    by_vcore = "shortest-first\n              application.sort.policy.resource: vcore"
    assert order_under(by_vcore, installed, tmp_path, run_python) == ["small", *["large"] * 3]


def test_misspelt_policy_is_suggested(installed: Path, tmp_path: Path, run_python: Run) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(QUEUES.replace("POLICY", "shortest_first"), "utf-8")
    done = run_python("-m", "yunikorn", "validate", str(file), installed=installed)
    assert done.returncode == 1
    assert "did you mean 'shortest-first'?" in done.stdout + done.stderr
