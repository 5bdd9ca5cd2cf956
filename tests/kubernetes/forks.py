"""Schedulers that start by a fork of a process with all modules loaded, in a fraction of the time.

A forked process runs the same command with the same arguments, and is killed as any other. Three hundred
starts would otherwise spend most of their time with imports, a second of processor time each.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import IO

from tests.kubernetes.scheduler_process import environment

_LOADED = (
    *("yunikorn_commands.command_group", "yunikorn_kubernetes.commands.kubernetes"),
    *("yunikorn_kubernetes.shim.network", "yunikorn_rest.rest_door", "yunikorn_rest.served_rest"),
)
"""Modules that a scheduler loads when it starts."""
_PARENT = """
import gc, importlib, json, os, signal, socket, sys
channel = socket.socket(fileno=int(sys.argv[1]))
from yunikorn.cli.main import main
for name in LOADED:
    importlib.import_module(name)
from yunikorn.framework.defaults import DEFAULT_PLUGINS, import_default
for name in DEFAULT_PLUGINS:
    import_default(name)
gc.freeze()
while True:
    data, files, _, _ = socket.recv_fds(channel, 1 << 16, 1)
    if not data:
        break
    asked = json.loads(data)
    if isinstance(asked, int):
        channel.send(str(os.waitpid(asked, 0)[1]).encode())
        continue
    pid = os.fork()
    if pid == 0:
        channel.close()
        os.dup2(files[0], 2)
        os.close(files[0])
        sys.stderr = open(2, "w", buffering=1, closefd=False)
        sys.argv = ["yunikorn", *asked]
        sys.exit(main())
    os.close(files[0])
    channel.send(str(pid).encode())
"""


class Forks:
    """A process that forks schedulers; a context manager that ends it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start the process, with the environment of the schedulers."""
        self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PARENT.replace("LOADED", repr(_LOADED)), str(other.fileno())],
            pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=dict(environment),
        )
        other.close()

    def __enter__(self) -> Forks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; schedulers that it has forked are not ended."""
        self._channel.close()
        self._process.wait()

    def start(self, arguments: Sequence[str]) -> Fork:
        """Start a scheduler with the arguments of `yunikorn`."""
        reader, writer = os.pipe()
        socket.send_fds(self._channel, [json.dumps(list(arguments)).encode()], [writer])
        os.close(writer)
        return Fork(self, int(self._channel.recv(64)), os.fdopen(reader, "r", encoding="utf-8"))

    def wait(self, pid: int) -> int:
        """Wait for the end of a process, and return its exit status."""
        self._channel.send(str(pid).encode())
        return os.waitstatus_to_exitcode(int(self._channel.recv(64)))


class Fork:
    """A forked scheduler, with the methods of a `Popen` that are used."""

    def __init__(self, forks: Forks, pid: int, stderr: IO[str]) -> None:
        self._forks, self.pid = forks, pid
        self.stderr: IO[str] | None = stderr
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, None if the process runs."""
        if self._status is None and self._has_ended(0):
            self._status = self._forks.wait(self.pid)
        return self._status

    def send_signal(self, sent: int, /) -> None:
        """Send a signal, unless the process has been waited for."""
        if self._status is None:
            os.kill(self.pid, sent)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; raise `TimeoutExpired` after `timeout` seconds."""
        if self._status is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired("yunikorn", timeout or 0.0)
            self._status = self._forks.wait(self.pid)
        return self._status

    def _has_ended(self, timeout: float | None) -> bool:
        watched = os.pidfd_open(self.pid)
        try:
            return bool(select.select([watched], [], [], timeout)[0])
        finally:
            os.close(watched)


@cache
def shared_forks() -> Forks:
    """Return the process that forks schedulers for all tests of this process, until this process ends."""
    forks = Forks(environment())
    atexit.register(forks.close)
    return forks
