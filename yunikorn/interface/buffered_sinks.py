"""Event sinks that run outside of the core's thread, behind a bounded buffer (`docs/decisions/0044`).

A core that serves others must not wait for a disk or a network. `Scheduler(buffer_sinks=BufferedSinks())`
puts a buffer and a thread before each event sink of a configuration. When a sink is slower than the events
arrive, its buffer fills up, and further events are dropped and counted, so the core neither waits nor grows.
No scheduling decision depends on a sink. The core does not wait for the end of a sink either, which may hang:
a second thread gives the sink a limited time to take the events that are left. Until that time has passed no
other sink of the same plugin is opened, because the new sink may write to the same file.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence

import attrs

from yunikorn.api import Context, Event, EventSink
from yunikorn.containment import contained
from yunikorn.errors import printable

_log = logging.getLogger("yunikorn.plugins")

CAPACITY = 10_000
"""Maximum number of events that wait for a sink."""
PATIENCE = 5.0
"""Seconds that a closed sink has to take the events in its buffer."""
BATCH = 1_000
"""Maximum number of events per call of a sink."""


@attrs.frozen
class SinkLoad:
    """Load of a buffered sink."""

    origin: str
    """Name, plugin, distribution and version of the sink."""
    waiting: int
    """Number of events in the buffer."""
    taken: int
    """Number of events that the sink has taken."""
    dropped: int
    """Number of events that found the buffer full, or that the sink never took."""


class BufferedSinks:
    """Factory of buffered sinks, with the load of each; may be read from any thread."""

    def __init__(self, capacity: int = CAPACITY, patience: float = PATIENCE) -> None:
        if capacity < 1:
            raise ValueError(f"the capacity of a buffer must be at least 1 event, got {capacity}")
        self._capacity, self._patience = capacity, patience
        self._sinks: list[BufferedSink] = []
        self._endings: list[tuple[str, threading.Thread]] = []

    def __call__(self, sink: EventSink, origin: str) -> EventSink:
        """Return a sink that takes events for this sink without ever waiting."""
        return BufferedSink(sink, origin, self._capacity, self._patience, self._sinks, self._endings)

    def __iter__(self) -> Iterator[SinkLoad]:
        return iter([sink.load for sink in list(self._sinks)])

    def finish(self) -> None:
        """Wait for the closed sinks, until each has ended or its time is over."""
        for _, ending in list(self._endings):
            ending.join()


class BufferedSink(EventSink):
    """A sink that buffers events, and a thread that hands them to the sink behind it.

    An error of the sink behind is raised by the next call from the core, which switches the sink off and
    reports it like any other.
    """

    name = "buffered"

    def __init__(
        self,
        sink: EventSink,
        origin: str,
        capacity: int,
        patience: float,
        register: list[BufferedSink],
        endings: list[tuple[str, threading.Thread]],
    ) -> None:
        self._sink, self._origin = sink, origin
        self._capacity, self._patience = capacity, patience
        self._register = register
        """Open sinks; contains this sink while it is open."""
        self._endings = endings
        """Origins of closed sinks that have not ended, each with the thread that waits for the end."""
        self._context: Context | None = None
        self._changed = threading.Condition()
        self._events: deque[Event] = deque()
        self._calls: deque[tuple[int, Callable[[], None]]] = deque()
        """Calls for the sink's thread, each with the number of events that must come before."""
        self._put = self._taken = self._dropped = 0
        self._ending = False
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def load(self) -> SinkLoad:
        """Current load of this sink."""
        with self._changed:
            return SinkLoad(self._origin, len(self._events), self._taken, self._dropped)

    # -- in the core's thread -------------------------------------------------------------------------

    @property
    def wants(self) -> Collection[str] | None:
        """Events that the sink wants."""
        return self._sink.wants

    def opened(self, context: Context) -> None:
        """Open the sink in this thread, so that a failure is found at once, and start its own thread.

        While another sink of the plugin has not ended, the sink is opened in its own thread.
        """
        self._context = context
        before = [ending for origin, ending in list(self._endings) if origin == self._origin]
        if before:
            self._calls.append((0, lambda: self._open_after(before, context)))
        else:
            self._sink.opened(context)
        self._thread = threading.Thread(target=self._run, name=f"yunikorn-sink-{self._origin}", daemon=True)
        self._register.append(self)
        self._thread.start()

    def send(self, batch: Sequence[Event]) -> None:
        """Buffer as many of these events as there is room for; never waits."""
        with self._changed:
            self._fail()
            room = self._capacity - len(self._events)
            self._events.extend(batch[:room])
            self._put += min(room, len(batch))
            lost = max(0, len(batch) - room)
            before, self._dropped = self._dropped, self._dropped + lost
            self._changed.notify_all()
        if lost and before.bit_length() != (before + lost).bit_length():
            # Log the first loss, and then only when the number of lost events has doubled.
            _log.warning(
                "event sink %s is too slow: %d events were dropped so far",
                printable(self._origin),
                before + lost,
            )

    def reloaded(self, context: Context) -> None:
        """Reload the sink after the events that came before."""
        with self._changed:
            self._fail()
            self._calls.append((self._put, lambda: self._sink.reloaded(context)))
            self._changed.notify_all()

    def closed(self) -> None:
        """Let the sink take the buffered events for a limited time and close it, without waiting for that."""
        if self._thread is None:
            return
        self._register.remove(self)
        ending = threading.Thread(
            target=self._end, args=(self._thread,), name=f"yunikorn-ending-{self._origin}", daemon=True
        )
        self._endings.append((self._origin, ending))
        ending.start()
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            self._fail()

    def _fail(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- in a thread that waits for its end -----------------------------------------------------------

    def _end(self, thread: threading.Thread) -> None:
        """Wait for the sink for a limited time, and report failures and lost events."""
        thread.join(self._patience)
        with self._changed:
            lost = len(self._events)
            self._dropped += lost
            self._events.clear()
            failure, self._failure = self._failure, None
        if failure is not None and self._context is not None:
            self._context.report("closing", failure)
        if lost:
            _log.warning(
                "event sink %s was closed with %d events not processed within %g seconds: they are lost",
                printable(self._origin),
                lost,
                self._patience,
            )
        self._endings.remove((self._origin, threading.current_thread()))

    # -- in its own thread ----------------------------------------------------------------------------

    def _open_after(self, endings: Sequence[threading.Thread], context: Context) -> None:
        for ending in endings:
            ending.join()
        self._sink.opened(context)

    def _run(self) -> None:
        try:
            while (work := self._next()) is not None:
                work()
        except contained() as error:
            self._give_up(error)
        try:
            self._sink.closed()
        except contained() as error:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._dropped += len(self._events)
            self._events.clear()

    def _next(self) -> Callable[[], None] | None:
        """Return the next piece of work, after waiting for it, or None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._calls or self._ending)
            due = self._calls[0][0] if self._calls else self._put
            gone = self._put - len(self._events)
            if due > gone:
                batch = [self._events.popleft() for _ in range(min(BATCH, due - gone))]
                return lambda: self._hand(batch)
            return self._calls.popleft()[1] if self._calls else None

    def _hand(self, batch: Sequence[Event]) -> None:
        self._sink.send(batch)
        with self._changed:
            self._taken += len(batch)
