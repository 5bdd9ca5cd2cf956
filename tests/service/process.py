"""Test kit for `yunikorn serve` in a process of its own, and for resource managers that connect to it."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import grpc

from tests.service.kit import PATIENCE
from yunikorn.interface.messages import (
    Allocation,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.protocol import REGISTER, SCHEDULER, UPDATE, path


class Service:
    """A service in a process of its own."""

    def __init__(self, *arguments: str, without_stderr: bool = False) -> None:
        places = os.pathsep.join(filter(None, sys.path))
        # The command sets this variable in its own process, which may be that of the tests.
        given = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
        rest = () if "--rest" in arguments else ("--rest", "off")
        command = [sys.executable, "-m", "yunikorn", "serve", *rest, *arguments]
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" 2>&-', "sh", *command] if without_stderr else command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**given, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"},
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
        """Return the address from the log, once the service listens."""
        return self.welcome.partition(" at ")[2].partition(",")[0]

    def wait_for(self, text: str) -> str:
        """Return the next log line with this text."""
        while True:
            line = self._lines.get(timeout=PATIENCE)
            assert line, f"the log ended without '{text}':\n{''.join(self.log)}"
            self.log.append(line)
            if text in line:
                return line

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for the end of the process, and return its exit status."""
        status = self.process.wait(PATIENCE)
        while line := self._lines.get(timeout=PATIENCE):
            self.log.append(line)
        return status

    def close(self) -> None:
        """End the process if it still runs, and close its files."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


Start = Callable[..., Service]


class Shim:
    """A resource manager in the test's process, connected over gRPC."""

    def __init__(self, address: str) -> None:
        self.channel: Any = grpc.insecure_channel(address)
        self._requests: queue.Queue[bytes | None] = queue.Queue()

    def register(self) -> None:
        """Register as soon as the service listens."""
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
        """Return the next response; raises gRPC's error."""
        return v0_11.UPDATE_RESPONSE.decode(next(self.call))

    def allocations(self, number: int) -> list[Allocation]:
        """Return the next allocations, this many."""
        found: list[Allocation] = []
        while len(found) < number:
            found += self.read().new_allocations
        return found

    def end(self) -> grpc.StatusCode:
        """Return how the stream ends; responses before are skipped."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError:
            pass
        code: grpc.StatusCode = self.call.code()
        return code

    def close(self) -> None:
        """Half-close the stream and close the channel."""
        self._requests.put(None)
        self.channel.close()
