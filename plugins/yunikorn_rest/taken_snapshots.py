"""Snapshots of the running scheduler for clients, one at a time, in files without a name."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from yunikorn.clock import SECOND
from yunikorn.interface.scheduler import Scheduler
from yunikorn_commands.extras import importing_extra
from yunikorn_service.background import begin_shared
from yunikorn_service.runtime.sliced_reads import STALLED, CoreReader, Slices

if TYPE_CHECKING:
    from yunikorn_snapshots.forked_snapshot import SnapshotInProgress

PATIENCE = 5 * SECOND
"""Time in which the answers of policies that workers have asked must arrive (ns)."""
MEMORY = "/dev/shm"
"""Folder for a process that may write nowhere else, such as a pod with a read-only file system."""


class SnapshotTaking:
    """Snapshots of one service; used in its event loop."""

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        """Create without a snapshot in progress; `stopwatch` returns nanoseconds."""
        self._stopwatch = stopwatch
        self._begun: SnapshotInProgress | None = None
        self._is_unwanted = False
        self.is_busy = False
        """True while a snapshot is written."""

    async def take(self, core: CoreReader) -> BinaryIO:
        """Return an open file with a snapshot, which is deleted already; call only if none is in progress.

        Raises `SnapshotError`, `OSError`, or `MissingExtra`. The snapshot ends if the caller is canceled.
        """
        self.is_busy, self._is_unwanted = True, False
        working = begin_shared(self._taken(core))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            self.stop()
            working.add_done_callback(_close)
            raise

    def stop(self) -> None:
        """End the snapshot in progress, if there is one."""
        self._is_unwanted = True
        if self._begun is not None:
            self._begun.abandon()

    async def _taken(self, core: CoreReader) -> BinaryIO:
        try:
            with _folder() as folder:
                path = Path(folder, "snapshot")
                self._begun = await core.read(functools.partial(self._begin, path))
                if self._is_unwanted:
                    self._begun.abandon()
                await asyncio.to_thread(self._begun.wait)
                return path.open("rb")
        finally:
            self._begun, self.is_busy = None, False

    def _begin(self, path: Path, scheduler: Scheduler) -> Slices[SnapshotInProgress]:
        """Begin as soon as no worker asks a policy."""
        with importing_extra("foresight", "for snapshots"):
            from yunikorn_snapshots.forked_snapshot import begin_snapshot
            from yunikorn_snapshots.snapshot_errors import SnapshotNotYet
        until = self._stopwatch() + PATIENCE
        while True:
            try:
                return begin_snapshot(scheduler, path)
            except SnapshotNotYet:
                if self._is_unwanted or self._stopwatch() >= until:
                    raise
            yield STALLED


def _folder() -> tempfile.TemporaryDirectory[str]:
    prefix = "yunikorn-"
    try:
        return tempfile.TemporaryDirectory(prefix=prefix)
    except OSError:
        if not Path(MEMORY).is_dir():
            raise
        return tempfile.TemporaryDirectory(prefix=prefix, dir=MEMORY)


def _close(ended: asyncio.Task[BinaryIO]) -> None:
    """Close the file of a snapshot that no one waits for."""
    if not ended.cancelled() and ended.exception() is None:
        ended.result().close()
