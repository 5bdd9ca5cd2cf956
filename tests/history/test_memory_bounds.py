"""Losses, and what is not lost, while the database is away for longer than the memory lasts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.history.recorded_core import START, RecordedCore
from tests.history.written_history import WrittenHistory
from yunikorn.clock import MILLISECOND, SECOND
from yunikorn_history import row_writer, rows
from yunikorn_history.database import open_writer
from yunikorn_history.history_tables import DAY, NAMES, QUEUE_SERIES, SERIES
from yunikorn_history.memory_bounds import lose_oldest
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids, RowBatch

BEGIN = START // MILLISECOND


@pytest.fixture
def core(tmp_path: Path) -> Iterator[RecordedCore]:
    made = RecordedCore(str(tmp_path / "history.db"))
    made.rm.node("n1", vcore=10_000)
    yield made
    made.close()


def lose(core: RecordedCore, *most: int) -> int:
    core.record()
    recorder = core.recorder
    return lose_oldest(recorder.changed.allocations, recorder.changed.applications, *most)


def run(core: RecordedCore, app: str, tasks: int = 1) -> list[str]:
    before = {*core.rm.running}
    core.rm.app(app)
    core.rm.ask(app, "task", tasks, vcore=1)
    core.rm.schedule()
    return [one for one in core.rm.running if one not in before]


def test_what_has_a_row_also_gets_its_end(core: RecordedCore) -> None:
    running = run(core, "a", 30)
    core.write()
    core.clock.set(START + 10 * SECOND)
    for uuid in running:
        core.rm.release("a", uuid)
    core.rm.schedule(0)
    assert lose(core, 20, 20) == 0
    core.write(ends=True)
    assert {one["ended"] for one in core.rows("allocations")} == {BEGIN + 10_000}
    days = [one["data"] for one in core.rows("usage") if one["level"] == 3]
    assert [(one["started"], one["ended"], one["service"]["vcore"]) for one in days] == [(30, 30, 300_000)]


def test_what_began_and_ended_meanwhile_is_lost_as_a_whole_and_what_runs_is_not(core: RecordedCore) -> None:
    before = run(core, "a", 5)
    core.write()
    short, running = run(core, "b", 12), run(core, "c", 12)
    core.clock.set(START + 10 * SECOND)
    for uuid in short:
        core.rm.release("b", uuid)
    core.rm.release("a", before[0])
    core.rm.schedule(0)
    assert lose(core, 20, 20) == 7
    core.write(ends=True)
    tasks = core.rows("allocations")
    assert len(tasks) == 5 + 5 + 12
    assert sum(one["ended"] is None for one in tasks) == len(running) + 4
    (day,) = [one["data"] for one in core.rows("usage") if one["level"] == 3]
    assert (day["started"], day["ended"]) == (22, 6)
    assert day["service"]["vcore"] == (12 + 4 + 5 + 1) * 10_000


def test_applications_are_lost_with_their_allocations(core: RecordedCore) -> None:
    run(core, "kept")
    core.write()
    for number in range(30):
        (uuid,) = run(core, f"short-{number}")
        core.rm.release(f"short-{number}", uuid)
        core.rm.remove_app(f"short-{number}")
    core.rm.schedule(0)
    assert lose(core, 1_000, 20) == 2 * 12
    core.write()
    apps = core.rows("applications")
    assert [one["app_id"] for one in apps] == ["kept", *(f"short-{number}" for number in range(12, 30))]
    assert {one["app"] for one in core.rows("allocations")} == {one["id"] for one in apps}


def test_texts_that_do_not_come_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_KNOWN", 10)
    names = Ids("names", {"root.a": 1, "old": 2}, 3)
    assert {names.of("root.a") for number in range(100) if names.of(f"message {number}")} == {1}
    batch = RowBatch()
    names.repeat()
    names.move_to(batch)
    assert len(batch) <= 20
    # Another row with the same text.
    assert names.of("message 1") > 100


def test_of_many_texts_a_start_reads_those_that_may_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_TEXTS", "LATEST_TEXTS"):
        monkeypatch.setattr(row_writer, name, 2)
    location = str(tmp_path / "history.db")
    history = WrittenHistory()
    history.application("ended", START, reason="first", ended=START + 1)
    for number in range(50):
        history.application(f"job-{number}", START, reason=f"message {number}", ended=START + 1)
    history.application("open", START, reason="still there")
    day = {"kind": QUEUE_SERIES, "level": 3, "data": {"n": 1}}
    history.add(SERIES, name="root.past", time=START, **day)
    history.add(SERIES, name="root.used", time=START + 30 * DAY, **day)
    for number in range(50, 60):
        history.application(f"job-{number}", START, reason=f"message {number}", ended=START + 1)
    history.write(location)
    writer = open_writer(location)
    loaded = RowWriter(writer).load()
    with writer.transaction() as connection:
        every = {text: number for number, text in connection.execute(sa.select(NAMES))}
    writer.close()
    assert loaded.names.items() <= every.items()
    assert {"still there", "root.used", "root.default", "rm", "ann", "message 59"} <= loaded.names.keys()
    assert not {"root.past", "message 30"} & loaded.names.keys()
    names = Ids("names", loaded.names, loaded.highest["names"] + 1)
    assert names.of("root.used") == every["root.used"]
    assert names.of("message 30") > max(every.values())
    # No row gets these ids any more.
    unused = [(every[text], text) for text in ("message 30", "message 31", "root.used", "still there")]
    assert names.forget([*unused, (names.of("message 30"), "message 30")]) == [
        every[text] for text in ("message 30", "message 31", "still there")
    ]
