"""The thread of a recorder: takes events, makes rows, and hands them to the thread of the database.

No decision waits for this thread. While the core is busy, it has a small share of a processor, because
threads of Python share one; the backlog waits in a buffer of bounded size.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import attrs

from yunikorn import __version__
from yunikorn.clock import MILLISECOND, SECOND, Clock, stopwatch
from yunikorn.errors import UsageError, YunikornError, printable
from yunikorn.interface.commands import CreditUsage
from yunikorn_history.database import (
    HistoryAway,
    HistoryCorrupt,
    HistoryError,
    HistoryLocation,
    HistoryLocked,
)
from yunikorn_history.database_thread import DatabaseThread, HistoryEmptied, HistoryTaken, LoadedHistory
from yunikorn_history.event_buffer import MOST, EventBuffer, LostEvents, ReceivedEvents, SessionChange
from yunikorn_history.history_recorder import HistoryRecorder
from yunikorn_history.history_tables import GAPS, MINUTE, NAMES, RUNS, SHAPES
from yunikorn_history.memory_bounds import lose_oldest
from yunikorn_history.recorded_core import RecordedCore
from yunikorn_history.recorded_history import HistorySettings, HistoryStatus
from yunikorn_history.retention import Retention, RetentionLimits
from yunikorn_history.row_writer import RefusedRow
from yunikorn_history.rows import Row, RowBatch
from yunikorn_service.runtime.threaded import CoreStopped
from yunikorn_service.service import Service

_log = logging.getLogger("yunikorn.history")
T = TypeVar("T")

SLICE = 100
"""Number of entries between two pauses."""
SHARE, LARGEST_SHARE = 0.02, 0.5
"""Share of a processor while the core is busy: usually, and with a full buffer."""
PAUSES = 10
"""Largest number of pauses after a slice while the core waits for a processor."""
IDLE_INTERVAL, BUSY_INTERVAL = 0.1, 1.0
"""Seconds between two commits while the core is idle, and while it is busy."""
HEARTBEAT = 10.0
"""Seconds after which a commit notes that the process is alive, without any changes."""
REMOVAL, REMOVAL_PAUSE = 3_600.0, 0.2
"""Seconds between two removals of old rows, and between the steps of one."""
SAMPLED = 59_000
"""Time in each minute at which the core is sampled (ms)."""
MOST_AUDITED = 10_000
"""Number of entries of the audit log that wait in memory at most."""
OPENING = 0.2
"""Seconds between two looks whether the database is open."""
MOST_ROWS = 5_000
"""Number of rows of a table in a commit."""
MOST_CHANGED, MOST_APPLICATIONS = 200_000, 50_000
"""Numbers of changed allocations and applications in memory beyond which ended ones are lost."""
BOUNDING = 1.0
"""Seconds between two looks whether there are more."""
SLOW = 5.0
"""Seconds without an answer after which the database is reported as slow."""
FIRST_RETRY, LONGEST_RETRY = 0.5, 5.0
"""Seconds before the next try after a failure, which double with each."""
MOST_REFUSALS = 3
"""Number of tries after which the rows that a database refuses are lost, so that the others are written."""
SHOWN_REFUSED = 5
"""Number of such rows in the log."""
MOST_GAPS = 100
"""Number of gaps in a commit; more are put together."""
FINISHING = 8.0
"""Seconds at the end of the service to write the rest."""


class RecordingThread:
    """Recording of a core in a database."""

    def __init__(self, settings: HistorySettings, clock: Clock) -> None:
        """Create without a thread; raises `UsageError` for a target that cannot be one."""
        try:
            self._location = HistoryLocation.parse(settings.target)
        except HistoryError as error:
            raise UsageError(str(error)) from error
        self._settings, self._clock = settings, clock
        self.events = EventBuffer(clock.now)
        self._database: DatabaseThread | None = None
        self._recorder: HistoryRecorder | None = None
        self._run_row: list[Any] = []
        self._is_busy: Callable[[], bool] = lambda: False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yunikorn-history", daemon=True)
        self._received: ReceivedEvents | None = None
        """The events that are recorded now."""
        self._position = 0
        self._batch: RowBatch | None = None
        """Rows that are being written, or that could not be written yet."""
        self._job: Future[Any] | None = None
        self._asked = 0.0
        """Begin of the operation of the database in progress (s)."""
        self._then: Callable[[Any], None] = self._opened
        """Takes the result of the operation of the database in progress."""
        limits = RetentionLimits()
        age = limits.age if settings.keep is None else round(settings.keep * 1000)
        self._retention = Retention(attrs.evolve(limits, age=age, size=settings.size))
        self._next_removal = self._next_bound = 0.0
        self._gaps: list[Row] = []
        self._lost = 0
        self._lost_since: tuple[int, int] | None = None
        """Time of the first lost row, and `_lost` before; None while none are lost."""
        self._problem = ""
        self._refusals = 0
        """Number of failures of the batch for other reasons than that the database is away."""
        self._raised = ""
        """The latest unexpected exception."""
        self._committed = 0
        self._retry = FIRST_RETRY
        self._next_try = self._next_commit = self._latest_commit = 0.0
        self._config_source: Callable[[], str] = lambda: ""
        self._audited: deque[tuple[int, Mapping[str, Any]]] = deque(maxlen=MOST_AUDITED)
        """Entries of the audit log on their way to the parts."""
        self._complete: Callable[[RowBatch], None] = _is_complete
        """Adds to a batch what follows from the database, once."""
        self._is_last = self._is_over = False
        self.past_usage: Callable[[CreditUsage], object] | None = None
        """Takes the usage before the start when the database is opened; None if it was read before."""

    @property
    def shown(self) -> str:
        """Place of the database, and whether it waits for others, for messages."""
        place = str(self._location).removeprefix("history ")
        return f"{place} (not written yet, see the log)" if self._problem else place

    def status(self) -> HistoryStatus:
        """Return the state of the recording; may be called in any thread."""
        recorder, batch = self._recorder, self._batch
        rows = 0 if batch is None else len(batch)
        if recorder is not None:
            rows += len(recorder.changed.allocations) + len(recorder.changed.applications)
        return HistoryStatus(
            self.events.backlog + rows, self.events.lost + self._lost, self._committed, self._problem
        )

    # -- in the event loop ----------------------------------------------------------------------------

    async def start(self, service: Service) -> None:
        """Check the database, and begin; raises `UsageError` if it can never be used.

        The database is opened for good at the first registration of a resource manager, because a process
        that waits for a lease writes nothing.
        """
        await self.check()
        threaded = service.core.threaded
        threaded.notify(self.events.attach)
        self._config_source = service.config_source
        self.begin(lambda: threaded.at_work)
        service.run_in_background(self._sample(service))

    def begin(self, is_busy: Callable[[], bool]) -> None:
        """Start the thread; `is_busy` returns True while the core works."""
        self._is_busy = is_busy
        self._thread.start()

    async def check(self) -> None:
        """Open the database once; raises `UsageError` if it can never be used, and waits for no slow one."""
        self._database = DatabaseThread(self._location, self._clock)
        checked = asyncio.wrap_future(self._database.check())
        # The database is opened again later, whatever becomes of this.
        checked.add_done_callback(lambda done: done.exception())
        await asyncio.wait({checked}, timeout=SLOW)
        error = checked.exception() if checked.done() else HistoryAway(self._slow)
        if isinstance(error, HistoryAway | HistoryLocked):
            self._report(str(error))
        elif isinstance(error, YunikornError):
            raise UsageError(str(error)) from error
        elif error is not None:
            raise error

    async def _sample(self, service: Service) -> None:
        is_changed, loop = asyncio.Event(), asyncio.get_running_loop()
        self.events.configured = lambda: loop.call_soon_threadsafe(is_changed.set)
        while True:
            # Near the end of a minute, so that its row has what was placed in it.
            left = (SAMPLED - self._now()) % MINUTE or MINUTE
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(is_changed.wait(), left / 1000)
            while self._recorder is None and not self._is_over:
                await asyncio.sleep(OPENING)
            if self._is_over:
                return
            is_changed.clear()
            for part in self._recorder.parts if self._recorder is not None else ():
                try:
                    await part.sample(service.core)
                except CoreStopped:
                    return
                except Exception as error:
                    _log.error("no sample for the history: %s", error, exc_info=error)

    def audited(self, time: int, entry: Mapping[str, Any]) -> None:
        """Take an entry of the audit log, of a time (ns)."""
        self._audited.append((time, entry))

    def finish(self) -> None:
        """Write the rest for a limited time, after the end of the core."""
        self.events.finish()
        self._stopping.set()
        self.events.wake.set()
        if self._thread.is_alive():
            self._thread.join(FINISHING + 2)
            left = self.status().backlog
            if left:
                _log.error(
                    "%s: %d events and rows could not be written before the end%s",
                    self._location,
                    left,
                    f": {self._problem}".replace(f"{self._location}: ", "") if self._problem else "",
                )

    # -- in the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        deadline: float | None = None
        while not self._is_over:
            if deadline is None and self._stopping.is_set():
                deadline = _seconds() + FINISHING
            self.events.wake.wait(self._leisure(deadline is not None))
            self.events.wake.clear()
            try:
                self._step()
            except Exception as error:
                self._unexpected(error)
            if deadline is not None and (_seconds() >= deadline or self._has_nothing):
                break
        self._end(FINISHING)

    def _leisure(self, stopping: bool) -> float:
        """Return the seconds to wait for an event."""
        if stopping or self._job is not None:
            return 0.01
        recorder = self._recorder
        if recorder is not None and (recorder.changed.allocations or recorder.changed.applications):
            return IDLE_INTERVAL / 2
        return 1.0

    def _step(self) -> None:
        """Do what can be done without waiting for the database."""
        if self._job is not None and self._job.done():
            job, self._job = self._job, None
            self._conclude(job)
        elif self._job is not None and self._is_slow:
            self._report(self._slow)
        if self._is_over:
            return
        if self._recorder is None:
            if not self.events.is_empty:
                self._open()
            return
        for _ in self._record(self._recorder):
            self._rest()
            if self._job is not None and self._job.done():
                break
            if _seconds() >= self._next_commit and self._job is None:
                break
        self._recorder.tick(self._now())
        self._bound(self._recorder)
        if self._job is None and _seconds() >= self._next_try:
            self._commit(self._recorder)
        if self._job is None and _seconds() >= max(self._next_try, self._next_removal):
            self._remove()

    def _ask(self, job: Future[T], then: Callable[[T], None]) -> None:
        """Let a function take the result of an operation of the database, which has begun."""
        self._job, self._then, self._asked = job, then, _seconds()

    @property
    def _slow(self) -> str:
        return f"{self._location}: the database has not answered for {SLOW:g} s"

    @property
    def _is_slow(self) -> bool:
        return _seconds() >= self._asked + SLOW

    @property
    def _has_nothing(self) -> bool:
        """True if no resource manager has registered, so that the database was not opened."""
        return self._recorder is None and self._job is None and self.events.is_empty

    def _now(self) -> int:
        return self._clock.now() // MILLISECOND

    def _open(self) -> None:
        if self._job is None and _seconds() >= self._next_try:
            if self._database is None:
                self._database = DatabaseThread(self._location, self._clock)
            self._ask(self._database.load(past_usage=self.past_usage is not None), self._opened)

    def _opened(self, loaded: LoadedHistory) -> None:
        assert self._database is not None
        now = self._now()
        batch = RowBatch()
        for row in loaded.rows.open[RUNS.name]:
            run: tuple[Any, ...] = row
            number, started, seen, _, *others = run
            batch.add(RUNS.name, (number, started, seen, seen, *others))
        recorder = HistoryRecorder(loaded.rows, loaded.alive, loaded.ids, self._settings.tags, now)
        recorder.changed.usage = loaded.usage
        recorder.context.config_source = self._config_source
        recorder.context.audited = self._audited
        recorder.parts = (RecordedCore(recorder.context, loaded.kept),)
        self._run_row = [recorder.ids.new(RUNS.name), now, now, None, __version__, socket.gethostname()]
        self._batch = batch
        self._recorder = recorder
        credit, self.past_usage = self.past_usage, None
        if credit is not None and loaded.past is not None:
            with contextlib.suppress(RuntimeError):  # the event loop is over
                credit(loaded.past)

    def _record(self, recorder: HistoryRecorder) -> Iterator[None]:
        """Record the events in the buffer, in slices."""
        while True:
            received = self._received
            if received is None:
                item = self.events.take()
                if item is None:
                    recorder.caught_up()
                    return
                if isinstance(item, SessionChange):
                    recorder.session(item)
                    continue
                if isinstance(item, LostEvents):
                    self._add_gap(item)
                    recorder.lost(item)
                    continue
                received, self._received, self._position = item, item, 0
            entries = received.entries[self._position : self._position + SLICE]
            self._position += SLICE
            if self._position >= len(received.entries):
                self._received = None
            try:
                recorder.events(entries, received)
            except Exception as error:
                self._unexpected(error)
                lost = LostEvents(self._now(), self._now(), len(entries))
                self._lost += len(entries)
                self._add_gap(lost)
                recorder.lost(lost)
            yield

    def _rest(self) -> None:
        """Pause until a busy core has had most of the processor, which it may have to share itself."""
        used, self._used = time.thread_time() - self._used, time.thread_time()
        if not self._is_busy() or self._stopping.is_set():
            return
        full = self.events.backlog / MOST
        share = SHARE if full < 0.5 else LARGEST_SHARE * full
        left = used / share - used
        until = time.process_time() + left
        for _ in range(PAUSES):
            if left <= 0 or self._stopping.wait(left) or not self._is_busy():
                return
            left = until - time.process_time()

    _used = 0.0
    """Processor time of the thread at the latest pause."""

    # -- rows -----------------------------------------------------------------------------------------

    def _commit(self, recorder: HistoryRecorder) -> None:
        """Begin to write changed rows, if it is time, or what could not be written before."""
        assert self._database is not None
        now, at = self._now(), _seconds()
        if self._batch is None:
            is_changed = bool(recorder.changed.allocations or recorder.changed.applications or self._gaps)
            is_alone = at >= self._latest_commit + HEARTBEAT
            stopping = self._stopping.is_set()
            if not stopping and (at < self._next_commit or not (is_changed or is_alone)):
                return
            self._batch = self._next_batch(recorder, now, stopping=stopping)
            self._next_commit = at + (BUSY_INTERVAL if self._is_busy() else IDLE_INTERVAL)
        if self._refusals < MOST_REFUSALS:
            self._ask(self._database.write(self._batch, self._complete), self._written)
        else:
            self._ask(self._database.write_parts(self._batch, self._complete), self._partly_written)

    def _next_batch(self, recorder: HistoryRecorder, now: int, *, stopping: bool) -> RowBatch:
        # Whatever a part raises, the rows of this batch must not be lost.
        batch = self._batch = RowBatch()
        is_alone = not (recorder.changed.allocations or recorder.changed.applications)
        self._is_last = stopping and is_alone and self.events.is_empty and self._received is None
        self._run_row[2:4] = now, now if self._is_last else None
        batch.add(RUNS.name, tuple(self._run_row))

        def complete(batch: RowBatch) -> None:
            if recorder.changed.usage is not None:
                recorder.changed.usage.add_rows(now, batch, ends=self._is_last)
            # Not again when the batch is written again.
            self._complete = _is_complete

        self._complete = complete
        recorder.changed.fill(batch, MOST_ROWS)
        batch.rows[GAPS.name], self._gaps = self._gaps, []
        for part in recorder.parts:
            for table, row in part.rows(now):
                batch.add(table, row)
        recorder.ids.move_to(batch)
        return batch

    def _conclude(self, job: Future[Any]) -> None:
        """Take the result of an operation of the database."""
        try:
            result = job.result()
        except HistoryTaken as error:
            _log.error("%s", error)
            self._give_up(str(error))
        except (HistoryCorrupt, HistoryEmptied) as error:
            # Set aside, or gone: the next one gets all that is known.
            _log.error("%s", error)
            if self._recorder is not None and self._batch is not None:
                self._recorder.change_all()
                for part in self._recorder.parts:
                    part.repeat()
                self._recorder.ids.repeat()
                self._recorder.ids.move_to(self._batch)
        except YunikornError as error:
            self._refusals += not isinstance(error, HistoryAway | HistoryLocked)
            self._report(str(error))
            self._back_off()
        except Exception as error:
            self._refusals += 1
            self._unexpected(error)
        else:
            self._then(result)
            self._retry = FIRST_RETRY
            if not self._is_slow:
                self._end_problem()
            self._end_loss()

    def _back_off(self) -> None:
        self._next_try = _seconds() + self._retry
        self._retry = min(2 * self._retry, LONGEST_RETRY)

    def _unexpected(self, error: Exception) -> None:
        """Say once that the history has a bug, and pause."""
        self._problem = f"{self._location}: unexpected error: {type(error).__name__}: {printable(str(error))}"
        if self._problem != self._raised:
            _log.error("%s; report it as a bug", self._problem, exc_info=error)
        self._raised = self._problem
        self._back_off()

    def _give_up(self, problem: str) -> None:
        """Record nothing more, and keep nothing in memory."""
        self._problem, self._is_over = problem, True
        self.events.close()
        self._recorder = self._batch = self._received = None

    def _partly_written(self, refused: Sequence[RefusedRow]) -> None:
        for one in refused[:SHOWN_REFUSED]:
            what = printable(f"{one.row}"[:500]), printable(f"{type(one.error).__name__}: {one.error}")
            _log.error(
                "%s: a row of %r cannot be written, and is lost: %s: %s", self._location, one.table, *what
            )
        if refused:
            self._lost += len(refused)
            self._add_gap(LostEvents(self._now(), self._now(), len(refused)))
        self._written(None)

    def _written(self, _: None) -> None:
        self._batch, self._refusals = None, 0
        self._is_over = self._is_last
        self._committed, self._latest_commit = self._now(), _seconds()

    def _remove(self) -> None:
        """Begin to remove some of what is too old or too much, in one of many short transactions."""
        assert self._database is not None
        now, retention, recorder = self._now(), self._retention, self._recorder
        ids = (
            {NAMES.name: recorder.ids.names, SHAPES.name: recorder.ids.shapes} if recorder is not None else {}
        )
        self._ask(self._database.call(lambda writer: retention.step(writer, now, ids)), self._removed)

    def _removed(self, is_more: bool) -> None:
        self._next_removal = _seconds() + (REMOVAL_PAUSE if is_more else REMOVAL)

    def _report(self, problem: str) -> None:
        if not self._problem:
            _log.warning("%s; what happens meanwhile waits in memory", problem)
        self._problem = problem

    def _end_problem(self) -> None:
        if self._problem:
            self._problem = ""
            _log.info("%s: the history is written again", self._location)

    def _end_loss(self) -> None:
        if self._lost_since is not None:
            since, before = self._lost_since
            self._lost_since = None
            self._add_gap(LostEvents(since, self._now(), self._lost - before))

    def _add_gap(self, gap: LostEvents) -> None:
        assert self._recorder is not None
        if len(self._gaps) >= MOST_GAPS:
            before: Any = self._gaps.pop()
            gap = LostEvents(before[1], gap.until, before[3] + gap.lost)
        number = self._recorder.ids.new(GAPS.name)
        self._gaps.append((number, gap.since, gap.until, gap.lost))
        _log.error(
            "%s: %d events and rows from %d to %d (ms since 1970) are lost",
            self._location,
            gap.lost,
            gap.since,
            gap.until,
        )

    def _bound(self, recorder: HistoryRecorder) -> None:
        """Lose the oldest of what has begun and ended while nothing could be written, if it is too much."""
        if _seconds() < self._next_bound:
            return
        self._next_bound = _seconds() + BOUNDING
        since, changed = self._now(), (recorder.changed.allocations, recorder.changed.applications)
        lost = lose_oldest(*changed, MOST_CHANGED, MOST_APPLICATIONS)
        if lost and self._lost_since is None:
            self._lost_since = since, self._lost
            _log.error("%s: the memory is full: the oldest of what has ended is lost", self._location)
        self._lost += lost

    def _end(self, patience: float) -> None:
        """Close the database, if it does not take too long."""
        if self._database is not None and self._job is None:
            closed = self._database.close()
            try:
                closed.result(patience)
            except Exception as error:
                _log.warning("%s: %s", self._location, printable(str(error)))


def _seconds() -> float:
    """Return a time that never goes back."""
    return stopwatch() / SECOND


def _is_complete(_: RowBatch) -> None:
    """Leave a batch as it is."""
