"""Plugins that depend on Python's hash seed are detected, in an installation as in the checkout."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

SOURCE = '''
import os

import pytest
from yunikorn.api import (
    AppSortPolicy, NodeSortPolicy, PlacementRule, Predicate, QueueSortPolicy, UserGroupResolver
)
from yunikorn_testing import (
    AppSortPolicyContract, NodeSortPolicyContract, PlacementRuleContract, PredicateContract,
    QueueSortPolicyContract, UserGroupResolverContract
)

class ByHash(AppSortPolicy):
    """By the hash of its name."""
    name = "by-hash"
    def key(self, app):
        return hash(app.id)

class Sets(QueueSortPolicy):
    """By the first of a set."""
    name = "sets"
    def key(self, queue):
        return next(iter({queue.path, "a", "b", "c"}))

class Shaped(NodeSortPolicy):
    """By the hash of its name, for some requests."""
    name = "shaped"
    def score(self, node, shape):
        return float(hash(node.id)) if "gpu" in shape.resource else 0.0

class First(PlacementRule):
    """The first of its groups, in no order."""
    name = "first"
    def place(self, app):
        return next(iter({"a", "b", "c", "d", app.id}))

class Missing(Predicate):
    """Says what is missing, in no order."""
    name = "missing"
    def check(self, ask, node):
        return "missing: " + ", ".join({"a", "b", "c", "d"} - set(node.attributes))

class Groups(UserGroupResolver):
    """In no order."""
    name = "groups"
    def groups(self, user):
        return list({"a", "b", "c", "d"})

class Sound(AppSortPolicy):
    """By the size of a set."""
    name = "sound"
    def key(self, app):
        return (len({app.id, "plain"}), sorted({app.id, "a", "b"}), frozenset([app.id]) == {"plain"})

class TestByHash(AppSortPolicyContract):
    policy = ByHash()

class TestSets(QueueSortPolicyContract):
    policy = Sets()

class TestShaped(NodeSortPolicyContract):
    policy = Shaped()

class TestFirst(PlacementRuleContract):
    rule = First()

class TestMissing(PredicateContract):
    predicate = Missing()

class TestGroups(UserGroupResolverContract):
    resolver = Groups()

class TestSound(AppSortPolicyContract):
    policy = Sound()

class TestWithAFixture(AppSortPolicyContract):
    @pytest.fixture(autouse=True)
    def prepare(self, monkeypatch):
        self.policy = Sound()
'''


@pytest.fixture
def run(run_python: Run, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the hash-seed tests of a file, as a project with the installed test kit does."""

    def run(source: str, *more: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_mine.py").write_text(source, "utf-8")
        settings = ["-q", "-k", "hash_seed", "-W", "error", "-p", "yunikorn_pytest"]
        return run_python("-m", "pytest", *settings, *more, cwd=tmp_path)

    return run


def test_hash_dependent_answers_of_every_kind_are_found(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(SOURCE)
    failed = [line.split("::")[1] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    names = ("ByHash", "Sets", "Shaped", "First", "Missing", "Groups")
    assert failed == [f"Test{name}" for name in names], done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "answers depend on the hash seed of Python" in done.stdout
    for question in (
        "the order is ",
        "the order for a request of gpu 1, vcore 1000 is ",
        "the queue of application plain is ",
        "check(plain, plain) is 'missing: ",
        "groups('root') is [",
    ):
        assert question in done.stdout


def test_settings_of_a_run_apply_to_its_processes(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "mine.py").write_text(SOURCE.partition("class TestByHash")[0], "utf-8")
    settings = f"[pytest]\npythonpath = {folder}\naddopts = --import-mode=importlib --maxfail=1\n"
    (tmp_path / "pytest.ini").write_text(settings, "utf-8")
    done = run(
        "from mine import Sound\nfrom yunikorn_testing import AppSortPolicyContract\n"
        "class TestSound(AppSortPolicyContract):\n    policy = Sound()\n"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_process_that_fails_is_shown(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run(
        "import os\nif 'PYTHONHASHSEED' in os.environ:\n    raise RuntimeError('not here')\n"
        + SOURCE.partition("class TestByHash")[0]
        + "class TestSound(AppSortPolicyContract):\n    policy = Sound()\n"
    )
    assert done.returncode == 1
    assert "pytest failed in a separate process" in done.stdout
    assert "not here" in done.stdout


NOTES = """
import os
from pathlib import Path

if "PYTHONHASHSEED" in os.environ:
    Path(__file__).with_name(f"process-{os.getpid()}").touch()
"""
"""Part of a test file that notes each process which loads it because of the seed."""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_two_processes_serve_all_files_of_a_run(
    workers: list[str], run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    sound = SOURCE.partition("class TestByHash")[0] + "class TestSound(AppSortPolicyContract):\n    policy = "
    (tmp_path / "test_other.py").write_text(NOTES + sound + "ByHash()\n", "utf-8")
    done = run(NOTES + sound + "Sound()\n", *workers)
    # Tests of the same name in different files are different tests.
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_other.py::TestSound" in done.stdout
    assert len(list(tmp_path.glob("process-*"))) == 2


def test_a_file_that_fails_leaves_others_their_answers(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    sound = (
        SOURCE.partition("class TestByHash")[0]
        + "class TestSound(AppSortPolicyContract):\n    policy = Sound()\n"
    )
    fails = "import os\nif 'PYTHONHASHSEED' in os.environ:\n    os._exit(3)\n"
    (tmp_path / "test_other.py").write_text(fails + sound, "utf-8")
    done = run(sound)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_other.py::TestSound" in done.stdout
