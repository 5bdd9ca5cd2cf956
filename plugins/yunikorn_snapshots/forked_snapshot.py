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
import warnings
from contextlib import suppress
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


@attrs.frozen
class SnapshotInProgress:
    """A snapshot that a child writes, or that is complete; `wait` may be called in any thread, once."""

    path: Path
    pid: int = 0
    """Id of the child; 0 if there is none."""
    pipe: int = -1
    """Descriptor from which the child's result is read."""
    header: SnapshotHeader | None = None

    def wait(self, longest: float = LONGEST) -> SnapshotHeader:
        """Wait up to so many seconds, and return the header; raise `SnapshotError` if there is no file."""
        if self.header is not None:
            return self.header
        content = b""
        try:
            while select.select([self.pipe], [], [], longest)[0] and (part := os.read(self.pipe, 65_536)):
                content += part
        finally:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.pipe)
            part_of(self.path, self.pid).unlink(missing_ok=True)
        try:
            result = json.loads(content)
        except ValueError:
            raise SnapshotError(f"process {self.pid}, which wrote it, ended or took too long") from None
        if "error" in result:
            raise SnapshotError(result["error"])
        return msgspec.convert(result, SnapshotHeader)


def begin_snapshot(scheduler: Scheduler, path: Path) -> SnapshotInProgress:
    """Begin a snapshot in the core's thread, between two calls of the scheduler; the rest is done by `wait`.

    Raises `SnapshotError` if the scheduler is in no state for that.
    """
    refuse(scheduler)
    if not hasattr(os, "fork"):
        return SnapshotInProgress(path, header=take_snapshot(scheduler, path))
    reading, writing = os.pipe()
    # A collection in the child would touch, and thereby copy, every page.
    gc.freeze()
    try:
        with warnings.catch_warnings():
            # The child makes no use of what other threads may have locked.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _write_and_leave(scheduler, path, writing)
    finally:
        gc.unfreeze()
    os.close(writing)
    return SnapshotInProgress(path, pid, reading)


def _write_and_leave(scheduler: Scheduler, path: Path, pipe: int) -> None:
    """Write the snapshot in the child, send its header or the reason, and end the child."""
    try:
        gc.disable()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.nice(5)
        result = json.dumps(attrs.asdict(take_snapshot(scheduler, path)))
    except BaseException as error:
        result = json.dumps({"error": f"{error}" if isinstance(error, SnapshotError) else repr(error)})
    try:
        sent = result.encode()
        while sent:
            sent = sent[os.write(pipe, sent) :]
    finally:
        os._exit(0)
