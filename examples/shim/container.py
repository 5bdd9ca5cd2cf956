"""A process of a task that outlives the shim: a file says what it is, and a lock on it that it lives."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import attrs


@attrs.frozen
class Container:
    """A process, and the allocation it runs in."""

    file: Path
    uuid: str
    node: str
    pid: int

    @classmethod
    def start(cls, file: Path, uuid: str, node: str, command: Sequence[str]) -> Container:
        """Start it. The process inherits the lock: it is gone when the process and all its children are."""
        with file.open("w") as locked, file.with_suffix(".log").open("w") as log:
            fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TASK": file.stem, "NODE": node},
                start_new_session=True,
                pass_fds=[locked.fileno()],
            )
            container = cls(file, uuid, node, process.pid)
            json.dump({"uuid": uuid, "node": node, "pid": process.pid}, locked)
        return container

    @classmethod
    def find(cls, file: Path) -> Container | None:
        """The one that was started with this file, whoever did; None if that came to nothing."""
        try:
            return cls(file, **json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    @property
    def lives(self) -> bool:
        """Whether any of its processes does."""
        with contextlib.suppress(ChildProcessError):  # one of an earlier shim is nobody's child
            os.waitpid(self.pid, os.WNOHANG)
        with self.file.open() as locked:
            try:
                fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def stop(self) -> None:
        """Ask it to end."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
