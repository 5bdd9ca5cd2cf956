"""The ten-minute tutorial of docs/plugins.md, followed literally."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "plugins.md"
_FILE = re.compile(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the files of the tutorial."""
    folder = tmp_path_factory.mktemp("desk")
    for name, text in _FILE.findall(PAGE.read_text("utf-8")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    written = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    assert written == [
        "my-policy/my_policy.py",
        "my-policy/pyproject.toml",
        "my-policy/queues.yaml",
        "my-policy/workload.yaml",
    ]
    return folder


@pytest.fixture(scope="module")
def installed(desk: Path, install_packages: Callable[..., Path]) -> Path:
    """The folder into which pip installed the reader's package."""
    return install_packages(desk / "my-policy")


def test_plugin_of_the_tutorial_is_listed(desk: Path, installed: Path, run_python: Run) -> None:
    done = run_python("-m", "yunikorn", "plugins", "--kind", "app-sort", installed=installed, cwd=desk)
    (line,) = (line for line in done.stdout.splitlines() if "short-names" in line)
    assert "my-policy 0.1" in line
    assert "reverse: bool = false" in line


def order(desk: Path, installed: Path, run: Run) -> list[str]:
    """Check and simulate as the page describes; return the applications in the order of their allocations."""
    config = ["my-policy/queues.yaml"]
    done = run("-m", "yunikorn", "validate", *config, installed=installed, cwd=desk)
    assert done.returncode == 0, done.stdout + done.stderr
    command = ["simulate", "--config", *config, "--workload", "my-policy/workload.yaml", "--out", "out"]
    # The test of the page draws the plots.
    done = run("-m", "yunikorn", *command, "--no-plots", installed=installed, cwd=desk)
    assert done.returncode == 0, done.stderr
    decisions = map(json.loads, (desk / "out" / "decisions.jsonl").read_text("utf-8").splitlines())
    return [decision["application"] for decision in decisions if decision.get("event") == "allocation"]


def test_plugin_of_the_tutorial_decides_as_documented(desk: Path, installed: Path, run_python: Run) -> None:
    assert order(desk, installed, run_python) == ["app-3", "app-4", "app-1", "app-2"]
    queues = desk / "my-policy" / "queues.yaml"
    text = queues.read_text("utf-8")
    queues.write_text(text.replace('reverse: "false"', 'reverse: "true"'), "utf-8")
    assert order(desk, installed, run_python) == ["app-2", "app-1", "app-4", "app-3"]
    without = "".join(line for line in text.splitlines(keepends=True) if "reverse" not in line)
    queues.write_text(without.replace("policy: short-names", "policy: fifo"), "utf-8")
    assert order(desk, installed, run_python) == ["app-1", "app-2", "app-3", "app-4"]
