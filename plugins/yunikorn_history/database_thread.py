"""Thread in which a recorder opens, reads and writes its database, however long that takes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import attrs
import sqlalchemy as sa

from yunikorn.clock import MILLISECOND, Clock
from yunikorn.interface.commands import CreditUsage
from yunikorn_history.database import HistoryError, HistoryLocation, HistoryWriter
from yunikorn_history.fetched_rows import FetchedRows, unread_texts
from yunikorn_history.history_tables import RUNS
from yunikorn_history.past_usage import past_usage
from yunikorn_history.recorded_core import KeptRows
from yunikorn_history.row_ids import RowIds
from yunikorn_history.row_writer import OpenRows, RefusedRow, RowWriter
from yunikorn_history.rows import RowBatch
from yunikorn_history.service_usage import ServiceUsage

T = TypeVar("T")


class HistoryEmptied(HistoryError):
    """Database that has lost what this process wrote: it was restored, made again, or its file was moved."""


class HistoryTaken(HistoryError):
    """Database to which another process has written meanwhile."""


@attrs.frozen
class LoadedHistory:
    """State of a database from which a recorder continues."""

    rows: OpenRows
    alive: int
    """Latest time at which an earlier run was seen (ms)."""
    ids: RowIds
    usage: ServiceUsage
    kept: KeptRows
    past: CreditUsage | None = None
    """Usage for policies of the core, if it was asked for."""


class DatabaseThread:
    """A database in a thread of its own; one operation at a time."""

    def __init__(self, location: HistoryLocation, clock: Clock) -> None:
        self.location = location
        self.run_id = 0
        """Id of the run that is recorded; 0 before the database was first opened."""
        self._clock = clock
        self._writer = HistoryWriter(location, clock)
        self._rows = RowWriter(self._writer)
        self._is_doubtful = False
        """True after a failure: others may have written since."""
        self._has_lost_file = self._has_written = False
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="yunikorn-history-database", daemon=True).start()

    def check(self) -> Future[None]:
        """Open and close the database, which creates or converts its tables."""
        return self._put(self._check_tables)

    def load(self, *, past_usage: bool = False) -> Future[LoadedHistory]:
        """Open the database, and return what a recorder continues from, and usage for policies if wanted."""
        return self._put(partial(self._load, past_usage))

    def write(self, batch: RowBatch, complete: Callable[[RowBatch], object]) -> Future[None]:
        """Write a batch, after its completion by a function, which may read the database."""
        return self._write(batch, complete, self._rows.write)

    def write_parts(
        self, batch: RowBatch, complete: Callable[[RowBatch], object]
    ) -> Future[list[RefusedRow]]:
        """Write what the database takes of a batch likewise, and return the rest."""
        return self._write(batch, complete, self._rows.write_parts)

    def _write(
        self, batch: RowBatch, complete: Callable[[RowBatch], object], write: Callable[[RowBatch], T]
    ) -> Future[T]:
        def operation() -> T:
            self._check()
            complete(batch)
            written = write(batch)
            self._has_written = True
            return written

        return self._put(lambda: self._checked(operation))

    def call(self, operation: Callable[[HistoryWriter], T]) -> Future[T]:
        """Carry out another operation with the writer."""
        return self._put(lambda: self._checked(lambda: operation(self._writer)))

    def close(self) -> Future[None]:
        """Close the database, and thereby end the lock of its writer."""
        return self._put(self._writer.close)

    def _check_tables(self) -> None:
        with self._writer.transaction():
            pass
        self._writer.close()

    def _load(self, wants_usage: bool) -> LoadedHistory:
        loaded = self._rows.load()
        with self._writer.transaction() as connection:
            alive = connection.scalar(sa.select(sa.func.max(RUNS.c.seen))) or 0
        self.run_id = loaded.highest[RUNS.name] + 1
        ids = RowIds(loaded)
        now = self._clock.now() // MILLISECOND
        usage, kept = ServiceUsage(self._find, now), KeptRows.read(self._find, now)
        past = None
        if wants_usage:
            with self._writer.transaction() as connection:
                past = past_usage(FetchedRows(connection, unread_texts()))
        return LoadedHistory(loaded, alive, ids, usage, kept, past)

    def _find(self, query: sa.Select[Any]) -> Sequence[Sequence[Any]]:
        with self._writer.transaction() as connection:
            return connection.execute(query).all()

    def _checked(self, operation: Callable[[], T]) -> T:
        try:
            return operation()
        except HistoryEmptied:
            # No other process has written: the next attempt writes.
            raise
        except Exception:
            self._is_doubtful = True
            raise

    def _check(self) -> None:
        """After a failure or without its file, raise `HistoryError` unless this process wrote last."""
        if self._writer.leave_lost_file():
            self._has_lost_file = self._is_doubtful = True
        if not self._is_doubtful:
            return
        with self._writer.transaction() as connection:
            latest = connection.scalar(sa.select(sa.func.max(RUNS.c.id))) or 0
        if latest > self.run_id:
            self._writer.close()
            raise HistoryTaken(
                f"{self.location}: another scheduler has written to it meanwhile:"
                " this one records nothing more until it is started again"
            )
        self._is_doubtful = False
        if self._has_lost_file:
            self._has_lost_file = False
            raise HistoryEmptied(
                f"{self.location}: the file was moved, removed or replaced: writing what is known to the file"
                " that has the name now, which is new if there was none"
            )
        if latest < self.run_id and self._has_written:
            raise HistoryEmptied(f"{self.location}: what was written before is gone: writing what is known")

    def _put(self, operation: Callable[[], T]) -> Future[T]:
        done: Future[T] = Future()
        self._work.put((operation, done))
        return done

    def _run(self) -> None:
        while True:
            operation, done = self._work.get()
            try:
                done.set_result(operation())
            except BaseException as error:
                done.set_exception(error)
