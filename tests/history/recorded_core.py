"""A core whose history is recorded, step by step, in the thread of a test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from tests.core.kit import RM, configuration
from yunikorn.clock import MILLISECOND, SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_history.database import HistoryLocation, open_reader
from yunikorn_history.database_thread import DatabaseThread
from yunikorn_history.event_buffer import EventBuffer, LostEvents, ReceivedEvents, SessionChange
from yunikorn_history.history_recorder import HistoryRecorder
from yunikorn_history.history_tables import METADATA, NAMES, SHAPES
from yunikorn_history.rows import RowBatch

START = 1_700_000_000 * SECOND
MOST = 1_000


class RecordedCore:
    """A core with one resource manager, and its recorder; `close` leaves it as a kill would."""

    def __init__(self, location: str, config: str = "", *, now: int = START, rm_id: str = "rm") -> None:
        """Begin at a time (ns)."""
        self.location, self._config, self._rm_id = location, config or configuration(), rm_id
        self.clock = ManualClock(now)
        self.events = EventBuffer(self.clock.now)
        self.scheduler = Scheduler(Registry.load(third_party=False), self.clock, event_receiver=self.events)
        self.events.attach(self.scheduler)
        self._database = DatabaseThread(HistoryLocation.parse(location), self.clock)
        loaded = self._database.load().result()
        now = now // MILLISECOND
        self.recorder = HistoryRecorder(loaded.rows, loaded.alive, loaded.ids, frozenset({"team"}), now)
        self.recorder.changed.usage = loaded.usage
        self._run: list[Any] = [self.recorder.ids.new("runs"), now, now, None, "0", "host"]
        self.register()

    def register(self) -> None:
        """Register the resource manager, perhaps again."""
        self.rm = RM(self._config, scheduler=self.scheduler, rm_id=self._rm_id)

    def record(self) -> None:
        """Record what is in the buffer."""
        while (item := self.events.take()) is not None:
            if isinstance(item, SessionChange):
                self.recorder.session(item)
            elif isinstance(item, LostEvents):
                self.recorder.lost(item)
            else:
                assert isinstance(item, ReceivedEvents)
                self.recorder.events(item.entries, item)
        self.recorder.caught_up()
        self.recorder.tick(self.clock.now() // MILLISECOND)

    def write(self, *, ends: bool = False, meanwhile: Callable[[], object] | None = None) -> None:
        """Record, and write all changed rows; call a function while the database is at work."""
        self.record()
        now, batch, usage = self.clock.now() // MILLISECOND, RowBatch(), self.recorder.changed.usage
        begun, done = threading.Event(), threading.Event()
        assert usage is not None

        def complete(batch: RowBatch) -> None:
            if meanwhile is not None:
                begun.set()
                done.wait()
            usage.add_rows(now, batch, ends=ends)

        self.recorder.changed.fill(batch, MOST)
        self._run[2] = now
        batch.add("runs", tuple(self._run))
        written = self._database.write(batch, complete)
        if meanwhile is not None:
            begun.wait()
            try:
                meanwhile()
            finally:
                done.set()
        written.result()

    def close(self) -> None:
        """End without a word."""
        self._database.close().result()

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table, with names, amounts and JSON in place of ids and texts."""
        return read_rows(self.location, table)


def read_rows(location: str, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table by their keys, with names, amounts and JSON in place of ids and texts."""
    reader = open_reader(location)
    try:
        with reader.reading() as connection:
            texts = {
                table.name: {number: text for number, text in connection.execute(sa.select(table))}
                for table in (NAMES, SHAPES)
            }
            columns = METADATA.tables[table].c
            found = connection.execute(sa.select(METADATA.tables[table])).mappings().all()
    finally:
        reader.close()
    rows = []
    for row in sorted(found, key=lambda row: [row[key.name] for key in METADATA.tables[table].primary_key]):
        values = dict(row)
        for column in columns:
            value = values[column.name]
            if "refers" in column.info:
                value = texts[column.info["refers"]][value]
            if column.info.get("json") and value:
                value = json.loads(value)
            values[column.name] = value
        rows.append(values)
    return rows
