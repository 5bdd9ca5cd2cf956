"""Event sinks that run outside of the core's thread, behind a bounded buffer (`docs/decisions/archive/0044`).

A core that serves others must not wait for a disk or a network. `Scheduler(buffer_sinks=BufferedSinks())`
puts a buffer and a thread before each event sink of a configuration. All methods of the sink are called in
this one thread, from `opened` to `closed`, so that a sink may use a connection that is bound to a thread.
When a sink is slower than the events arrive, its buffer fills up, and further events are dropped and counted,
so the core neither waits nor grows. No scheduling decision depends on a sink.

The core waits for `opened`, for a limited time, so that a sink that cannot be opened is reported at once. It
does not wait for the end of a sink, which may hang: a second thread gives the sink a limited time to take the
events that are left. Until that time has passed no other sink of the same plugin is opened, because the new
sink may write to the same file. A sink that raises, or a call of which does not return, is switched off and
reported under the name of its plugin (`docs/decisions/archive/0082`).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

import attrs

from yunikorn.api import Context, Event, EventSink
from yunikorn.containment import contained, describe_error
from yunikorn.errors import printable
from yunikorn.interface.sinks import SWITCHED_OFF, BufferedSink

_log = logging.getLogger("yunikorn.plugins")

CAPACITY = 10_000
"""Maximum number of events that wait for a sink."""
PATIENCE = 5.0
"""Seconds that a closed sink has to take the events in its buffer."""
BATCH = 1_000
"""Maximum number of events per call of a sink."""
OPENING = 2.0
"""Seconds that the core waits for a sink to open; events are buffered meanwhile and after that."""
CLOSING = "closing"


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

    def __init__(
        self, capacity: int = CAPACITY, patience: float = PATIENCE, opening: float = OPENING
    ) -> None:
        """Create a factory; `patience` and `opening` are the seconds for closing and for opening a sink."""
        if capacity < 1:
            raise ValueError(f"the capacity of a buffer must be at least 1 event, got {capacity}")
        self._capacity, self._patience, self._opening = capacity, patience, opening
        self._sinks: list[ThreadedSink] = []
        self._endings: list[tuple[str, threading.Thread]] = []

    def __call__(self, sink: EventSink, origin: str) -> BufferedSink:
        """Return a sink that takes events for this sink without waiting."""
        limits = self._capacity, self._patience, self._opening
        return ThreadedSink(sink, origin, limits, self._sinks, self._endings)

    def __iter__(self) -> Iterator[SinkLoad]:
        return iter([sink.load for sink in list(self._sinks)])

    def poll(self, now: float, limit: float) -> bool:
        """Switch off sinks of which one call takes longer than `limit` seconds, or whose thread has died.

        `now` is the time in seconds of any clock. Returns True if a sink was switched off since the last
        call, for any reason.
        """
        return any([sink.check(now, limit) for sink in list(self._sinks)])

    def finish(self) -> None:
        """Wait for the closed sinks, until each has ended or its time is over."""
        for _, ending in list(self._endings):
            ending.join()


Window = tuple[Sequence[Event], int, int]
"""Events of a batch from a position up to another; a batch makes its events in the thread that reads them."""


@attrs.define
class _Call:
    """Call for the sink's thread that is no `send`."""

    before: int
    """Number of events that the sink must have taken before."""
    operation: str
    call: Callable[[], None]


class ThreadedSink(BufferedSink):
    """A sink that buffers events, and a thread that makes all calls of the sink behind it."""

    name = "buffered"

    def __init__(
        self,
        sink: EventSink,
        origin: str,
        limits: tuple[int, float, float],
        register: list[ThreadedSink],
        endings: list[tuple[str, threading.Thread]],
    ) -> None:
        """Create without a thread; `limits` are those of `BufferedSinks`, in the same order."""
        self._sink, self._origin = sink, origin
        self._capacity, self._patience, self._opening = limits
        self._register = register
        """Open sinks; contains this sink while it is open."""
        self._endings = endings
        """Origins of closed sinks that have not ended, each with the thread that waits for the end."""
        self._context = Context("", lambda: 0)
        self._changed = threading.Condition()
        self._events: deque[Window] = deque()
        self._waiting = 0
        """Number of events in `_events`."""
        self._calls: deque[_Call] = deque()
        self._put = self._taken = self._dropped = 0
        self._is_open = self._ending = False
        self._failure: BaseException | None = None
        """Exception of `opened` while the core waits for it."""
        self._awaited = False
        """True while the core waits for `opened`."""
        self.is_off = False
        """True after a failure; the failure has been reported, and no further events are taken."""
        self._noticed = False
        """True if `check` has reported that the sink is off."""
        self._operation = ""
        """Operation in progress in the sink's thread; empty for none."""
        self._number = 0
        """Number of calls of the sink so far."""
        self._watched = (0, 0.0)
        """Number of the call in progress at the last `check`, and the time of its first check."""
        self._thread: threading.Thread | None = None

    @property
    def load(self) -> SinkLoad:
        """Current load of this sink."""
        with self._changed:
            return SinkLoad(self._origin, self._waiting, self._taken, self._dropped)

    # -- in the core's thread -------------------------------------------------------------------------

    @property
    def wants(self) -> Collection[str] | None:
        """Events that the sink wants."""
        return self._sink.wants

    def opened(self, context: Context) -> None:
        """Start the sink's thread, and wait a limited time for the sink to open; raise what `opened` raises.

        While another sink of the plugin has not ended, there is no wait.
        """
        self._context = context
        before = [ending for origin, ending in list(self._endings) if origin == self._origin]
        self._calls.append(_Call(0, "opening", partial(self._open, before, context)))
        self._thread = threading.Thread(target=self._run, name=f"yunikorn-sink-{self._origin}", daemon=True)
        self._awaited = not before
        self._register.append(self)
        self._thread.start()
        if before:
            return
        with self._changed:
            done = self._changed.wait_for(lambda: self._is_open or self.is_off, self._opening)
            self._awaited = False
            failure = self._failure
        if failure is not None:
            # Here a KeyboardInterrupt of the sink could be mistaken for a Ctrl-C of the user.
            raise failure if isinstance(failure, Exception) else RuntimeError(describe_error(failure))
        if not done:
            text = f"it has not returned within {self._opening:g} seconds; events are buffered meanwhile"
            context.report("opening", text)

    def send(self, batch: Sequence[Event]) -> None:
        """Buffer as many of these events as there is room for; never waits."""
        number = len(batch)
        with self._changed:
            if self.is_off:
                return
            kept = max(0, min(self._capacity - self._waiting, number))
            if kept:
                self._events.append((batch, 0, kept))
                self._waiting += kept
                self._put += kept
            before, self._dropped = self._dropped, self._dropped + number - kept
            lost = self._dropped
            self._changed.notify_all()
        if lost != before and before.bit_length() != lost.bit_length():
            # Log the first loss, and then only when the number of lost events has doubled.
            text = "event sink %s is too slow: %d events were dropped so far"
            _log.warning(text, printable(self._origin), lost)

    def reloaded(self, context: Context) -> None:
        """Reload the sink after the events that came before."""
        with self._changed:
            self._calls.append(_Call(self._put, "reloading", partial(self._sink.reloaded, context)))
            self._changed.notify_all()

    def closed(self) -> None:
        """Let the sink take the buffered events for a limited time and close it, without waiting for that."""
        if self._thread is None or self not in self._register:
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

    # -- in a thread that watches ---------------------------------------------------------------------

    def check(self, now: float, limit: float) -> bool:
        """Switch the sink off if a call takes longer than `limit` seconds, or if its thread has died.

        Returns True if the sink has been switched off since the last call.
        """
        with self._changed:
            operation, number, thread = self._operation, self._number, self._thread
            running = thread is not None and thread.is_alive()
        if not self.is_off and not running and not self._ending:
            self._give_up("running its thread", "the thread has died")
        elif operation:
            if self._watched[0] != number:
                self._watched = number, now
            elif now - self._watched[1] >= limit and not self.is_off:
                taken = now - self._watched[1]
                self._give_up(operation, f"one call has not returned for {taken:.0f} seconds")
        noticed, self._noticed = self._noticed, self.is_off
        return self.is_off and not noticed

    # -- in a thread that waits for its end -----------------------------------------------------------

    def _end(self, thread: threading.Thread) -> None:
        """Wait for the sink for a limited time, and report a sink that does not end, and lost events."""
        thread.join(self._patience)
        with self._changed:
            lost = self._drop_all()
        if thread.is_alive() and not self.is_off:
            doing = f" ({self._operation})" if self._operation else ""
            text = f"it has not ended within {self._patience:g} seconds{doing}; its thread is abandoned"
            self._context.report(CLOSING, text)
        if lost:
            _log.warning(
                "event sink %s was closed with %d events not processed within %g seconds: they are lost",
                printable(self._origin),
                lost,
                self._patience,
            )
        self._endings.remove((self._origin, threading.current_thread()))

    # -- in its own thread ----------------------------------------------------------------------------

    def _open(self, endings: Sequence[threading.Thread], context: Context) -> None:
        for ending in endings:
            ending.join()
        self._sink.opened(context)
        with self._changed:
            self._is_open = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (work := self._next()) is not None and self._do(*work):
            pass
        self._do(CLOSING, self._sink.closed)
        with self._changed:
            self._operation = ""

    def _do(self, operation: str, call: Callable[[], None]) -> bool:
        """Make a call of the sink; return True on success."""
        with self._changed:
            self._operation, self._number = operation, self._number + 1
        try:
            call()
        except contained() as error:
            self._give_up(operation, error)
            return False
        with self._changed:
            self._operation = ""
        return True

    def _give_up(self, operation: str, cause: BaseException | str) -> None:
        """Switch the sink off, and report why: by an exception if the core waits for `opened`."""
        with self._changed:
            was_off, self.is_off = self.is_off, True
            self._drop_all()
            waits = self._awaited and issubclass(type(cause), BaseException)
            if waits:
                self._failure = cause  # type: ignore[assignment]
            self._changed.notify_all()
        if waits or was_off:
            return
        self._context.report(operation if operation == CLOSING else f"{operation} ({SWITCHED_OFF})", cause)

    def _drop_all(self) -> int:
        """Drop the buffered events; return their number."""
        lost, self._waiting = self._waiting, 0
        self._dropped += lost
        self._events.clear()
        return lost

    def _next(self) -> tuple[str, Callable[[], None]] | None:
        """Return the next piece of work, after waiting for it, or None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._calls or self._ending or self.is_off)
            if self.is_off:
                return None
            due = self._calls[0].before if self._calls else self._put
            room = min(BATCH, due - (self._put - self._waiting))
            if room > 0 and self._events:
                return "sending events", partial(self._hand, self._take(room))
            if self._calls:
                call = self._calls.popleft()
                return call.operation, call.call
            return None

    def _take(self, most: int) -> list[Window]:
        """Remove up to `most` events from the buffer."""
        windows: list[Window] = []
        while most and self._events:
            batch, start, stop = self._events.popleft()
            end = min(stop, start + most)
            if end < stop:
                self._events.appendleft((batch, end, stop))
            self._waiting -= end - start
            most -= end - start
            windows.append((batch, start, end))
        return windows

    def _hand(self, windows: list[Window]) -> None:
        number = sum(end - start for _, start, end in windows)
        batch, _, _ = windows[0]
        if number != len(batch) or len(windows) > 1:
            batch = tuple(event for batch, start, end in windows for event in batch[start:end])
        self._sink.send(batch)
        with self._changed:
            self._taken += number
