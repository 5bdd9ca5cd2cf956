"""The thread of a recorder when writing fails: it pauses, says so once, and loses only what is refused."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.core.kit import RM, configuration
from tests.history.recorded_core import START, read_rows
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_history import recording_thread
from yunikorn_history.database import HistoryAway, HistoryWriter
from yunikorn_history.database_thread import DatabaseThread, HistoryTaken
from yunikorn_history.recorded_history import HistorySettings
from yunikorn_history.recording_thread import RecordingThread
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import RowBatch


class Recording:
    """A core with a resource manager, and the thread that records it."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.thread = RecordingThread(HistorySettings(place), ManualClock(START))
        self.scheduler = Scheduler(
            Registry.load(third_party=False), ManualClock(START), event_receiver=self.thread.events
        )
        self.thread.events.attach(self.scheduler)
        self.thread.begin(lambda: False)
        self.rm = RM(configuration(), scheduler=self.scheduler)
        self.rm.node("n1", vcore=10_000)

    def run(self, app: str, *keys: str) -> None:
        """Run tasks."""
        self.rm.app(app)
        for key in keys:
            self.rm.ask(app, key, vcore=1)
        self.rm.schedule()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition."""
        deadline, event = time.monotonic() + 60, threading.Event()
        while not condition():
            assert time.monotonic() < deadline
            event.wait(0.01)

    def keys(self) -> list[str]:
        """Return the keys of the recorded tasks."""
        return [one["key"] for one in read_rows(self.place, "allocations")]


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recording]:
    monkeypatch.setattr(recording_thread, "FIRST_RETRY", 0.01)
    made = Recording(str(tmp_path / "history.db"))
    yield made
    made.thread.finish()


def test_an_unexpected_failure_is_said_once_and_loses_nothing(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[RowBatch] = []

    def fail(_: RowWriter, batch: RowBatch) -> None:
        tries.append(batch)
        raise ValueError("no such thing")

    with monkeypatch.context() as patched:
        patched.setattr(RowWriter, "write", fail)
        recording.run("a", "first", "second")
        recording.until(lambda: len(tries) >= 5)
        assert "no such thing" in recording.thread.status().problem
    recording.until(lambda: not recording.thread.status().problem)
    recording.thread.finish()
    assert recording.keys() == ["first", "second"]
    errors = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert ["unexpected error: ValueError: no such thing" in one.message for one in errors] == [True]
    assert read_rows(recording.place, "gaps") == []


def test_a_row_that_is_refused_is_lost_alone(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    write = RowWriter.write

    def refuse(self: RowWriter, batch: RowBatch) -> None:
        if any("poison" in row for row in batch.rows.get("allocations", ())):
            raise ValueError("poison")
        write(self, batch)

    monkeypatch.setattr(RowWriter, "write", refuse)
    recording.run("a", "first", "poison", "third")
    recording.until(lambda: recording.thread.status().lost)
    recording.thread.finish()
    assert recording.keys() == ["first", "third"]
    assert [one["lost"] for one in read_rows(recording.place, "gaps")] == [1]


def test_nothing_is_kept_for_a_database_that_another_scheduler_writes(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.run("a", "first")
    recording.until(lambda: recording.thread.status().committed)

    def taken(_: DatabaseThread) -> None:
        raise HistoryTaken("another scheduler has written to it")

    monkeypatch.setattr(DatabaseThread, "_check", taken)
    recording.run("b", "second")
    recording.until(lambda: recording.thread.status().problem)
    recording.run("c", *(f"task-{number}" for number in range(100)))
    status = recording.thread.status()
    assert (status.backlog, "another scheduler" in status.problem) == (0, True)


def test_an_emptied_database_gets_what_is_known_once(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.run("a", "first")
    recording.until(lambda: recording.thread.status().committed)
    recording.until(lambda: read_rows(recording.place, "allocations"))

    def away(_: RowWriter, batch: RowBatch) -> None:
        raise HistoryAway("away")

    with monkeypatch.context() as patched:
        patched.setattr(RowWriter, "write", away)
        recording.run("b", "second")
        recording.until(lambda: recording.thread.status().problem)
        with sqlite3.connect(recording.place, timeout=30) as other:
            for table in ("runs", "applications", "allocations"):
                other.execute(f"DELETE FROM {table}")
    recording.until(lambda: not recording.thread.status().problem)
    recording.thread.finish()
    assert recording.keys() == ["first", "second"]


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_file_that_is_moved_or_removed_is_said_and_a_new_one_gets_what_is_known(
    recording: Recording, is_moved: bool, caplog: pytest.LogCaptureFixture
) -> None:
    recording.run("a", "first")
    recording.until(lambda: recording.thread.status().committed)
    recording.until(lambda: read_rows(recording.place, "allocations"))
    file, moved = Path(recording.place), Path(f"{recording.place}.moved")
    file.rename(moved) if is_moved else file.unlink()
    recording.run("b", "second")
    recording.until(lambda: file.exists() and "the file was moved" in caplog.text)
    recording.thread.finish()
    assert recording.keys() == ["first", "second"]
    assert not recording.thread.status().problem
    (message,) = [one.message for one in caplog.records if one.levelno >= logging.WARNING]
    assert "the file was moved, removed or replaced: writing what is known" in message
    with closing(sqlite3.connect(recording.place)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    if is_moved:
        assert [one["key"] for one in read_rows(str(moved), "allocations")] == ["first"]


def test_a_database_that_does_not_answer_delays_nothing_keeps_a_bounded_memory_and_is_said(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recording.run("first", "first")
    recording.until(lambda: recording.thread.status().committed)
    recording.until(lambda: read_rows(recording.place, "allocations"))
    answer, asked, write = threading.Event(), threading.Event(), RowWriter.write

    def late(self: RowWriter, batch: RowBatch) -> None:
        asked.set()
        answer.wait()
        write(self, batch)

    monkeypatch.setattr(RowWriter, "write", late)
    for name, value in (("SLOW", 0.1), ("BOUNDING", 0.0), ("MOST_CHANGED", 50), ("MOST_APPLICATIONS", 50)):
        monkeypatch.setattr(recording_thread, name, value)
    recording.run("kept", "kept")
    recording.until(asked.is_set)
    recording.until(lambda: recording.thread.status().problem)
    for number in range(300):
        recording.run(f"short-{number}", "short")
        # Each is placed at once, and ends.
        placed = [uuid for uuid, one in recording.rm.running.items() if one.allocation_key == "short"]
        assert len(placed) == 1
        recording.rm.release(f"short-{number}", placed[0])
        recording.rm.remove_app(f"short-{number}")
        recording.rm.schedule(0)
    recording.until(lambda: recording.thread.events.backlog == 0 and recording.thread.status().lost > 200)
    # Rows that are being written, with counts of two queues, a user and the partition in three levels (the
    # minute may end meanwhile), and as many as may be kept.
    assert recording.thread.status().backlog < 2 + 2 + 4 * 4 + 2 * 50
    answer.set()
    recording.until(lambda: not recording.thread.status().problem)
    recording.thread.finish()
    found = recording.keys()
    assert found[:2] == ["first", "kept"]
    assert 0 < found.count("short") <= 51
    lost = sum(one["lost"] for one in read_rows(recording.place, "gaps"))
    apps = [one["app_id"] for one in read_rows(recording.place, "applications")]
    assert lost == 2 * 300 - found.count("short") - (len(apps) - 2)
    said = [one.message.partition(": ")[2] for one in caplog.records if one.levelno >= logging.WARNING]
    assert said[:2] == [
        "the database has not answered for 0.1 s; what happens meanwhile waits in memory",
        "the memory is full: the oldest of what has ended is lost",
    ]


def test_a_service_does_not_wait_for_a_database_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answer, connect = threading.Event(), HistoryWriter._connect

    def late(self: HistoryWriter) -> sa.Connection:
        answer.wait()
        return connect(self)

    monkeypatch.setattr(HistoryWriter, "_connect", late)
    monkeypatch.setattr(recording_thread, "SLOW", 0.05)
    thread = RecordingThread(HistorySettings(str(tmp_path / "history.db")), ManualClock(START))
    asyncio.run(thread.check())
    assert "has not answered for 0.05 s" in thread.status().problem
    assert len(caplog.records) == 1
    answer.set()
