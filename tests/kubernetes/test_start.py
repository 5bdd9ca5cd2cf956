"""Modules that `yunikorn kubernetes` imports until its first request to the API server."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.api_server.test_credentials import kubeconfig, plugin
from tests.kubernetes.scheduler_process import PATIENCE, environment

MOST = 690
"""Modules beyond those of Python itself. Raise this only for what every start needs."""
LATE = {
    "cryptography": "certificates of the webhooks",
    "google": "gRPC and recordings",
    "grpc": "gRPC",
    "hypothesis": "tests",
    "jinja2": "pages",
    "kubernetes": "exec plugins of a kubeconfig",
    "matplotlib": "plots",
    "numpy": "plots",
    "oauthlib": "the package kubernetes",
    "pydantic": "the package kubernetes",
    "re2": "expressions in configurations",
    "requests": "the package kubernetes",
    "rich": "terminals",
    "urllib3": "the package kubernetes",
    "yunikorn_lab.reporting": "reports",
    "yunikorn_lab.simulation": "simulations",
    "yunikorn_testing": "tests of plugins",
    "yunikorn_service.wire": "gRPC and recordings",
    "yunikorn_kubernetes.admission": "the admission controller",
}
"""Packages that a start does without, and what needs them."""
IMPORTED = re.compile(r"import time:\s+\d+ \|\s+\d+ \|\s+(\S+)")
pytestmark = pytest.mark.slow


def imported(folder: Path, user: Mapping[str, Any], until: str) -> set[str]:
    """Return the modules that a process imports until a line of its log has the text `until`."""
    file = kubeconfig(folder / "config", dict(user))
    # A reserved port, at which nothing listens.
    file.write_text(file.read_text("utf-8").replace("127.0.0.1:6443", "127.0.0.1:1"), "utf-8")
    command = [sys.executable, "-X", "importtime", "-m", "yunikorn", "kubernetes"]
    options = ["--kubeconfig", str(file), "--rest", "127.0.0.1:0", "--namespace", "default"]
    process = subprocess.Popen(
        [*command, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    found: set[str] = set()
    assert process.stderr is not None
    with process.stderr:
        for line in process.stderr:
            if match := IMPORTED.match(line):
                found.add(match[1])
            elif until in line:
                break
        else:
            pytest.fail(f"the process ended without '{until}'")
        process.terminate()
        process.stderr.read()
    process.wait(PATIENCE)
    return found


def test_packages_that_a_start_does_without_exist() -> None:
    assert [package for package in LATE if importlib.util.find_spec(package) is None] == []


def test_a_start_imports_only_what_it_needs(tmp_path: Path) -> None:
    modules = imported(tmp_path, {"token": "abc"}, "the API server does not answer")
    early = {
        f"{package} ({why})"
        for package, why in LATE.items()
        if any(module == package or module.startswith(f"{package}.") for module in modules)
    }
    assert early == set()
    ours_and_others = {one for one in modules if one.partition(".")[0] not in sys.stdlib_module_names}
    assert len(ours_and_others) <= MOST


def test_a_user_with_an_exec_plugin_imports_the_library_that_calls_it(tmp_path: Path) -> None:
    user = plugin(tmp_path / "plugin.py", json.dumps({"token": "abc"}))
    modules = imported(tmp_path, user, "the API server does not answer")
    assert "kubernetes" in modules
