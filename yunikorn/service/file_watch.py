"""Detection of changed files by polling.

Polling is enough for a handful of files, and detects changes that notifications miss: files that are replaced
as a whole, links that are moved to another version (as Kubernetes does for mounted ConfigMaps), and folders
on network file systems.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

INTERVAL = 1.0
"""Seconds between two polls."""

Look = tuple[tuple[str, int, int, int], ...]
"""Path, modification time in ns, size in bytes and inode of each file."""


class FileWatch:
    """Detector of changed files that waits until the files are completely written."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._known = self._last = self._look()

    def settled(self) -> bool:
        """Return True once after each change, as soon as the files are the same in two consecutive calls.

        Call this method at intervals. A file that is being written changes between two calls.
        """
        now = self._look()
        same, self._last = now == self._last, now
        if not same or now == self._known:
            return False
        self._known = now
        return True

    def _look(self) -> Look:
        return tuple(_trait(path) for path in self._files())


def _trait(path: Path) -> tuple[str, int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), -1, -1, -1
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino


async def watch(
    files: Callable[[], Iterable[Path]],
    changed: Callable[[], Awaitable[object]],
    interval: float = INTERVAL,
) -> None:
    """Call `changed` after every change of the files, until the task is cancelled."""
    watched = FileWatch(files)
    while True:
        await asyncio.sleep(interval)
        if watched.settled():
            await changed()
