"""`yunikorn serve` as a process: how it begins, reloads, ends, and what a kill leaves behind."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.core.kit import configuration
from tests.service.kit import PATIENCE, work
from yunikorn.cli.main import main
from yunikorn.interface.messages import (
    Allocation,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    SchedulerAction,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.wire import v0_11
from yunikorn.interface.wire.methods import REGISTER, SCHEDULER, UPDATE, path
from yunikorn.resources import Resource

SMALL = configuration({"name": "a"})
BIGGER = configuration({"name": "a"}, {"name": "b"})
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


class Service:
    """A service in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        places = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "yunikorn", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self.log: list[str] = []
        assert self.process.stderr is not None
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        self.welcome = self.process.stdout.readline().strip()

    def _read(self, stream: Any) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put("")

    @property
    def address(self) -> str:
        """Where it listens, as it says itself."""
        return self.welcome.partition(" at ")[2].partition(",")[0]

    def wait_for(self, text: str) -> str:
        """The next line of the log with this text."""
        while True:
            line = self._lines.get(timeout=PATIENCE)
            assert line, f"the log ended without '{text}':\n{''.join(self.log)}"
            self.log.append(line)
            if text in line:
                return line

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for its end; returns its exit status."""
        status = self.process.wait(PATIENCE)
        while line := self._lines.get(timeout=PATIENCE):
            self.log.append(line)
        return status

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


Start = Callable[..., Service]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts services; they are gone after the test."""
    services: list[Service] = []

    def begin(*arguments: str) -> Service:
        services.append(Service(*arguments))
        return services[-1]

    yield begin
    for service in services:
        service.close()


class Shim:
    """A resource manager that is out of this process's service."""

    def __init__(self, address: str) -> None:
        self.channel: Any = grpc.insecure_channel(address)
        self._requests: queue.Queue[bytes | None] = queue.Queue()

    def register(self) -> None:
        """Register, when the service is there."""
        call = self.channel.unary_unary(path(SCHEDULER, REGISTER))
        call(
            v0_11.REGISTER_REQUEST.encode(RegisterResourceManagerRequest("rm")),
            timeout=PATIENCE,
            wait_for_ready=True,
        )
        self.call = self.channel.stream_stream(path(SCHEDULER, UPDATE))(iter(self._requests.get, None))

    def send(self, request: UpdateRequest) -> None:
        """Send an update."""
        self._requests.put(v0_11.UPDATE_REQUEST.encode(request))

    def read(self) -> UpdateResponse:
        """The next response; raises what gRPC raises."""
        return v0_11.UPDATE_RESPONSE.decode(next(self.call))

    def allocations(self, number: int) -> list[Allocation]:
        """The next so many allocations."""
        found: list[Allocation] = []
        while len(found) < number:
            found += self.read().new_allocations
        return found

    def end(self) -> grpc.StatusCode:
        """How the stream ends; whatever comes before is passed over."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError:
            pass
        code: grpc.StatusCode = self.call.code()
        return code

    def close(self) -> None:
        """Half-close, and leave."""
        self._requests.put(None)
        self.channel.close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration in a folder of its own."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "queues.yaml").write_text(SMALL)
    return folder / "queues.yaml"


@UNIX
def test_it_says_where_it_is_serves_and_ends_on_sigterm(start: Start, config: Path) -> None:
    service = start("--config", str(config), "--grpc", "127.0.0.1:0")
    assert "without TLS and so for this machine only" in service.welcome
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
    service.wait_for("nothing was changed")
    service.wait_for(f"{config}: partitions[0].queues")
    config.write_text(BIGGER)
    service.signal(signal.SIGHUP)
    service.wait_for("it changed for: rm")
    request = work(1)
    request.new_applications[0].queue_name = "root.b"
    shim.send(request)
    assert shim.allocations(1)[0].queue_name == "root.b"
    service.signal(signal.SIGINT)
    assert service.end() == 0
    shim.close()


@UNIX
def test_a_file_that_changes_is_noticed(start: Start, config: Path) -> None:
    service = start("--config", str(config.parent), "--watch", "--grpc", "127.0.0.1:0")
    shim = Shim(service.address)
    shim.register()
    other = config.with_suffix(".new")
    other.write_text(BIGGER)
    other.replace(config)
    service.wait_for("a file has changed: the configuration was read again; it changed for: rm")
    shim.close()


@UNIX
def test_after_a_kill_the_books_are_as_they_were(start: Start, config: Path, tmp_path: Path) -> None:
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
    # Of the eight that fit four are there already.
    new = again.allocations(4)
    assert {one.allocation_key for one in new} == {f"app-{i}" for i in range(4, 8)}
    assert not {one.uuid for one in new} & {one.uuid for one in placed}
    again.send(UpdateRequest("rm", asks=work(9).asks[8:]))
    again.send(UpdateRequest("rm", new_schedulable_nodes=work(1, app="more").new_schedulable_nodes))
    assert again.allocations(1)[0].node_id == "node-more"
    again.close()


@UNIX
def test_a_killed_resource_manager_is_paused_and_told_resync(start: Start, config: Path) -> None:
    service = start("--config", str(config), "--grpc", "127.0.0.1:0", "--session-timeout", "10m")
    script = (
        "import sys; from tests.service.test_process import Shim, work\n"
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
def test_what_was_recorded_is_decided_again_the_same(
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
    service.wait_for("it changed for: rm")
    request = work(5, app="four")
    request.new_applications[0].queue_name = "root.b"
    shim.send(request)
    shim.allocations(5)
    service.signal(signal.SIGKILL)
    service.end()
    shim.end()
    shim.close()
    assert main(["replay", str(recording)]) == 0
    assert "identical to what was recorded" in capsys.readouterr().out


# -- what cannot be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is nothing to schedule by: give --config FILE"),
        (["--config", "gone.yaml"], "gone.yaml: cannot be read: No such file or directory"),
        (["--demo", "--grpc", "nowhere"], "'nowhere' is no address"),
        (["--demo", "--grpc", "0.0.0.0:0"], "--insecure-bind if you mean it"),
        (["--demo", "--tls-cert", "a.pem"], "--tls-cert needs --tls-key beside it"),
        (["--demo", "--tls-key", "a.pem"], "--tls-key needs --tls-cert beside it"),
        (["--demo", "--tls-client-ca", "a.pem"], "--tls-client-ca needs --tls-cert and --tls-key"),
        (["--demo", "--log", "grcp=info"], "did you mean 'grpc'?"),
        (["--demo", "--session-timeout", "soon"], "expected a duration such as 30s"),
        (["--demo", "--session-timeout", "0s"], "has to be longer than 0s"),
        (["--demo", "--session-timeout=-3s"], "has to be longer than 0s, not -3s"),
        (["--demo", "--callback-timeout", "never"], "the core cannot wait for ever"),
    ],
)
def test_what_cannot_be_is_told_in_one_message(
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


def test_without_grpc_it_says_what_to_install(
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


def test_without_protobuf_it_says_what_recording_needs(
    run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    script = (
        "import sys; sys.modules['google'] = None\n"
        "from yunikorn.cli.main import main\n"
        f"sys.exit(main(['serve', '--demo', '--grpc', 'off', '--record', {str(tmp_path / 'run.jsonl')!r}]))"
    )
    done = run_python("-c", script)
    assert done.returncode == 2
    assert "--record needs the package protobuf: pip install 'yunikorn[grpc]'" in done.stderr
