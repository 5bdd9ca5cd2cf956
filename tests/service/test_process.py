"""`yunikorn serve` as a process: start, reload, end, and recovery after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from tests.core.kit import configuration
from tests.service.kit import work
from tests.service.process import Shim, Start
from yunikorn.cli.main import main
from yunikorn.interface.messages import (
    NewNodeInfo,
    RegisterResourceManagerRequest,
    SchedulerAction,
    UpdateRequest,
)
from yunikorn.resources import Resource
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.protocol import REGISTER, SCHEDULER, UPDATE, path

BIGGER = configuration({"name": "a"}, {"name": "b"})
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@UNIX
def test_service_prints_its_address_serves_and_ends_on_sigterm(start: Start, config: Path) -> None:
    service = start("--config", str(config), "--grpc", "127.0.0.1:0")
    assert "without TLS, for this machine only" in service.welcome
    shim = Shim(service.address)
    shim.register()
    shim.send(work(3))
    assert len(shim.allocations(3)) == 3
    service.signal(signal.SIGTERM)
    assert shim.end() is grpc.StatusCode.UNAVAILABLE
    assert service.end() == 0
    shim.close()


@UNIX
def test_sighup_reads_the_configuration_again_and_a_broken_one_changes_nothing(
    start: Start, config: Path
) -> None:
    service = start("--config", str(config), "--grpc", "127.0.0.1:0")
    shim = Shim(service.address)
    shim.register()
    config.write_text("partitions: [{name: default, queues: 7}]")
    service.signal(signal.SIGHUP)
    service.wait_for("the new configuration was rejected")
    service.wait_for(f"{config}: partitions[0].queues")
    config.write_text(BIGGER)
    service.signal(signal.SIGHUP)
    service.wait_for("changed for: rm")
    request = work(1)
    request.new_applications[0].queue_name = "root.b"
    shim.send(request)
    assert shim.allocations(1)[0].queue_name == "root.b"
    service.signal(signal.SIGINT)
    assert service.end() == 0
    shim.close()


@UNIX
def test_changed_file_is_reloaded(start: Start, config: Path) -> None:
    service = start("--config", str(config.parent), "--watch", "--grpc", "127.0.0.1:0")
    shim = Shim(service.address)
    shim.register()
    other = config.with_suffix(".new")
    other.write_text(BIGGER)
    other.replace(config)
    service.wait_for("a file has changed: the configuration was reloaded; changed for: rm")
    shim.close()


@UNIX
def test_accounting_is_restored_after_a_kill(start: Start, config: Path, tmp_path: Path) -> None:
    socket = f"unix:{tmp_path}/y.sock"
    first = start("--config", str(config), "--grpc", socket)
    shim = Shim(socket)
    shim.register()
    shim.send(work(4))
    placed = shim.allocations(4)
    first.signal(signal.SIGKILL)
    shim.end()
    assert first.end() == -signal.SIGKILL
    shim.close()

    start("--config", str(config), "--grpc", socket)
    again = Shim(socket)
    again.register()
    report = work(4)
    node: NewNodeInfo = report.new_schedulable_nodes[0]
    node.existing_allocations = placed
    node.schedulable_resource = Resource(vcore=8)
    report.asks = work(8).asks[4:]
    again.send(report)
    # Eight fit, and four of them run already.
    new = again.allocations(4)
    assert {one.allocation_key for one in new} == {f"app-{i}" for i in range(4, 8)}
    assert not {one.uuid for one in new} & {one.uuid for one in placed}
    again.send(UpdateRequest("rm", asks=work(9).asks[8:]))
    again.send(UpdateRequest("rm", new_schedulable_nodes=work(1, app="more").new_schedulable_nodes))
    assert again.allocations(1)[0].node_id == "node-more"
    again.close()


@UNIX
def test_killed_resource_manager_is_paused_and_receives_resync(start: Start, config: Path) -> None:
    service = start("--config", str(config), "--grpc", "127.0.0.1:0", "--session-timeout", "10m")
    script = (
        "import sys; from tests.service.kit import work; from tests.service.process import Shim\n"
        "shim = Shim(sys.argv[1]); shim.register(); shim.send(work(2)); shim.allocations(2)\n"
        "print('placed', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, service.address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "placed\n"
    child.kill()
    child.communicate()
    service.wait_for("Running -> Paused")
    shim = Shim(service.address)
    shim.call = shim.channel.stream_stream(path(SCHEDULER, UPDATE))(iter(shim._requests.get, None))
    shim.send(UpdateRequest("rm"))
    while shim.read().action is not SchedulerAction.RESYNC:
        pass
    shim.close()


@UNIX
def test_the_demo_shows_decisions_within_seconds(start: Start) -> None:
    service = start("--demo", "--grpc", "off")
    assert "without a network" in service.welcome
    service.wait_for("submits analytics-1: 6 tasks")
    service.wait_for("runs on node-")
    service.signal(signal.SIGINT)
    assert service.end() == 0


@UNIX
def test_secrets_are_not_in_the_log(start: Start) -> None:
    service = start("--allow-rm-config", "--grpc", "127.0.0.1:0", "--log", "debug")
    shim = Shim(service.address)
    call = shim.channel.unary_unary(path(SCHEDULER, REGISTER))
    secret = configuration({"name": "hunter2"})
    request = RegisterResourceManagerRequest("rm", "v9", config=secret, extra_config={"token": "swordfish"})
    call(v0_11.REGISTER_REQUEST.encode(request))
    shim.close()
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    log = "".join(service.log)
    assert "v9" in log
    assert "hunter2" not in log
    assert "swordfish" not in log


@UNIX
def test_recording_of_a_service_replays_without_difference(
    start: Start, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "recording.jsonl"
    service = start("--config", str(config), "--grpc", "127.0.0.1:0", "--record", str(recording))
    shim = Shim(service.address)
    shim.register()
    for app in ("one", "two", "three"):
        shim.send(work(20, app=app))
    shim.allocations(60)
    config.write_text(BIGGER)
    service.signal(signal.SIGHUP)
    service.wait_for("changed for: rm")
    request = work(5, app="four")
    request.new_applications[0].queue_name = "root.b"
    shim.send(request)
    shim.allocations(5)
    service.signal(signal.SIGKILL)
    service.end()
    shim.end()
    shim.close()
    assert main(["replay", str(recording)]) == 0
    assert "identical to the recording" in capsys.readouterr().out


@UNIX
def test_sighup_starts_a_new_recording_if_the_old_one_was_renamed(
    start: Start, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, old = tmp_path / "recording.jsonl", tmp_path / "recording.old"
    service = start("--config", str(config), "--grpc", "127.0.0.1:0", "--record", str(recording))
    shim = Shim(service.address)
    shim.register()
    shim.send(work(3, app="one"))
    shim.allocations(3)
    recording.rename(old)
    service.signal(signal.SIGHUP)
    service.wait_for("the configuration was reloaded")
    assert '"part"' in recording.read_text().splitlines()[0]
    shim.send(work(3, app="two"))
    shim.allocations(3)
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    shim.close()
    assert '"two"' not in old.read_text()
    assert main(["replay", "--quiet", str(old), str(recording)]) == 0
    assert "6 allocations" in capsys.readouterr().out


# -- refused starts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no configuration: give --config FILE"),
        (["--config", "gone.yaml"], "gone.yaml: cannot be read: No such file or directory"),
        (["--demo", "--grpc", "nowhere"], "'nowhere' is not an address"),
        (["--demo", "--grpc", "0.0.0.0:0"], "--insecure-bind if this is intended"),
        (["--demo", "--tls-cert", "a.pem"], "--tls-cert needs --tls-key too"),
        (["--demo", "--tls-key", "a.pem"], "--tls-key needs --tls-cert too"),
        (["--demo", "--tls-client-ca", "a.pem"], "--tls-client-ca needs --tls-cert and --tls-key"),
        (["--demo", "--log", "grcp=info"], "did you mean 'grpc'?"),
        (["--demo", "--session-timeout", "soon"], "expected a duration such as 30s"),
        (["--demo", "--session-timeout", "0s"], "has to be longer than 0s"),
        (["--demo", "--session-timeout=-3s"], "has to be longer than 0s, not -3s"),
        (["--demo", "--record-size", "1Gi"], "needs --record FILE"),
        (["--demo", "--record", "r", "--record-size", "1k"], "has to be at least 64Ki"),
        (["--demo", "--record", "r", "--record-size", "much"], "expected a whole number with an optional"),
        (["--demo", "--callback-timeout", "never"], "the core cannot wait without a limit"),
    ],
)
def test_invalid_options_are_reported_in_one_message(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *arguments]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "bug" not in shown


def test_missing_grpc_is_reported_with_what_to_install(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    script = (
        "import sys; sys.modules['grpc'] = None\n"
        "from yunikorn.cli.main import main; sys.exit(main(['serve', '--demo']))"
    )
    done = run_python("-c", script)
    assert done.returncode == 2
    assert "grpc is not installed" in done.stderr
    assert "pip install 'yunikorn[grpc]'" in done.stderr


def test_missing_protobuf_is_reported_with_what_recording_needs(
    run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    script = (
        "import sys; sys.modules['google'] = None\n"
        "from yunikorn.cli.main import main\n"
        f"sys.exit(main(['serve', '--demo', '--grpc', 'off', '--record', {str(tmp_path / 'run.jsonl')!r}]))"
    )
    done = run_python("-c", script)
    assert done.returncode == 2
    assert (
        "protobuf is not installed, but is needed for --record: pip install 'yunikorn[grpc]'" in done.stderr
    )
