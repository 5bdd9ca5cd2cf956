"""Files that change: found by looking at them, again and again.

Looking is enough for a handful of files, and sees what notifications miss: files that are replaced as a
whole, links that are moved to another version (as Kubernetes does), folders on the network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

INTERVAL = 1.0
"""Seconds between two looks."""

Look = tuple[tuple[str, int, int, int], ...]
"""Of each file: its path, and what tells one content from another."""


class FileWatch:
    """Says when files have changed and are not being written any more."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._known = self._last = self._look()

    def settled(self) -> bool:
        """Whether the files differ from those of the last time it said so, and stayed the same for one look.

        To be called at intervals. A file that is just being written changes from one look to the next.
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
    """Have `changed` called after every change, for ever."""
    watched = FileWatch(files)
    while True:
        await asyncio.sleep(interval)
        if watched.settled():
            await changed()
