"""The commands for operators against `yunikorn serve --demo`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rest.served.test_rest import address_of
from tests.service.process import Start
from yunikorn.cli.main import main
from yunikorn_rest.operator_credentials import hash_of

CONFIG = """
partitions:
  - name: default
    queues:
      - name: analytics
        resources: {guaranteed: {vcore: 16, memory: 64Gi}, max: {vcore: 20}}
      - name: web
        resources: {guaranteed: {vcore: 8, memory: 32Gi}, max: {vcore: 24, memory: 96Gi}}
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Start the demo, and return a function that runs a command with the token of an administrator."""
    credentials = tmp_path / "credentials.yaml"
    credentials.write_text(f"- {{name: anna, role: admin, token: '{hash_of('anna')}'}}\n")
    service = start(
        "--demo", "--grpc", "off", "--rest", "127.0.0.1:0", "--rest-credentials", str(credentials)
    )
    monkeypatch.setenv("YUNIKORN_SERVER", address_of(service))
    monkeypatch.setenv("YUNIKORN_TOKEN", "anna")
    service.wait_for("runs on node-1")

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_commands_and_the_service_understand_each_other(run: Run, tmp_path: Path) -> None:
    assert run("whoami")[1] == "name:   anna\nrole:   admin\ngroups: -\n"
    for view, name in (("queues", "analytics"), ("nodes", "node-4"), ("apps", "APPLICATION")):
        status, out, err = run("top", view)
        assert (status, err) == (0, "")
        assert name in out
    drained = "Draining, drained by operator"
    assert run("drain", "node-1") == (0, f"node-1: Schedulable -> {drained}\n", "")
    assert run("undrain", "node-1") == (0, f"node-1: {drained} -> Schedulable\n", "")
    assert run("stop", "root.analytics") == (0, "root.analytics: Active -> Stopped\n", "")
    assert run("start", "root.analytics") == (0, "root.analytics: Stopped -> Active\n", "")
    assert "placed" in run("decisions", "--node", "node-1")[1]
    # Applications of the demo end soon, but are remembered.
    app = json.loads(run("get", "apps", "--all", "--json")[1].splitlines()[0])["applicationID"]
    status, out, err = run("explain", app)
    assert (status, err) == (0, "")
    assert out.startswith(f"application:  {app}\n")
    file = tmp_path / "state.json"
    assert run("dump", "--output", str(file))[0] == 0
    assert "partitions" in json.loads(file.read_text())
    assert run("log-level", "rest", "debug")[1] == "rest: info -> debug\n"
    assert run("log-level", "rest", "--json")[1] == '{"rest": "debug"}\n'


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_configurations_are_compared_and_applied(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(CONFIG)
    status, out, err = run("apply", str(file), "--dry-run")
    assert (status, err) == (0, "")
    assert "+ partition default, queue root.analytics: resources.max.vcore: 20\n" in out
    status, out, err = run("apply", str(file), "--yes")
    assert (status, err) == (0, "")
    assert "\napplied, " in out
    assert run("apply", str(file), "--dry-run")[1] == "nothing changes\n"
    file.write_text(CONFIG.partition("      - name: web")[0])
    status, out, err = run("apply", str(file))
    assert status == 2
    assert "- partition default, queue root.web\n" in out
    assert err.endswith("removes partition default, queue root.web: --yes does it anyway\n")
    file.write_text(CONFIG.replace("20", "many").replace("64Gi", "-1"))
    status, out, err = run("apply", str(file))
    assert (status, out) == (1, "")
    problems = err.splitlines()
    assert len(problems) == 2
    assert all(line.startswith(f"{file}: ") and "(line 6, column " in line for line in problems)
