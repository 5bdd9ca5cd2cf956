"""Processes of the test cluster, which never outlive their parent, and reserved ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_LAUNCHER = """
import ctypes, os, sys
prctl = getattr(ctypes.CDLL(None), "prctl", None)
if prctl is not None:
    prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Replaces itself by a program that the kernel kills (signal 9) when its parent ends (`PR_SET_PDEATHSIG`, 1).

The comparison of the parent closes the gap before `prctl`. Systems other than Linux have no such signal:
there, the processes of a parent that was killed remain.
"""


_AT_WORK = frozenset("RSD")
"""States of threads in `/proc` that a stop signal has yet to reach."""


def freeze(pid: int) -> None:
    """Stop a process as it is, until SIGCONT; return once none of its threads runs any more.

    The signal alone is sent in no time, and on a busy machine the process works on for a while.
    """
    os.kill(pid, signal.SIGSTOP)
    pause = threading.Event()
    while _is_at_work(Path(f"/proc/{pid}/task")):
        pause.wait(0.001)


def _is_at_work(threads: Path) -> bool:
    try:
        return any(_state(thread) in _AT_WORK for thread in threads.iterdir())
    except FileNotFoundError:
        return False  # The process has ended, or the system has no /proc.


def _state(thread: Path) -> str:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"  # The thread has ended.


class Processes:
    """Starts processes and keeps those that run, by name."""

    def __init__(self, logs: Path) -> None:
        """Create it for a folder of logs, `NAME.log` each."""
        self.logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        # The kernel sends the signal when the starting *thread* ends, so one thread starts all.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="test-cluster")

    def start(self, name: str, program: Path, arguments: Sequence[str]) -> None:
        """Start a program, which must not run yet; its log is continued."""
        assert not self.alive(name), f"{name} runs already"
        self._running[name] = self._starter.submit(self._start, name, program, arguments).result()

    def _start(self, name: str, program: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
        with self.log(name).open("ab") as log:
            return subprocess.Popen(
                [*launcher, str(program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.logs,
                # Ctrl-C in a terminal reaches the parent only, which stops the others in order.
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        """Return the log of a process."""
        return self.logs / f"{name}.log"

    def end_of_log(self, name: str, lines: int = 15) -> str:
        """Return the last lines of a log."""
        try:
            text = self.log(name).read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    def alive(self, name: str) -> bool:
        """Return True if the process runs."""
        process = self._running.get(name)
        return process is not None and process.poll() is None

    def pid(self, name: str) -> int:
        """Return the process id."""
        return self._running[name].pid

    def freeze(self, name: str) -> None:
        """Stop a process as it is, if it runs, until `thaw`."""
        if self.alive(name):
            freeze(self.pid(name))

    def thaw(self, name: str) -> None:
        """Let a frozen process continue; others do anyway."""
        if self.alive(name):
            self._running[name].send_signal(signal.SIGCONT)

    def stop(self, name: str, sent: signal.Signals = signal.SIGTERM, *, timeout: float = 60) -> None:
        """Send a signal to a process and wait for its end; kill it after `timeout` seconds."""
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(sent)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self) -> None:
        """Kill all processes, the last started first."""
        for name in reversed(list(self._running)):
            self.stop(name, signal.SIGKILL)
        self._starter.shutdown()


class Ports:
    """Free ports of the loopback interface, which stay reserved until they are closed.

    Each port is bound with SO_REUSEPORT, without listening. Other programs cannot get the port, but a server
    of the same user that sets SO_REUSEPORT as well can listen on it, also after a restart.
    """

    def __init__(self) -> None:
        """Create it without any port."""
        self._sockets: list[socket.socket] = []

    def reserve(self) -> int:
        """Return a free port."""
        reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        self._sockets.append(reserved)
        return int(reserved.getsockname()[1])

    def close(self) -> None:
        """Give all ports back."""
        for reserved in self._sockets:
            reserved.close()
        self._sockets.clear()
