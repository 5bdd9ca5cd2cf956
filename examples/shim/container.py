"""Process of a task that survives a restart of the shim; its file has a description and holds a lock."""

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
    """Process of an allocation."""

    file: Path
    uuid: str
    node: str
    pid: int

    @classmethod
    def start(cls, file: Path, uuid: str, node: str, command: Sequence[str]) -> Container:
        """Start a process, which inherits the lock; the lock ends with the process and all its children."""
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
        """Return the container recorded in `file`, possibly by an earlier shim; None if there is none."""
        try:
            return cls(file, **json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    @property
    def lives(self) -> bool:
        """True if the process or one of its children is running."""
        with contextlib.suppress(ChildProcessError):  # a process of an earlier shim is no child of this one
            os.waitpid(self.pid, os.WNOHANG)
        with self.file.open() as locked:
            try:
                fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def stop(self) -> None:
        """Send SIGTERM to the process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
