"""A thread that delivers events one batch after the other, and does not give up at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import attrs

from yunikorn.api import Event

Post = Callable[[Sequence[Event]], None]
"""Delivers a batch; raises `TryLater` or `Refused`."""
Report = Callable[[str, BaseException | str], None]
"""The scheduler's `context.report`."""


class TryLater(Exception):
    """The other side is not there, or busy: the same again may succeed."""


class Refused(Exception):
    """The other side does not want it: the same again would be refused again."""


@attrs.frozen
class Retries:
    """How often, and after how many seconds, a delivery is tried again."""

    most: int
    first_wait: float
    longest_wait: float

    def wait(self, tried: int) -> float:
        """Seconds to wait when it was tried so often in vain."""
        return min(self.longest_wait, self.first_wait * 2.0 ** min(tried - 1, 60))


@attrs.frozen
class Counts:
    """What became of events."""

    waiting: int = 0
    delivered: int = 0
    dropped: int = 0
    """Found no room in the buffer, were refused, or tried too often."""
    retries: int = 0
    """Requests that were made again."""


class Courier:
    """Takes events without waiting, and delivers them in their order."""

    def __init__(self, post: Post, report: Report, capacity: int, batch: int, retries: Retries) -> None:
        self._post, self._report = post, report
        self._capacity, self._batch, self._retries = capacity, batch, retries
        self._changed = threading.Condition()
        self._events: deque[Event] = deque()
        self._in_hand = self._delivered = self._dropped = self._retried = 0
        self._ending = self._giving_up = False
        self._thread = threading.Thread(target=self._run, name="yunikorn-webhook", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    @property
    def counts(self) -> Counts:
        """How things stand."""
        with self._changed:
            waiting = len(self._events) + self._in_hand
            return Counts(waiting, self._delivered, self._dropped, self._retried)

    def take(self, batch: Sequence[Event]) -> None:
        """Keep these events for delivery, as many as have room."""
        with self._changed:
            room = max(0, self._capacity - len(self._events) - self._in_hand)
            self._events.extend(batch[:room])
            self._changed.notify_all()
            self._drop(len(batch) - room, "its buffer is full")

    def stop(self, patience: float) -> None:
        """Deliver what waits, for so many seconds at the most; the rest is dropped."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(patience)
        with self._changed:
            self._giving_up = True
            self._changed.notify_all()
            left = len(self._events)
            self._events.clear()
            self._drop(left, "they were not delivered in time at the end")

    def _drop(self, count: int, why: str) -> None:
        if count > 0:
            before, self._dropped = self._dropped, self._dropped + count
            if before.bit_length() != self._dropped.bit_length():
                # The first, and then each time their number has doubled.
                self._report("delivering events", f"{self._dropped} were dropped so far: {why}")

    # -- in its own thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        while batch := self._next():
            self._deliver(batch)

    def _next(self) -> list[Event]:
        """The next batch, after waiting for it; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._ending)
            batch = [self._events.popleft() for _ in range(min(self._batch, len(self._events)))]
            self._in_hand = len(batch)
            return batch

    def _deliver(self, batch: list[Event]) -> None:
        tried = 0
        while True:
            try:
                self._post(batch)
            except TryLater as error:
                tried += 1
                if tried <= self._retries.most and self._wait(self._retries.wait(tried)):
                    continue
                self._settle(0, len(batch), f"tried {tried} times: {error}")
            except Refused as error:
                self._settle(0, len(batch), str(error))
            else:
                self._settle(len(batch), 0, "")
            return

    def _wait(self, seconds: float) -> bool:
        """Wait before a retry; returns whether there is to be one."""
        with self._changed:
            self._changed.wait_for(lambda: self._giving_up, seconds)
            if not self._giving_up:
                self._retried += 1
            return not self._giving_up

    def _settle(self, delivered: int, dropped: int, why: str) -> None:
        with self._changed:
            self._in_hand = 0
            self._delivered += delivered
            self._drop(dropped, why)
