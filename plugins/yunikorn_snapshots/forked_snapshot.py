"""Snapshots of a scheduler that goes on: a copy of the process writes the file, and no decision waits for it.

The core's thread forks between two decisions, which takes some milliseconds. The child has the state of that
moment, and does nothing but write: it starts no thread, logs nothing, calls neither gRPC nor event loops, and
leaves by `os._exit`. Where processes cannot be forked, the snapshot is taken in one piece.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import msgspec

from yunikorn_snapshots.process_parts import refuse
from yunikorn_snapshots.snapshot_errors import SnapshotError
from yunikorn_snapshots.snapshot_file import SnapshotHeader, part_of
from yunikorn_snapshots.snapshots import take_snapshot

if TYPE_CHECKING:
    from yunikorn.interface.scheduler import Scheduler

LONGEST = 300.0
"""Seconds after which a snapshot is given up."""
MOST_DESCRIPTORS = 1 << 20
"""Number from which on no descriptor is open."""


@attrs.define(eq=False)
class SnapshotInProgress:
    """A snapshot that a child writes, or that is complete; its methods may be called in any thread."""

    path: Path
    pid: int = 0
    """Id of the child; 0 if there is none."""
    pipe: int = -1
    """Descriptor from which the child's result is read."""
    header: SnapshotHeader | None = None
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _is_over: bool = attrs.field(default=False, init=False)

    def wait(self, longest: float = LONGEST) -> SnapshotHeader:
        """Wait up to so many seconds, once, and return the header; raise `SnapshotError` if there is none."""
        if self.header is not None:
            return self.header
        content = b""
        try:
            readable = select.poll()
            readable.register(self.pipe, select.POLLIN | select.POLLHUP)
            while readable.poll(longest * 1000) and (part := os.read(self.pipe, 65_536)):
                content += part
        finally:
            with self._lock:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self._is_over = True
            os.close(self.pipe)
            part_of(self.path, self.pid).unlink(missing_ok=True)
        try:
            result = json.loads(content)
        except ValueError:
            raise SnapshotError(f"process {self.pid}, which wrote it, ended or took too long") from None
        if "error" in result:
            raise SnapshotError(result["error"])
        return msgspec.convert(result, SnapshotHeader)

    def abandon(self) -> None:
        """End the child if it still writes; `wait` then raises `SnapshotError`."""
        with self._lock:
            if self.pid and not self._is_over:
                os.kill(self.pid, signal.SIGKILL)


def begin_snapshot(scheduler: Scheduler, path: Path) -> SnapshotInProgress:
    """Begin a snapshot in the core's thread, between two calls of the scheduler; the rest is done by `wait`.

    Raises `SnapshotError` if the scheduler is in no state for that.
    """
    refuse(scheduler)
    if not hasattr(os, "fork"):
        return SnapshotInProgress(path, header=take_snapshot(scheduler, path))
    reading, writing = os.pipe()
    try:
        with warnings.catch_warnings():
            # The child makes no use of what other threads may have locked.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _write_and_leave(scheduler, path, writing)
    except OSError as error:
        os.close(reading)
        raise SnapshotError(f"no process can be made that writes it: {error.strerror}") from error
    finally:
        os.close(writing)
    return SnapshotInProgress(path, pid, reading)


def _write_and_leave(scheduler: Scheduler, path: Path, pipe: int) -> None:
    """Write the snapshot in the child, send its header or the reason, and end the child."""
    try:
        # A collection would touch, and thereby copy, every page.
        gc.disable()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # A connection that the service closes would stay open here, and so would its address.
        os.closerange(3, pipe)
        os.closerange(pipe + 1, MOST_DESCRIPTORS)
        os.nice(5)
        result = json.dumps(attrs.asdict(take_snapshot(scheduler, path)))
    except BaseException as error:
        known = isinstance(error, (SnapshotError, OSError))
        result = json.dumps({"error": f"{error}" if known else repr(error)})
    try:
        sent = result.encode()
        while sent:
            sent = sent[os.write(pipe, sent) :]
    finally:
        os._exit(0)
