"""Thread that delivers batches of events in order, with retries."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import attrs

from yunikorn.api import Event

Post = Callable[[Sequence[Event]], None]
"""Function that delivers a batch. Raises `TryLater` or `Refused`."""
Report = Callable[[str, BaseException | str], None]
"""Type of the scheduler's `context.report`."""


class TryLater(Exception):
    """Temporary failure, such as an unreachable or busy server; a retry may succeed."""


class Refused(Exception):
    """Permanent refusal by the server; a retry would be refused again."""


@attrs.frozen
class Retries:
    """Maximum number and delays of retries."""

    most: int
    first_wait: float
    longest_wait: float

    def wait(self, tried: int) -> float:
        """Return the delay in seconds after `tried` failed attempts."""
        return min(self.longest_wait, self.first_wait * 2.0 ** min(tried - 1, 60))


@attrs.frozen
class Counts:
    """Numbers of events by outcome."""

    waiting: int = 0
    delivered: int = 0
    dropped: int = 0
    """Events lost to a full buffer, a refusal, or too many failed attempts."""
    retries: int = 0
    """Requests that were retried."""


class Courier:
    """Buffer and thread that accept events without blocking and deliver them in order."""

    def __init__(self, post: Post, report: Report, capacity: int, batch: int, retries: Retries) -> None:
        self._post, self._report = post, report
        self._capacity, self._batch, self._retries = capacity, batch, retries
        self._changed = threading.Condition()
        self._events: deque[Event] = deque()
        self._in_hand = self._delivered = self._dropped = self._retried = 0
        self._ending = self._giving_up = False
        self._thread = threading.Thread(target=self._run, name="yunikorn-webhook", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def counts(self) -> Counts:
        """Current numbers of events by outcome."""
        with self._changed:
            waiting = len(self._events) + self._in_hand
            return Counts(waiting, self._delivered, self._dropped, self._retried)

    def take(self, batch: Sequence[Event]) -> None:
        """Append events to the buffer as far as they fit."""
        with self._changed:
            room = max(0, self._capacity - len(self._events) - self._in_hand)
            self._events.extend(batch[:room])
            self._changed.notify_all()
            self._drop(len(batch) - room, "the buffer is full")

    def stop(self, patience: float) -> None:
        """Deliver remaining events for up to `patience` seconds, and drop the rest."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(patience)
        with self._changed:
            self._giving_up = True
            self._changed.notify_all()
            left = len(self._events)
            self._events.clear()
            self._drop(left, "they were not delivered before the sink was closed")

    def _drop(self, count: int, why: str) -> None:
        if count > 0:
            before, self._dropped = self._dropped, self._dropped + count
            if before.bit_length() != self._dropped.bit_length():
                # Report the first loss, and then each doubling, to limit the number of reports.
                self._report("delivering events", f"{self._dropped} were dropped so far: {why}")

    # -- delivery thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while batch := self._next():
            self._deliver(batch)

    def _next(self) -> list[Event]:
        """Wait for events and return the next batch; empty after `stop`."""
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
        """Wait before a retry; return False if delivery was given up meanwhile."""
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
