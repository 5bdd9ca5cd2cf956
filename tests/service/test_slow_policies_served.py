"""A served scheduler whose policies hang: named in the log, harmless to others, exact in the recording."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.service.kit import work
from tests.service.process import Shim, Start
from yunikorn.cli.main import main
from yunikorn.interface.messages import AddApplicationRequest, UpdateRequest, UserGroupInformation

PLUGINS = """
import threading
from yunikorn.api import AdmissionPolicy, PlacementRule, SubmitPolicy, UserGroupResolver, hookimpl

class Directory(UserGroupResolver):
    name = "directory"
    def groups(self, user):
        if user == "away":
            threading.Event().wait()
        return [user, "staff"]

class Site(SubmitPolicy):
    name = "site"
    def submit(self, app):
        if app.id == "interrupted":
            raise KeyboardInterrupt

class Places(PlacementRule):
    name = "places"
    blocking = True
    def place(self, app):
        if app.id == "lost":
            threading.Event().wait()
        return app.queue_name

class Licence(AdmissionPolicy):
    name = "licence"
    blocking = True
    def admit(self, app):
        if app.id == "exits":
            raise SystemExit(0)

@hookimpl
def yunikorn_user_group_resolvers():
    return [Directory]

@hookimpl
def yunikorn_submit_policies():
    return [Site]

@hookimpl
def yunikorn_placement_rules():
    return [Places]

@hookimpl
def yunikorn_admission_policies():
    return [Licence]
"""
CONFIG = """
partitions:
  - name: default
    usergroupresolver: {type: directory}
    submitpolicies: [site]
    placementrules: [{name: places}]
    admission: [licence]
    periods: {policyanswer: 300ms}
    queues:
      - {name: root, submitacl: "*", queues: [{name: a}]}
plugins: {load: [./slow.py]}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.slow
def test_service_with_policies_that_hang_and_raise(
    start: Start, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "slow.py").write_text(PLUGINS, "utf-8")
    config.write_text(CONFIG, "utf-8")
    recording = tmp_path / "run.jsonl"
    options = ("--config", str(config), "--grpc", "127.0.0.1:0", "--record", str(recording))
    service = start(*options, "--stats", "1h")
    shim = Shim(service.address)
    shim.register()
    shim.send(
        UpdateRequest(
            "rm",
            new_applications=[
                AddApplicationRequest(name, "root.a", ugi=UserGroupInformation(user))
                for name, user in (
                    ("stuck", "away"),
                    ("interrupted", "ann"),
                    ("exits", "ann"),
                    ("lost", "ann"),
                )
            ],
        )
    )
    shim.send(work(3))
    rejected: dict[str, str] = {}
    placed = 0
    while placed < 3 or len(rejected) < 3:
        response = shim.read()
        placed += len(response.new_allocations)
        rejected |= {one.application_id: one.reason for one in response.rejected_applications}
    assert set(rejected) == {"stuck", "interrupted", "lost"}
    assert "placing application 'lost': it has not returned within" in rejected["lost"]
    missing = {
        "has not returned within",
        "KeyboardInterrupt",
        "SystemExit",
        "in Directory.groups",
        "in Places.place",
    }
    while missing := {text for text in missing if text not in "".join(service.log)}:
        service.wait_for("")
    shim.send(work(2, app="more"))
    assert len(shim.allocations(2)) == 2
    service.signal(signal.SIGKILL)
    service.end()
    shim.end()
    shim.close()
    assert main(["replay", str(recording), "--plugins-from", str(config.parent)]) == 0
    assert "identical to the recording" in capsys.readouterr().out
