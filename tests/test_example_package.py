"""The example third-party package works once it is installed: listed, typed, named in YAML."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "yunikorn-shortest-first"


def can_build() -> bool:
    """Whether packages can be built here without fetching anything."""
    try:
        version = importlib.metadata.version("setuptools").split(".")
    except importlib.metadata.PackageNotFoundError:
        return False
    return importlib.util.find_spec("pip") is not None and (int(version[0]), int(version[1])) >= (70, 1)


def run(*arguments: str, installed: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python with `arguments`, where the packages in the folder `installed` are installed too."""
    path = os.pathsep.join([str(installed), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the example."""
    if not can_build():
        pytest.skip("needs pip and setuptools 70.1 or newer: pip install '.[test]'")
    source = tmp_path_factory.mktemp("source") / "example"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    target = tmp_path_factory.mktemp("installed")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    pip = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def test_is_listed_with_its_distribution_and_option(installed: Path) -> None:
    done = run("-m", "yunikorn", "plugins", "--json", "--kind", "app-sort", installed=installed)
    plugins = {plugin["name"]: plugin for plugin in json.loads(done.stdout)["plugins"]}
    assert plugins["shortest-first"] == {
        "kind": "app-sort",
        "name": "shortest-first",
        "plugin": "shortest-first",
        "distribution": "yunikorn-shortest-first",
        "version": "1.0",
        "description": "The application that waits for the least of one resource goes first.",
        "options": [{"name": "resource", "type": "str", "required": False, "default": "memory"}],
    }


def test_its_own_test_passes(installed: Path) -> None:
    test = EXAMPLE / "test_shortest_first.py"
    settings = ["-c", str(EXAMPLE / "pyproject.toml"), "-p", "no:cacheprovider", "-q"]
    done = run("-m", "pytest", *settings, str(test), installed=installed)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_it_is_typed(installed: Path) -> None:
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


def order_under(policy: str, installed: Path, folder: Path) -> list[str]:
    """The applications in the order in which they got their allocations."""
    (folder / "queues.yaml").write_text(QUEUES.replace("POLICY", policy), "utf-8")
    (folder / "workload.yaml").write_text(WORKLOAD, "utf-8")
    command = ["simulate", "--config", "queues.yaml", "--workload", "workload.yaml", "--out", "out"]
    done = run("-m", "yunikorn", *command, installed=installed, cwd=folder)
    assert done.returncode == 0, done.stderr
    decisions = map(json.loads, (folder / "out" / "decisions.jsonl").read_text("utf-8").splitlines())
    return [decision["application"] for decision in decisions if decision["decision"] == "allocate"]


def test_named_in_yaml_it_decides(installed: Path, tmp_path: Path) -> None:
    assert order_under("fifo", installed, tmp_path) == ["large", "large", "large", "small"]
    assert order_under("shortest-first", installed, tmp_path) == ["small", "large", "large", "large"]


def test_misspelt_in_yaml_it_is_suggested(installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(QUEUES.replace("POLICY", "shortest_first"), "utf-8")
    done = run("-m", "yunikorn", "validate", str(file), installed=installed)
    assert done.returncode == 1
    assert "did you mean 'shortest-first'?" in done.stdout + done.stderr
