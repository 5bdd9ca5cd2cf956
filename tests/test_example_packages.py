"""The example third-party packages work once they are installed: each tested, all in one configuration.

`tox -e pkg` does the same in a clean environment, and checks their types.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.child_processes import WITH_HYPOTHESIS

EXAMPLES = Path(__file__).parent.parent / "examples"
PACKAGES = {
    "yunikorn-ageing": {("app-sort", "ageing")},
    "yunikorn-data-zones": {("permit", "copy-slots"), ("predicate", "data-zones")},
    "yunikorn-decayed-share": {("queue-sort", "decayed-share")},
    "yunikorn-gpu-packing": {("node-sort", "gpu-packing")},
    "yunikorn-least-lost-work": {("preemption", "least-lost-work")},
    "yunikorn-mapping-file": {("placement", "mapping_file")},
    "yunikorn-node-prices": {("node-sort", "node-prices")},
    "yunikorn-priority-caps": {("submit", "priority-caps")},
    "yunikorn-rack-spread": {("predicate", "rack-spread")},
    "yunikorn-service-health": {("predicate", "service-health")},
    "yunikorn-slurm-blocks": {("gang-placement", "slurm-blocks")},
    "yunikorn-statsd": {("door", "statsd"), ("command", "pending-by-user")},
    "yunikorn-user-seats": {("predicate", "user-seats")},
    "yunikorn-volcano-jobs": {("workload-reader", "volcano-job")},
    "yunikorn-webhook": {("event-sink", "webhook")},
}
SETTINGS = (
    *("-q", "-W", "error", "--import-mode=importlib", "-p", "no:cacheprovider"),
    # Equal examples in every run, as in all of our tests.
    "--hypothesis-profile=ci",
)
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(install_packages: Callable[..., Path]) -> Path:
    """One folder into which all packages were installed."""
    return install_packages(*(EXAMPLES / name for name in PACKAGES))


def test_packages_are_listed_with_their_distribution(installed: Path, run_python: Run) -> None:
    done = run_python("-m", "yunikorn", "plugins", "--json", installed=installed)
    found = json.loads(done.stdout)
    assert found["broken"] == []
    listed: dict[str, set[tuple[str, str]]] = {name: set() for name in PACKAGES}
    for each in found["plugins"]:
        if each["distribution"] in PACKAGES:
            listed[each["distribution"]].add((each["kind"], each["name"]))
    assert listed == PACKAGES


def test_packages_pass_their_own_tests(installed: Path, run_python: Run, tmp_path: Path) -> None:
    tests = [str(EXAMPLES / name / "tests") for name in PACKAGES]
    plugin = ["-p", "yunikorn_pytest"]
    # In another folder, so that no other settings apply, and the installed package is tested.
    done = run_python(
        *("-m", "pytest", *SETTINGS, *plugin, "--rootdir", str(tmp_path), *tests),
        installed=installed,
        cwd=tmp_path,
        PYTEST_ADDOPTS=WITH_HYPOTHESIS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_one_configuration_uses_all_packages(installed: Path, run_python: Run, tmp_path: Path) -> None:
    for file in EXAMPLES.glob("third-party*"):
        shutil.copy(file, tmp_path)
    done = run_python("-m", "yunikorn", "validate", "third-party.yaml", installed=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    files = ["--config", "third-party.yaml", "--workload", "third-party-workload.yaml"]
    done = run_python(
        *("-m", "yunikorn", "simulate", *files, "--out", "out", "--no-plots", "--json"),
        installed=installed,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    # The webhook posts to a closed port, and reports that; no other plugin failed.
    (failure,) = report["plugin_faults"]
    assert "plugin webhook of webhook (yunikorn-webhook 1.0): delivering events: " in failure
    assert report["decisions"] == 22
    assert report["tasks"]["waiting"] == 0
    lines = (tmp_path / "out" / "decisions.jsonl").read_text("utf-8").splitlines()
    placed = [line for line in map(json.loads, lines) if line.get("event") == "allocation"]
    queues = {line["application"]: line["queue"] for line in placed}
    # As the file directs; the GPUs remain usable, because other asks go to the node without any.
    assert queues == {
        "plain": "root.science",
        "train": "root.science",
        "play": "root.games",
        "other": "root.other",
    }
    assert {line["node"] for line in placed if line["application"] == "train"} == {"gpus"}
    assert {line["node"] for line in placed if line["application"] == "plain"} == {"cores"}


def test_packages_are_typed(installed: Path) -> None:
    for name in PACKAGES:
        assert (installed / name.replace("-", "_") / "py.typed").is_file()
