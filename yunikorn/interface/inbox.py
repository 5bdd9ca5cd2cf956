"""The inbox of a core with its own thread: bounded, ordered, and open until it is closed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class Closed(Exception):
    """Error of adding an entry to an inbox that is closed."""


class Inbox(Generic[Entry]):
    """A queue of entries from any thread for one consumer.

    A sender waits while the inbox is full, so a flood of messages takes no memory here.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"the capacity of an inbox must be at least 1 entry, got {capacity}")
        self.capacity = capacity
        self._entries: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._waiting: list[Callable[[], object]] = []
        """Functions to call once, as soon as there is room."""
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Entry, *, always: bool = False) -> None:
        """Add an entry, and wait for room if there is none; raise `Closed`.

        With `always` the entry is added at once even if the inbox is full: the consumer's own thread would
        otherwise wait for itself.
        """
        with self._changed:
            while not (self._closed or always or len(self._entries) < self.capacity):
                self._changed.wait()
            self._add(entry)

    def offer(self, entry: Entry, room: Callable[[], object]) -> bool:
        """Add an entry if there is room; otherwise `room` is called once, when another try may succeed.

        Returns True if the entry was added; raises `Closed`. `room` is called in the thread that made the
        room.
        """
        with self._changed:
            if len(self._entries) >= self.capacity and not self._closed:
                self._waiting.append(room)
                return False
            self._add(entry)
            return True

    def _add(self, entry: Entry) -> None:
        if self._closed:
            raise Closed
        self._entries.append(entry)
        if len(self._entries) == 1:
            self._changed.notify_all()

    def take(self, most: int, timeout: float | None) -> list[Entry]:
        """Remove and return up to `most` entries, after waiting for the first one.

        Waits for up to `timeout` seconds, or without limit if None. Returns an empty list when the time is
        over, or when the inbox is closed and empty.
        """
        waiting: list[Callable[[], object]] = []
        with self._changed:
            if not self._entries and not self._closed and timeout != 0:
                self._changed.wait_for(lambda: self._entries or self._closed, timeout)
            taken = [self._entries.popleft() for _ in range(min(most, len(self._entries)))]
            if taken:
                self._changed.notify_all()
                waiting, self._waiting = self._waiting, []
        for room in waiting:
            room()
        return taken

    @property
    def closed(self) -> bool:
        """True if the inbox takes no more entries; those inside can still be taken."""
        return self._closed

    def close(self) -> None:
        """Accept no more entries, and raise `Closed` in senders that wait for room."""
        with self._changed:
            self._closed = True
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for room in waiting:
            room()
