"""A Unix socket belongs to one service: a second service is refused, and names the holder."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest

from tests.service.harness import ServiceHarness, serve
from tests.service.process import Service, Shim, Start
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_service.address import SocketLock
from yunikorn_service.service_settings import ServerSettings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs sockets of the file system")


async def never(_: ServiceHarness) -> None:
    """A service that must not start."""
    raise AssertionError


def test_second_service_is_rejected_and_the_first_continues(registry: Registry, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/y.sock"

    async def scenario(harness: ServiceHarness) -> None:
        def again() -> None:
            serve(registry, never, ServerSettings(address))

        with pytest.raises(UsageError) as refused:
            await asyncio.to_thread(again)
        assert f"cannot listen at {address}: process {os.getpid()} already listens there" in str(
            refused.value
        )
        await harness.register()

    serve(registry, scenario, ServerSettings(address))


def test_socket_of_another_program_is_detected(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "y.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(UsageError, match=r"cannot listen at .*y\.sock: .* already listens there"):
            serve(registry, never, ServerSettings(f"unix:{path}"))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    assert list(tmp_path.iterdir()) == [path], "a refused service leaves no lock behind"


@pytest.mark.parametrize("name", ["left", "held"])
def test_socket_of_a_killed_service_is_taken_over(registry: Registry, tmp_path: Path, name: str) -> None:
    path = tmp_path / "y.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    (tmp_path / "y.sock.lock").write_text("1\n" if name == "held" else "")

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()

    serve(registry, scenario, ServerSettings(f"unix:{path}"))
    assert list(tmp_path.iterdir()) == [], "neither socket nor lock is left by an orderly end"


def test_regular_file_is_not_replaced(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "y.sock"
    path.write_text("precious")
    with pytest.raises(UsageError, match="exists, and is not a socket"):
        serve(registry, never, ServerSettings(f"unix:{path}"))
    assert path.read_text() == "precious"


def test_missing_folder_is_reported(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot listen at unix:.*gone/y\.sock: .*No such file"):
        serve(registry, never, ServerSettings(f"unix:{tmp_path}/gone/y.sock"))


def test_only_one_of_two_simultaneous_services_gets_the_socket(tmp_path: Path) -> None:
    first = SocketLock(str(tmp_path / "y.sock"))
    with pytest.raises(UsageError, match=f"process {os.getpid()} already listens there"):
        SocketLock(str(tmp_path / "y.sock"))
    lock = tmp_path / "y.sock.lock"
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    first.release()
    SocketLock(str(tmp_path / "y.sock")).release()
    assert not lock.exists()


def test_second_process_reports_the_first(start: Start, config: Path, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/y.sock"
    first = start("--config", str(config), "--grpc", address)
    second: Service = start("--config", str(config), "--grpc", address)
    assert second.end() == 2
    assert f"process {first.process.pid} already listens there" in "".join(second.log)
    shim = Shim(address)
    shim.register()
    shim.close()
    first.signal(signal.SIGKILL)
    first.end()
    third = start("--config", str(config), "--grpc", address)
    again = Shim(address)
    again.register()
    again.close()
    third.signal(signal.SIGTERM)
    assert third.end() == 0
    assert not (tmp_path / "y.sock").exists()
