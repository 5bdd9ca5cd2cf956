"""`yunikorn plugins new`: generated packages of every kind are sound, and bad arguments are refused."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn.framework.kinds import ALL_KINDS

Run = Callable[..., subprocess.CompletedProcess[str]]


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `yunikorn plugins ARGUMENTS` in a folder."""
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(io.StringIO()) as printed,
        contextlib.redirect_stderr(io.StringIO()) as reported,
    ):
        status = main(["plugins", *arguments])
    return subprocess.CompletedProcess(arguments, status, printed.getvalue(), reported.getvalue())


@pytest.fixture
def run() -> Run:
    """Return the function that runs `yunikorn plugins ARGUMENTS`."""
    return call


def names_of(folder: Path) -> list[str]:
    """Return the names of all files below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a new package of every kind."""
    folder = tmp_path_factory.mktemp("packages")
    for kind in ALL_KINDS:
        done = call("new", kind.id, f"my-{kind.id}", cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.mark.parametrize("kind", [kind.id for kind in ALL_KINDS])
def test_new_package_is_complete(kind: str, packages: Path) -> None:
    folder = packages / f"yunikorn-my-{kind}"
    module = f"yunikorn_my_{kind.replace('-', '_')}"
    more = {"command": [f"{module}/call.py"], "door": ["queues.yaml"], "workload-reader": []}
    assert names_of(folder) == sorted(
        [
            *("README.md", "pyproject.toml", f"tests/test_{module}.py"),
            *(f"{module}/__init__.py", f"{module}/py.typed"),
            *more.get(kind, ["queues.yaml", "workload.yaml"]),
        ]
    )
    # No gaps are left to fill in, and every file ends with a newline.
    for path in names_of(folder):
        text = (folder / path).read_text("utf-8")
        assert "{{" not in text
        assert text == "" or text.endswith("\n")


def test_new_packages_pass_their_own_tests(packages: Path, run_python: Run) -> None:
    folders = sorted(packages.glob("yunikorn-*"))
    settings = ["-q", "-W", "error", "--import-mode=importlib", "-p", "no:cacheprovider"]
    path = os.pathsep.join(map(str, [*folders, *filter(None, sys.path)]))
    # One process for all; tests/test_newcomer.py tests a package by itself.
    done = run_python(
        *("-m", "pytest", *settings, "-p", "yunikorn_pytest", *map(str, folders)),
        cwd=packages,
        PYTHONPATH=path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_new_packages_pass_mypy_and_ruff(packages: Path, run_python: Run) -> None:
    modules = sorted(path.parent for path in packages.glob("*/*/py.typed"))
    tests = sorted(packages.glob("*/tests/*.py"))
    assert len(modules) == len(tests) == len(ALL_KINDS)
    # Problems elsewhere have their own tests. Installed packages must not be named.
    settings = ["--strict", "--no-error-summary", "--follow-imports=silent", "--cache-dir=cache"]
    checkout = [path for path in sys.path if (Path(path) / "yunikorn").is_dir() and "site-" not in path]
    roots = [*(str(path.parent) for path in modules), *checkout]
    checked = run_python(
        *("-m", "mypy", *settings, *map(str, modules), *map(str, tests)),
        cwd=packages,
        MYPYPATH=os.pathsep.join(roots),
    )
    assert (checked.stdout, checked.returncode) == ("", 0), checked.stderr
    # With its own settings, and formatted as others expect.
    for rules in ([], ["--isolated", "--config", "src = ['yunikorn-*']"]):
        for command in (["check"], ["format", "--check", "--diff"]):
            tidy = run_python("-m", "ruff", *command, "--no-cache", *rules, ".", cwd=packages)
            assert tidy.returncode == 0, tidy.stdout


def test_new_package_with_a_long_name_passes_ruff(run: Run, run_python: Run, tmp_path: Path) -> None:
    for kind in ALL_KINDS:
        assert run("new", kind.id, f"prefers-what-nobody-else-asks-{kind.id}", cwd=tmp_path).returncode == 0
    for command in (["check"], ["format", "--check", "--diff"]):
        tidy = run_python("-m", "ruff", *command, "--no-cache", ".", cwd=tmp_path)
        assert tidy.returncode == 0, tidy.stdout


@pytest.mark.parametrize(
    ("kind", "title"),
    [("app-sort", "An application sort"), ("user-groups", "A user-group")],
)
def test_new_package_names_its_kind(kind: str, title: str, packages: Path) -> None:
    for file in ("README.md", "pyproject.toml"):
        assert title in (packages / f"yunikorn-my-{kind}" / file).read_text("utf-8")


@pytest.mark.parametrize("name", ["node", "none", "list", "x1-y2"])
def test_python_keywords_and_builtins_are_valid_names(
    name: str, run: Run, run_python: Run, tmp_path: Path
) -> None:
    assert run("new", "node-sort", name, cwd=tmp_path).returncode == 0
    code = f"import sys; sys.path.insert(0, {str(tmp_path / f'yunikorn-{name}')!r}); import yunikorn_" + (
        f"{name.replace('-', '_')} as m; print(m.yunikorn_node_sort_policies()[0].name)"
    )
    assert run_python("-c", code).stdout.strip() == name


@pytest.mark.parametrize(
    "name", ["Coldest", "", "a b", "-a", "a-", "a--b", "1st", "ä", "../up", "a/b", "a.b", "a_b", "x" * 51]
)
def test_invalid_names_are_rejected(name: str, run: Run, tmp_path: Path) -> None:
    done = run("new", "node-sort", "--", name, cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be the name of a plugin: use at most 50 lower-case letters" in done.stderr
    assert names_of(tmp_path) == []


def test_package_prefix_is_stripped_from_the_name(run: Run, tmp_path: Path) -> None:
    done = run("new", "node-sort", "yunikorn-coldest", cwd=tmp_path)
    assert done.returncode == 2
    assert "leave 'yunikorn-' out of the name" in done.stderr


def test_taken_name_is_rejected(run: Run, tmp_path: Path) -> None:
    done = run("new", "node-sort", "fair", cwd=tmp_path)
    assert done.returncode == 2
    assert "node sort policy 'fair' already exists: fair of " in done.stderr
    assert run("new", "predicate", "fair", cwd=tmp_path).returncode == 0


def test_existing_files_are_not_overwritten(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "yunikorn-coldest"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine", "utf-8")
    done = run("new", "node-sort", "coldest", cwd=tmp_path)
    assert done.returncode == 2
    assert "yunikorn-coldest: already exists and was not changed" in done.stderr
    assert names_of(tmp_path) == ["yunikorn-coldest/notes.txt"]


def test_package_is_created_in_another_folder(run: Run, tmp_path: Path) -> None:
    done = run("new", "app-sort", "mine", "--in", "there", cwd=tmp_path)
    assert done.returncode == 2
    assert "there: there is no such folder; create it first" in done.stderr
    (tmp_path / "there").mkdir()
    done = run("new", "app-sort", "mine", "--in", "there", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "there" / "yunikorn-mine" / "pyproject.toml").is_file()
    assert "cd there/yunikorn-mine" in done.stdout


def test_unknown_kind_is_reported_with_the_known_kinds(run: Run, tmp_path: Path) -> None:
    done = run("new", "node", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "'node' is not one of 'app-sort', 'queue-sort', 'node-sort'" in done.stderr


def test_options_of_plugins_are_rejected_by_new(run: Run, tmp_path: Path) -> None:
    done = run("--json", "new", "app-sort", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "--json applies to the list, not to 'new'" in done.stderr
    assert names_of(tmp_path) == []
