"""A scheduler with its own thread, for callers in any thread.

One thread owns the core and takes its work from a bounded inbox. In each step the thread sets the core's
clock to the current time, fires the timers that are due, runs the entries taken from the inbox, and makes a
batch of decisions. The clock does not advance during a step. A recording of the steps (see
`yunikorn_service.recording.recording_scheduler`) therefore suffices to reproduce every decision.

The inbox is bounded, ordered, and open until it is closed.

Between two steps the thread continues the readings in progress for a short time (see
`yunikorn_service.runtime.sliced_reads`). They change nothing, so no recording contains them.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import attrs

from yunikorn.clock import SECOND, Clock, ManualClock, steady
from yunikorn.clock import stopwatch as real_stopwatch
from yunikorn.errors import UsageError, YunikornError
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.interface.callback import Callback
from yunikorn.interface.commands import Close, RegisterResourceManager, Stop, TakePolicyAnswer, Update
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateRequest,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.runtime.policy_workers import PolicyWorkers
from yunikorn_service.runtime.sliced_reads import Reading, SlicedReads

T = TypeVar("T")

CAPACITY = 1024
"""Maximum number of entries in the inbox."""
TAKEN = 64
"""Maximum number of entries per step."""
BATCH = 256
"""Maximum number of decisions per step: about ten milliseconds."""
STALL = 0.002
"""Seconds after which stalled readings are tried again."""
LONGEST_WAIT = 10.0
"""Maximum seconds for which an idle core waits before it reads its clock again, which may have been set."""

_log = logging.getLogger("yunikorn.core")


class CoreStopped(UsageError):
    """Error of a call to a core that was stopped, or has failed by a bug."""


@attrs.define
class _Entry:
    """A command, or another operation, for the core's thread."""

    operation: Callable[[Scheduler], Any]
    done: Future[Any]
    tolerant: bool


class ThreadedScheduler:
    """A `Scheduler` in its own thread; all methods may be called from any thread.

    `make` gets the clock that the scheduler has to use, and returns the scheduler; `clock` is the one to
    follow. An error of a scheduler's method is raised in the calling thread. The callbacks of resource
    managers are called in the core's thread: they must return soon, and must not wait for this object; they
    may `post`. An error other than a `YunikornError` is a bug and stops the core: `failure` keeps the error,
    `died` is called with it, and all pending and later calls raise `CoreStopped`.
    """

    def __init__(
        self,
        make: Callable[[Clock], Scheduler],
        clock: Clock,
        *,
        capacity: int = CAPACITY,
        batch: int = BATCH,
        died: Callable[[BaseException], object] | None = None,
        stopwatch: Callable[[], int] = real_stopwatch,
        workers: PolicyWorkers | None = None,
    ) -> None:
        """Create a core that does not run; `workers` are those of the scheduler that `make` returns."""
        self._reads = SlicedReads(stopwatch)
        self._source = steady(clock)
        self._clock = ManualClock(self._source.now())
        self._scheduler = make(self._clock)
        self._inbox: Inbox[_Entry] = Inbox(capacity)
        self._scheduler.wake_requests.connect(self._woken)
        self._taken: deque[_Entry] = deque()
        self._batch = batch
        self._died = died
        self._workers = workers
        if workers is not None:
            workers.connect(self._answered)
        self._thread = threading.Thread(target=self._run, name="yunikorn-core", daemon=True)
        self.failure: BaseException | None = None
        """Error that stopped the core, if any."""
        self.steps = 0
        """Number of steps so far, by which a watchdog sees that the core makes progress."""
        self.at_work = False
        """True while the core works, False while it waits for work."""

    # -- life ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the core's thread."""
        self._thread.start()

    def halt(self, timeout: float | None = None) -> bool:
        """Close the inbox, apply its entries, send the responses, and end the thread.

        Waits for at most `timeout` seconds; returns True if the thread has ended. The sessions of resource
        managers stay as they are, and the RMs get no notice of the end.
        """
        self._inbox.close()
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def close(self, timeout: float | None = None) -> bool:
        """Shut every resource manager down like `Scheduler.close`, and halt."""
        with contextlib.suppress(CoreStopped):
            self.post_call(Close())
        return self.halt(timeout)

    @property
    def alive(self) -> bool:
        """True while the core's thread runs."""
        return self._thread.is_alive()

    @property
    def inbox_depth(self) -> int:
        """Number of entries in the inbox; may be read from any thread."""
        return len(self._inbox)

    @property
    def inbox_capacity(self) -> int:
        """Number of entries in the inbox at which senders have to wait."""
        return self._inbox.capacity

    @property
    def failures(self) -> PluginFailures:
        """Failures of plugins; read them in the core's thread, or after its end."""
        return self._scheduler.failures

    @property
    def thread_id(self) -> int | None:
        """Identifier of the core's thread for a watchdog; None before its start."""
        return self._thread.ident

    def origin_of(self, cls: type[object]) -> str:
        """Return the origin of a plugin's class; may be called in any thread."""
        return self._scheduler.origin_of(cls)

    def __enter__(self) -> ThreadedScheduler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- commands and operations ------------------------------------------------------------------------

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: Callback
    ) -> RegisterResourceManagerResponse:
        """Register a resource manager. See `Scheduler.register_resource_manager`."""
        return self._wait(self._put(RegisterResourceManager(request, callback)))

    def update(self, request: UpdateRequest) -> None:
        """Apply an update, and wait until it is applied. See `Scheduler.update`."""
        self._wait(self.post(request))

    def post(self, request: UpdateRequest) -> Future[None]:
        """Queue an update without waiting for its application; allowed in callbacks."""
        return self._put(Update(request))

    def stop(self, rm_id: str) -> None:
        """Shut a resource manager down. See `Scheduler.stop`."""
        self._wait(self._put(Stop(rm_id)))

    def call(self, operation: Callable[[Scheduler], T]) -> T:
        """Run an operation in the core's thread, and return its result or raise its error.

        An operation is a command (`yunikorn.interface.commands`), or a function that gets the scheduler.
        """
        return self._wait(self.post_call(operation))

    def post_call(self, operation: Callable[[Scheduler], T]) -> Future[T]:
        """Queue an operation for the core's thread without waiting for its execution."""
        return self._put(operation, tolerant=True)

    def notify(self, operation: Callable[[Scheduler], T]) -> Future[T]:
        """Queue an operation for the core's thread at once, even if the inbox is full.

        Serves the few notices that must neither wait nor get lost, such as the loss of a connection.
        """
        return self._put(operation, always=True)

    def offer(
        self, operation: Callable[[Scheduler], T], room: Callable[[], object], *, tolerant: bool = False
    ) -> Future[T] | None:
        """Queue an operation for the core's thread if the inbox has room, without waiting.

        Returns None if there is no room; then `room` is called, in some other thread, when another try may
        succeed. Any error of a `tolerant` operation is the caller's business alone; an error of another
        operation is a bug that stops the core, unless it is a `YunikornError`.
        """
        entry = _Entry(operation, Future(), tolerant)
        try:
            return entry.done if self._inbox.offer(entry, room) else None
        except Closed:
            raise self._stopped() from None

    def read(self, reading: Reading[T]) -> Future[T]:
        """Queue a reading, which is carried out in slices between decisions (see `sliced_reads`)."""
        done: Future[T] = Future()
        start = functools.partial(self._reads.start, reading=reading, done=done)
        _fail_with(done, self._put(start, tolerant=True))
        return done

    def offer_read(self, reading: Reading[T], room: Callable[[], object]) -> Future[T] | None:
        """Queue a reading like `read` if the inbox has room, without waiting; `room` is as for `offer`."""
        done: Future[T] = Future()
        start = functools.partial(self._reads.start, reading=reading, done=done)
        started = self.offer(start, room, tolerant=True)
        if started is None:
            return None
        _fail_with(done, started)
        return done

    def load_ahead(self, text: str) -> None:
        """Load a configuration in the calling thread. See `Scheduler.load_ahead`."""
        self._scheduler.load_ahead(text)

    def _answered(self, number: int, answer: PolicyAnswer) -> None:
        # The number of answers on the way is limited by that of the workers.
        with contextlib.suppress(CoreStopped):
            self._put(TakePolicyAnswer(number, answer), always=True)

    def _woken(self) -> None:
        # The step that takes this entry applies all requests before its decisions.
        with contextlib.suppress(CoreStopped):
            self._put(lambda scheduler: None, always=True)

    # -- getting in -----------------------------------------------------------------------------------

    def _put(
        self, operation: Callable[[Scheduler], T], *, tolerant: bool = False, always: bool = False
    ) -> Future[T]:
        entry = _Entry(operation, Future(), tolerant)
        try:
            # A callback runs in the core's thread, which would wait for itself.
            self._inbox.put(entry, always=always or threading.current_thread() is self._thread)
        except Closed:
            raise self._stopped() from None
        return entry.done

    def _wait(self, done: Future[T]) -> T:
        if threading.current_thread() is self._thread:
            raise UsageError(
                "a callback must not wait for the core, which waits for the callback: use post(...)"
            )
        return done.result()

    def _stopped(self) -> CoreStopped:
        if self.failure is not None:
            return CoreStopped(f"the core has failed: {type(self.failure).__name__}: {self.failure}")
        return CoreStopped("the core has been stopped")

    # -- the core's thread --------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            more = False
            while True:
                busy = more or self._reads.can_advance
                self._taken = deque(self._inbox.take(TAKEN, 0 if busy else self._leisure()))
                if not self._taken and self._inbox.closed:
                    break
                self.at_work = True
                more = self._step(more)
                if self._reads:
                    self._reads.advance()
                self.steps += 1
                self.at_work = more or self._reads.can_advance
            self._reads.abandon(self._stopped)
        except BaseException as error:
            self._die(error)
        finally:
            if self._workers is not None:
                self._workers.close()

    def _step(self, more: bool) -> bool:
        """Set the time, run entries, make decisions; return True if more may be possible at once."""
        self._clock.set(self._source.now())
        measurements = self._scheduler.measurements
        begin = 0 if measurements is None else measurements.stopwatch()
        fired = self._scheduler.fire_timers()
        if not (fired or self._taken or more):
            return False
        while self._taken:
            self._do(self._taken.popleft())
        if measurements is None:
            return self._scheduler.schedule(self._batch) == self._batch
        start = measurements.stopwatch()
        decided = self._scheduler.schedule(self._batch)
        end = measurements.stopwatch()
        measurements.note_round(end - start, decided)
        measurements.note_step(end - begin)
        return decided == self._batch

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
        """Return the seconds until the next timer, or until stalled readings are tried again."""
        longest = STALL if self._reads else LONGEST_WAIT
        due = self._scheduler.next_timer()
        if due is None:
            return longest
        return min(max(0.0, (due - self._source.now()) / SECOND), longest)

    def _die(self, error: BaseException) -> None:
        self.failure = error
        self.at_work = False
        _log.critical("the core has failed: %s: %s", type(error).__name__, error, exc_info=error)
        self._inbox.close()
        while waiting := [*self._taken, *self._inbox.take(TAKEN, 0)]:
            self._taken.clear()
            for entry in waiting:
                if entry.done.set_running_or_notify_cancel():
                    entry.done.set_exception(self._stopped())
        self._reads.abandon(self._stopped)
        if self._died is not None:
            self._died(error)


def _fail_with(done: Future[Any], started: Future[Any]) -> None:
    """Pass an error of the start of a reading on to its result."""

    def pass_on(over: Future[Any]) -> None:
        error = None if over.cancelled() else over.exception()
        if error is not None and done.set_running_or_notify_cancel():
            done.set_exception(error)

    started.add_done_callback(pass_on)


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
