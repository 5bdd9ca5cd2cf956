"""A scheduler with a thread of its own, for callers in any thread.

One thread owns the core. In front of it stands a bounded inbox; the thread takes in what is there, fires
the timers that are due, takes a batch of decisions, and looks at its inbox again. The core's clock stands
still during such a step: it is moved to the present at its beginning, so that a recording of the steps (see
`recording_sink.py`) is all it takes to have every decision again.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import attrs

from yunikorn.clock import SECOND, Clock, ManualClock
from yunikorn.errors import UsageError, YunikornError
from yunikorn.interface.callback import Callback
from yunikorn.interface.core_activity import CoreActivity
from yunikorn.interface.inbox import Closed, Inbox
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateRequest,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.scheduling.plugin_failures import PluginFailures

T = TypeVar("T")

CAPACITY = 1024
"""Entries of the inbox."""
TAKEN = 64
"""Entries that are taken in before decisions are taken again."""
BATCH = 256
"""Decisions that are taken before the inbox is looked at again: some ten milliseconds."""
LONGEST_WAIT = 10.0
"""Seconds after which an idle core looks at its clock again, which may have been set meanwhile."""

_log = logging.getLogger("yunikorn.core")


class CoreStopped(UsageError):
    """The core was stopped, or died of a bug: it takes nothing in any more."""


@attrs.define
class _Entry:
    """Something to be done in the core's thread."""

    operation: Callable[[Scheduler], Any]
    done: Future[Any]
    tolerant: bool


class ThreadedScheduler:
    """A `Scheduler` in a thread of its own; all methods may be called from any thread.

    `make` gets the clock that the scheduler has to use, and returns the scheduler; `clock` is the one to
    follow. What a method of the scheduler raises is raised to whoever called here. The callbacks of resource
    managers are called in the core's thread: they must return soon, and must not wait for this object; they
    may `post`. An error that is none of ours is a bug: the core dies of it, `failure` keeps it, `died` is
    told, and whoever waits or comes later hears `CoreStopped`.
    """

    def __init__(
        self,
        make: Callable[[Clock], Scheduler],
        clock: Clock,
        *,
        capacity: int = CAPACITY,
        batch: int = BATCH,
        died: Callable[[BaseException], object] | None = None,
    ) -> None:
        self._source = clock
        self._clock = ManualClock(clock.now())
        self._scheduler = make(self._clock)
        self._inbox: Inbox[_Entry] = Inbox(capacity)
        self._taken: deque[_Entry] = deque()
        self._batch = batch
        self._died = died
        self._thread = threading.Thread(target=self._run, name="yunikorn-core", daemon=True)
        self.failure: BaseException | None = None
        """What the core died of, if it did."""
        self.steps = 0
        """Counted up with every step; a watchdog sees by it that the core moves."""
        self.at_work = False
        """Whether the core is at work, rather than waiting for something to do."""

    # -- life ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def halt(self, timeout: float | None = None) -> bool:
        """Take nothing more, finish what is waiting to be taken in, hand it out, and end.

        Waits for the end, for at most `timeout` seconds; returns whether it has ended. The resource managers
        stay as they are and are told nothing.
        """
        self._inbox.close()
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def close(self, timeout: float | None = None) -> bool:
        """Shut every resource manager down as the scheduler's `close` does, and halt."""
        with contextlib.suppress(CoreStopped):
            self.post_call(Scheduler.close)
        return self.halt(timeout)

    @property
    def alive(self) -> bool:
        """Whether the core's thread runs."""
        return self._thread.is_alive()

    @property
    def failures(self) -> PluginFailures:
        """What plugins did wrong; to be read in the core's thread, or when that has ended."""
        return self._scheduler.failures

    def core_activity(self) -> CoreActivity | None:
        """What the core's thread is doing at this moment, for a watchdog; None if it does not run."""
        ident = self._thread.ident
        return None if ident is None else self._scheduler.core_activity(ident)

    def __enter__(self) -> ThreadedScheduler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the scheduler's methods ------------------------------------------------------------------------

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: Callback
    ) -> RegisterResourceManagerResponse:
        """See `Scheduler.register_resource_manager`."""
        return self._wait(self._put(lambda core: core.register_resource_manager(request, callback)))

    def update(self, request: UpdateRequest) -> None:
        """Have an update taken in; returns when it is. See `Scheduler.update`."""
        self._wait(self.post(request))

    def post(self, request: UpdateRequest) -> Future[None]:
        """Have an update taken in, without waiting for it; also for callbacks."""
        return self._put(lambda core: core.update(request))

    def stop(self, rm_id: str) -> None:
        """A resource manager shuts down. See `Scheduler.stop`."""
        self._wait(self._put(lambda core: core.stop(rm_id)))

    def call(self, operation: Callable[[Scheduler], T]) -> T:
        """Have anything done in the core's thread, and return what it returns or raise what it raises."""
        return self._wait(self.post_call(operation))

    def post_call(self, operation: Callable[[Scheduler], T]) -> Future[T]:
        """Have anything done in the core's thread, without waiting for it."""
        return self._put(operation, tolerant=True)

    def notify(self, operation: Callable[[Scheduler], T]) -> Future[T]:
        """Have something done in the core's thread, at once in the inbox however full it is.

        For the few things that must neither wait nor get lost, such as that a connection was.
        """
        return self._put(operation, always=True)

    def offer(
        self, operation: Callable[[Scheduler], T], room: Callable[[], object], *, tolerant: bool = False
    ) -> Future[T] | None:
        """Have something done in the core's thread if its inbox has room, without waiting for anything.

        None if it has none: then `room` is called, in some other thread, when it is worth another try. What
        a `tolerant` operation raises is the business of who asked alone; of others all but our own errors are
        bugs, of which the core dies.
        """
        entry = _Entry(operation, Future(), tolerant)
        try:
            return entry.done if self._inbox.offer(entry, room) else None
        except Closed:
            raise self._stopped() from None

    def load_ahead(self, text: str) -> None:
        """Load a configuration in the thread of the caller. See `Scheduler.load_ahead`."""
        self._scheduler.load_ahead(text)

    # -- getting in -----------------------------------------------------------------------------------

    def _put(
        self, operation: Callable[[Scheduler], T], *, tolerant: bool = False, always: bool = False
    ) -> Future[T]:
        entry = _Entry(operation, Future(), tolerant)
        try:
            # From a callback there is no waiting for room: the core would wait for itself.
            self._inbox.put(entry, always=always or threading.current_thread() is self._thread)
        except Closed:
            raise self._stopped() from None
        return entry.done

    def _wait(self, done: Future[T]) -> T:
        if threading.current_thread() is self._thread:
            raise UsageError("a callback must not wait for the core, which waits for it: use post(...)")
        return done.result()

    def _stopped(self) -> CoreStopped:
        if self.failure is not None:
            return CoreStopped(f"the core has died: {type(self.failure).__name__}: {self.failure}")
        return CoreStopped("the core has been stopped")

    # -- the core's thread --------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            more = False
            while True:
                self._taken = deque(self._inbox.take(TAKEN, 0 if more else self._leisure()))
                if not self._taken and self._inbox.closed:
                    break
                self.at_work = True
                more = self._step(more)
                self.steps += 1
                self.at_work = more
        except BaseException as error:
            self._die(error)

    def _step(self, more: bool) -> bool:
        """Time, entries, decisions; returns whether there may be more to decide at once."""
        self._clock.set(max(self._source.now(), self._clock.now()))
        fired = self._scheduler.fire_timers()
        if not (fired or self._taken or more):
            return False
        while self._taken:
            self._do(self._taken.popleft())
        return self._scheduler.schedule(self._batch) == self._batch

    def _do(self, entry: _Entry) -> None:
        if not entry.done.set_running_or_notify_cancel():
            return
        try:
            result = entry.operation(self._scheduler)
        except BaseException as error:
            entry.done.set_exception(error)
            if not (entry.tolerant or isinstance(error, YunikornError)):
                raise
        else:
            entry.done.set_result(result)

    def _leisure(self) -> float:
        """For how many seconds there is nothing to do, as far as is known."""
        due = self._scheduler.next_timer()
        if due is None:
            return LONGEST_WAIT
        return min(max(0.0, (due - self._source.now()) / SECOND), LONGEST_WAIT)

    def _die(self, error: BaseException) -> None:
        self.failure = error
        self.at_work = False
        _log.critical("the core has died: %s: %s", type(error).__name__, error, exc_info=error)
        self._inbox.close()
        while waiting := [*self._taken, *self._inbox.take(TAKEN, 0)]:
            self._taken.clear()
            for entry in waiting:
                if entry.done.set_running_or_notify_cancel():
                    entry.done.set_exception(self._stopped())
        if self._died is not None:
            self._died(error)
