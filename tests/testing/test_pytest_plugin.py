"""The test kit as a pytest plugin in another project: the fixture, contracts, and clear refusals."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

SOUND = '''
from yunikorn.api import Node, NodeSortPolicy
from yunikorn_testing import (
    MakeScheduler, NodeSortPolicyContract, application, ask, assert_placed, node
)

class Emptiest(NodeSortPolicy):
    """The node with most cores left."""
    name = "emptiest"
    def score(self, node: Node) -> float:
        return -node.available.get("vcore", 0)

class TestEmptiest(NodeSortPolicyContract):
    policy = Emptiest()

QUEUES = """
partitions:
  - name: default
    nodesortpolicy: {type: emptiest}
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""

def test_emptiest_node_is_used(scheduler: MakeScheduler) -> None:
    cluster = scheduler(QUEUES, node("a", vcore=1), node("b", vcore=2), plugins=[Emptiest])
    cluster.submit(application("app"), ask(vcore=1))
    cluster.run()
    assert_placed(cluster, "app", on="b")
'''
LYING = SOUND.replace("return -node.available", "return float('nan') or node.available")


@pytest.fixture
def run(run_python: Run, tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run pytest on one file in an empty folder, with the kit loaded as an installation would."""

    def run(source: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_mine.py").write_text(source, "utf-8")
        settings = ["-q", "-p", "no:cacheprovider", "-W", "error"]
        # An installed package is loaded by its entry point, and loading it twice is harmless.
        return run_python("-m", "pytest", *settings, "-p", "yunikorn_pytest", cwd=tmp_path)

    return run


def test_correct_plugin_passes(run: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    done = run(SOUND)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout


def test_wrong_plugin_is_found_by_its_contract_and_by_the_fixture(
    run: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = run(LYING)
    assert done.returncode == 1
    assert "FAILED test_mine.py::TestEmptiest::test_keys_have_a_total_order" in done.stdout
    assert "does not equal itself" in done.stdout
    assert "ERROR test_mine.py::test_emptiest_node_is_used" in done.stdout
    assert "plugins failed; the scheduler contained the failures" in done.stdout
    assert (
        "plugin emptiest of under-test (test): computing the score of node a: nan is not a number"
        in done.stdout
    )


def test_plugin_imports_little(run_python: Run) -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import yunikorn_pytest\n"
        "print(sorted(name for name in set(sys.modules) - before if name.startswith('yunikorn')))"
    )
    done = run_python("-c", code)
    assert done.stdout.strip() == "['yunikorn_pytest']"


def test_missing_pytest_is_reported_with_what_to_install(run_python: Run) -> None:
    done = run_python("-c", "import sys; sys.modules['pytest'] = None; import yunikorn_testing")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: yunikorn_testing needs pytest, which is not installed: pip install 'yunikorn[testing]'"
    )
