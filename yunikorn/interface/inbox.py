"""The inbox of a core that has a thread of its own: bounded, in order, open until it is closed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class Closed(Exception):
    """Nothing more goes into this inbox."""


class Inbox(Generic[Entry]):
    """Entries from any thread, for one that takes them.

    When it is full whoever puts something in waits: what is not taken in yet stays with its sender, so
    that a flood of messages costs no memory here.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"an inbox needs room for something, not for {capacity} entries")
        self.capacity = capacity
        self._entries: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._waiting: list[Callable[[], object]] = []
        """To be told, once, that there is room."""
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Entry, *, always: bool = False) -> None:
        """Put an entry in, and wait for room if there is none; raises `Closed`.

        With `always` it is put in at once, however full it is: for the one thread that would otherwise
        wait for itself.
        """
        with self._changed:
            while not (self._closed or always or len(self._entries) < self.capacity):
                self._changed.wait()
            self._add(entry)

    def offer(self, entry: Entry, room: Callable[[], object]) -> bool:
        """Put an entry in if there is room; else have `room` called, once, when it is worth another try.

        Returns whether it is in; raises `Closed`. `room` is called by whichever thread made the room.
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
        """Up to `most` entries, after waiting for one for at most `timeout` seconds (None: for ever).

        Empty when the time is over, or when it is closed and there is nothing left.
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
        """Whether nothing more goes in; what is in can still be taken."""
        return self._closed

    def close(self) -> None:
        """Take nothing more; whoever waits for room hears `Closed`."""
        with self._changed:
            self._closed = True
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for room in waiting:
            room()
