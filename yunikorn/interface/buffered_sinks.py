"""Event sinks that run beside the core's thread, behind a bounded buffer (decision 44).

A core that serves others must not wait for a disk or a network. `Scheduler(buffer_sinks=BufferedSinks())`
puts a buffer and a thread of its own before each event sink of a configuration. When a sink is slower than
events come, its buffer fills up, and what comes then is dropped and counted: the core neither waits nor
grows. No decision depends on any of it. Nor does the core wait for the end of a sink, which may hang: a
second thread gives the sink its time to take what is left. Until that has passed no other sink of the same
plugin is opened, because it may write to the same file.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import attrs

from yunikorn.api import Context, Event, EventSink
from yunikorn.errors import CONTAINED, printable

_log = logging.getLogger("yunikorn.plugins")

CAPACITY = 10_000
"""Events that wait for a sink at the most."""
PATIENCE = 5.0
"""Seconds that a sink has at its end to take what waits for it."""
BATCH = 1_000
"""Events that a sink is handed at once."""


@attrs.frozen
class SinkLoad:
    """How a sink keeps up."""

    origin: str
    """Its name, plugin, distribution and version."""
    waiting: int
    """Events in its buffer."""
    taken: int
    """Events that it has taken."""
    dropped: int
    """Events that found its buffer full, or that it never took."""


class BufferedSinks:
    """Puts buffers before sinks, and knows how they are doing; may be asked from any thread."""

    def __init__(self, capacity: int = CAPACITY, patience: float = PATIENCE) -> None:
        if capacity < 1:
            raise ValueError(f"a buffer needs room for something, not for {capacity} events")
        self._capacity, self._patience = capacity, patience
        self._sinks: list[BufferedSink] = []
        self._endings: list[tuple[str, threading.Thread]] = []

    def __call__(self, sink: EventSink, origin: str) -> EventSink:
        """A sink that takes events for this one without ever waiting."""
        return BufferedSink(sink, origin, self._capacity, self._patience, self._sinks, self._endings)

    def __iter__(self) -> Iterator[SinkLoad]:
        return iter([sink.load for sink in list(self._sinks)])

    def finish(self) -> None:
        """Wait for the sinks that were closed: until each has ended, or its time is over."""
        for _, ending in list(self._endings):
            ending.join()


class BufferedSink(EventSink):
    """Takes events at once, and has a thread hand them to the sink behind it.

    What that sink raises is raised by the next call from the core, which switches it off and reports it as
    it does for any other.
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
        """The sinks in use: this one is among them while it is open."""
        self._endings = endings
        """The sinks that are closed and have not ended, by origin, each with the thread that waits for it."""
        self._context: Context | None = None
        self._changed = threading.Condition()
        self._events: deque[Event] = deque()
        self._calls: deque[tuple[int, Callable[[], None]]] = deque()
        """What the sink is to be told in its thread, each after how many events."""
        self._put = self._taken = self._dropped = 0
        self._ending = False
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def load(self) -> SinkLoad:
        """How it keeps up."""
        with self._changed:
            return SinkLoad(self._origin, len(self._events), self._taken, self._dropped)

    # -- in the core's thread -------------------------------------------------------------------------

    def opened(self, context: Context) -> None:
        """Open the sink here, so that one that cannot be opened is found at once; then start its thread.

        While another sink of the plugin has not ended, it is opened in its thread.
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
        """Take these events, as many as there is room for; never waits."""
        with self._changed:
            self._fail()
            room = self._capacity - len(self._events)
            self._events.extend(batch[:room])
            self._put += min(room, len(batch))
            lost = max(0, len(batch) - room)
            before, self._dropped = self._dropped, self._dropped + lost
            self._changed.notify_all()
        if lost and before.bit_length() != (before + lost).bit_length():
            # The first, and then each time their number has doubled.
            _log.warning(
                "event sink %s is too slow: %d events were dropped so far",
                printable(self._origin),
                before + lost,
            )

    def reloaded(self, context: Context) -> None:
        """Tell the sink, after the events that came before."""
        with self._changed:
            self._fail()
            self._calls.append((self._put, lambda: self._sink.reloaded(context)))
            self._changed.notify_all()

    def closed(self) -> None:
        """Have the sink take what waits for it, for a while, and close it; does not wait for that."""
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
        """Give the sink its time, and report what came of it."""
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
                "event sink %s did not take %d events in %g seconds at its end: they are lost",
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
        except CONTAINED as error:
            self._give_up(error)
        try:
            self._sink.closed()
        except CONTAINED as error:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._dropped += len(self._events)
            self._events.clear()

    def _next(self) -> Callable[[], None] | None:
        """The next thing to do, after waiting for it; None at the end."""
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
