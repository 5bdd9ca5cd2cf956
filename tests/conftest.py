"""Fixtures and options common to all tests: traces, registry, hypothesis, markers, packages."""

from __future__ import annotations

import compileall
import gc
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.audit import AuditedSimulation
from tests.child_processes import PYTEST_ENVIRONMENT
from tests.costs import Bill, Meter
from tests.example_counts import examples
from tests.fork_client import CHOICE
from tests.forks import write_python
from tests.kubernetes.cluster.programs import NOT_BUILT
from tests.markers import mark
from yunikorn.cli.main import main
from yunikorn.framework.registry import Registry
from yunikorn_lab.simulation import run as simulation_run

CHECKOUT = Path(__file__).parent.parent
NO_BYTECODE = sys.dont_write_bytecode
"""True where PYTHONDONTWRITEBYTECODE is set."""

# Tests must not depend on speed or luck: no deadline, and equal examples in every run. To look for new
# examples: pytest --hypothesis-profile=explore
settings.register_profile(
    "steady",
    max_examples=examples(30),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The default plugins, without installed third-party plugins. Tests must not change it."""
    return Registry.load(third_party=False)


@pytest.fixture(scope="session", autouse=True)
def audited() -> Iterator[None]:
    """Audit every simulation that runs in this process, see `tests.audit`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation_run, "Simulation", AuditedSimulation)
        yield


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of workload traces; the test is skipped where there is none."""
    folder = Path(os.environ.get("YUNIKORN_TRACES", CHECKOUT.parent / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip("no workload traces here: set YUNIKORN_TRACES to their folder")
    return folder


Run = Callable[..., tuple[int, str, str]]
"""Runs the command line with arguments, and returns the status and both outputs."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line, and returns the status and both outputs."""
    for name in ("YUNIKORN_SERVER", "YUNIKORN_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


# -- markers ---------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that measures the cost of tests."""
    parser.addoption(
        "--costs", type=Path, metavar="FILE", help="write the slow tests to FILE, see tests/costs.py"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Compile what the tests run, and measure their cost, if requested.

    Where PYTHONDONTWRITEBYTECODE is set, as in containers, each worker would otherwise compile all tests,
    and each command all of its modules: half the time of a command. Tests themselves run as the variable
    says, because a plugin that they write twice may have equal size and, in seconds, equal time.
    """
    sys.dont_write_bytecode = False
    gc.disable()
    if not hasattr(config, "workerinput"):
        for folder in ("yunikorn", "plugins", "policies"):
            compileall.compile_dir(CHECKOUT / folder, quiet=2)
    if file := config.getoption("--costs"):
        config.pluginmanager.register(Meter())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Bill(file))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute whole files, unless the command line says otherwise."""
    if config.getoption("dist") != "load":
        return None
    # Imported here, because pytest-xdist may be missing.
    from tests.distribution import WholeFiles

    return WholeFiles(config, log)


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Add a worker for tests that wait for the cluster."""
    from tests.distribution import uses_cluster

    return (yield) + uses_cluster(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test by the rules of `tests/markers.py`; its id has to be the same in every worker."""
    if " at 0x" in item.nodeid:
        raise pytest.UsageError(f"{item.nodeid} has a memory address in its id: set another one with ids=")
    mark(item)


def pytest_collection_finish() -> None:
    """Write no more compiled files, and search for garbage again, but not in what the collection made.

    Nineteen thousand tests are half a second of each search, and benchmarks search dozens of times.
    """
    sys.dont_write_bytecode = NO_BYTECODE
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report in one line that the tests of the Kubernetes cluster were skipped."""
    reports = terminalreporter.getreports("skipped")
    if count := sum(NOT_BUILT in str(report.longrepr) for report in reports):
        terminalreporter.write_line(
            f"{count} tests of the Kubernetes shim were skipped: {NOT_BUILT}", yellow=True
        )


# -- third-party packages, and commands in a process of their own -------------------------------------


@pytest.fixture(scope="session")
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs Python: `run("-m", "yunikorn", installed=FOLDER, cwd=FOLDER, NAME="x")`.

    The process can import what the tests can import, with packages in the folder `installed` first.
    """

    def run(
        *arguments: str,
        installed: Path | None = None,
        cwd: Path | None = None,
        python: str = sys.executable,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        path = [*([str(installed)] if installed else []), *filter(None, sys.path)]
        clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
        return subprocess.run(
            [python, *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            cwd=cwd,
            env={
                **clean,
                **PYTEST_ENVIRONMENT,
                "PYTHONPATH": os.pathsep.join(path),
                "PYTHONDONTWRITEBYTECODE": "1",
                **environment,
            },
        )

    return run


def _can_build() -> bool:
    # By metadata only: with setuptools installed, even a search for the module `pip` replaces distutils, with
    # a warning if distutils has been imported before.
    try:
        importlib.metadata.version("pip")
        version = importlib.metadata.version("setuptools").split(".")
    except importlib.metadata.PackageNotFoundError:
        return False
    return (int(version[0]), int(version[1])) >= (70, 1)


@pytest.fixture(scope="session")
def can_build() -> None:
    """Skip the test where no package can be built without downloads."""
    if not _can_build():
        pytest.skip("needs pip and setuptools 70.1 or newer: pip install '.[test]'")


@pytest.fixture(scope="session")
def install_packages(
    tmp_path_factory: pytest.TempPathFactory,
    run_python: Callable[..., subprocess.CompletedProcess[str]],
    can_build: None,
) -> Callable[..., Path]:
    """Return a function that installs packages with one call of pip into a folder, and returns the folder."""

    def install(*packages: Path) -> Path:
        sources = tmp_path_factory.mktemp("sources")
        leave = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
        for package in packages:
            shutil.copytree(package, sources / package.name, ignore=leave)
        target = tmp_path_factory.mktemp("installed")
        offline = [
            "--no-index",
            "--no-deps",
            "--no-build-isolation",
            "--disable-pip-version-check",
            "--quiet",
        ]
        python = tmp_path_factory.mktemp("python") / "python"
        write_python(python)
        done = run_python(
            *("-m", "pip", "install", *offline, "--target", str(target), *map(str, sources.iterdir())),
            python=str(python),
            **{CHOICE: "pip"},
        )
        assert done.returncode == 0, done.stderr
        return target

    return install
