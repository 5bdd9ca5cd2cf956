"""`yunikorn kubernetes` as a process of its own, for tests with a real cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.processes import freeze

CHECKOUT = Path(__file__).parent.parent.parent
AT_WORK = "the cluster is scheduled"
"""Line of the log after which pods are placed."""
PATIENCE = 120.0
"""Seconds in which a process has to start, on a busy machine."""


class Running(Protocol):
    """The part of a `Popen` that is used."""

    stderr: IO[str] | None

    @property
    def pid(self) -> int:
        """Process id."""
        ...

    def poll(self) -> int | None:
        """Return the exit status, None if the process runs."""
        ...

    def send_signal(self, sent: int, /) -> None:
        """Send a signal."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit status."""
        ...


def environment(installed: Path | None = None) -> dict[str, str]:
    """Return the environment in which the schedulers of this checkout run."""
    folders = [*([installed] if installed else []), CHECKOUT, CHECKOUT / "plugins", CHECKOUT / "policies"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}


def launch(arguments: Sequence[str], installed: Path | None = None) -> Running:
    """Start `yunikorn` with arguments."""
    return subprocess.Popen(
        [sys.executable, "-m", "yunikorn", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(installed),
        text=True,
    )


class SchedulerProcess:
    """A running scheduler; a context manager that ends it."""

    def __init__(
        self,
        cluster: Cluster,
        *arguments: str,
        leader_election: bool | None = False,
        installed: Path | None = None,
        start: Callable[[Sequence[str]], Running] | None = None,
    ) -> None:
        """Start a scheduler for a cluster; further arguments are those of the command.

        They replace the usual credentials, REST address and namespace. Whether the process waits for a lease
        is up to the command where `leader_election` is None. Packages in the folder `installed` are found as
        installed ones. `start` starts the process with arguments in another way.
        """
        election = {True: ["--leader-election"], False: ["--no-leader-election"], None: []}[leader_election]
        usual = {"--kubeconfig": str(cluster.kubeconfig), "--rest": "off", "--namespace": "default"}
        given = [part for option in usual.items() if option[0] not in arguments for part in option]
        begin = start or partial(launch, installed=installed)
        self._process = begin(["kubernetes", *given, *election, *arguments])
        self.lines: list[str] = []
        """Lines of the log so far."""
        self._changed = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def __enter__(self) -> SchedulerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Process id, for measurements."""
        return self._process.pid

    @property
    def log(self) -> str:
        """Log so far."""
        return "\n".join(self.lines)

    def wait_for(self, text: str, timeout: float = PATIENCE, *, since: int = 0) -> SchedulerProcess:
        """Wait until a line of the log has this text; raise `AssertionError` with the log if none has.

        The first `since` lines do not count.
        """

        def there() -> bool:
            return any(text in line for line in self.lines[since:])

        with self._changed:
            found = self._changed.wait_for(lambda: self._is_over or there(), timeout)
        assert found, f"after {timeout:g} s no '{text}' in:\n{self.log}"
        assert there(), f"the scheduler has ended:\n{self.log}"
        return self

    @property
    def is_alive(self) -> bool:
        """True until the process has ended."""
        return self._process.poll() is None

    def wait_until_at_work(self) -> SchedulerProcess:
        """Wait until pods are placed."""
        return self.wait_for(AT_WORK)

    def wait_for_lines(self, count: int, timeout: float) -> None:
        """Wait until the log has this number of lines, for `timeout` seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or len(self.lines) >= count, timeout)

    def freeze(self) -> None:
        """Stop the process as it is, until `thaw`."""
        freeze(self._process.pid)

    def thaw(self) -> None:
        """Let a frozen process continue."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process at once, as `kill -9` does."""
        self._process.kill()
        self._process.wait()
        self._close()

    def stop(self) -> int:
        """End the process in order; return its exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, timeout: float = PATIENCE) -> int:
        """Wait for the end of the process; return its exit status."""
        status = self._process.wait(timeout)
        self._close()
        return status

    def _close(self) -> None:
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()
