"""Packages of the extras: the table is that of setup.cfg, and the error names what to install."""

from __future__ import annotations

import configparser
import re
import subprocess
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from yunikorn_commands.extras import EXTRAS, MissingExtra, importing_extra

SETUP = Path(__file__).parent.parent.parent / "setup.cfg"


def normalised(name: str) -> str:
    """Return the name of a distribution in the form that all spellings share."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_packages_are_those_of_the_requirements(extra: str) -> None:
    setup = configparser.ConfigParser()
    setup.read(SETUP, "utf-8")
    lines = setup["options.extras_require"][extra].strip().splitlines()
    required = {normalised(re.split(r"[\[ <>=!~;]", line)[0]) for line in lines}
    by_distribution = {
        normalised(distribution): package
        for package, distributions in packages_distributions().items()
        for distribution in distributions
        if not package.startswith("_")
    }
    assert {by_distribution[name] for name in required} - set(EXTRAS[extra]) == set()


def test_the_error_names_the_distribution_the_purpose_and_the_remedy() -> None:
    with pytest.raises(MissingExtra) as caught, importing_extra("grpc", "for --record", " (or not)"):
        raise ModuleNotFoundError(name="google.protobuf")
    assert str(caught.value) == (
        "protobuf is not installed, but is needed for --record: pip install 'yunikorn[grpc]' (or not)"
    )


def test_other_missing_modules_are_bugs() -> None:
    with pytest.raises(ModuleNotFoundError), importing_extra("grpc", "for --record"):
        raise ModuleNotFoundError(name="yunikorn_service.nothing")


WITHOUT_EXTRAS = """
import sys
for package in {packages}:
    sys.modules[package] = None
from yunikorn.cli.main import main
quickstart = "examples/quickstart"
files = ["--config", quickstart + "/queues.yaml", "--workload", quickstart + "/workload.yaml"]
assert main(["simulate", *files]) == 0
for command in {commands}:
    assert main([command, "--help"]) == 0, command
"""


@pytest.mark.slow
def test_commands_of_a_plain_installation_work_without_any_extra(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    packages = sorted({package for names in EXTRAS.values() for package in names} - {"google"})
    commands = [
        "compare",
        "size",
        "sweep",
        "workload",
        "validate",
        "diff",
        "place",
        "plugins",
        "schema",
        "states",
    ]
    ran = run_python("-c", WITHOUT_EXTRAS.format(packages=packages, commands=commands), cwd=SETUP.parent)
    assert (ran.returncode, ran.stderr.count("Error")) == (0, 0), ran.stderr
