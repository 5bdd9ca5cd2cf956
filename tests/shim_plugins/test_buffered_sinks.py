"""Event sinks in threads of their own: ordered, bounded, counted; failures are reported."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator, Sequence

import pytest

from tests.core.kit import RM, document, partition, queue, with_plugins
from yunikorn.api import Context, Event, EventSink
from yunikorn.clock import ManualClock
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.buffered_sinks import BufferedSinks

LONG = 30.0
"""Seconds after which a test counts as hanging."""


class Slow(EventSink):
    """Blocks while its door is closed, and records its calls with their thread."""

    name = "slow"
    transport: threading.Event
    busy: threading.Event
    received: list[str]
    threads: set[str]
    fails: bool

    def opened(self, context: Context) -> None:
        self.received.append("opened")
        self.threads.add(threading.current_thread().name)

    def send(self, batch: Sequence[Event]) -> None:
        self.threads.add(threading.current_thread().name)
        self.busy.set()
        assert self.transport.wait(LONG)
        if self.fails:
            raise OSError("no space left")
        self.received.extend(
            event.object_id for event in batch if event.type == "NODE" and event.change == "ADD"
        )

    def reloaded(self, context: Context) -> None:
        self.received.append("reloaded")

    def closed(self) -> None:
        self.received.append("closed")


@pytest.fixture
def sink() -> Iterator[type[Slow]]:
    """Return a new class for each test."""
    made: type[Slow] = type("Slow", (Slow,), {"__doc__": Slow.__doc__})
    made.transport, made.busy, made.received, made.threads = threading.Event(), threading.Event(), [], set()
    made.fails = False
    made.transport.set()
    yield made
    made.transport.set()


def text(*queues: str) -> str:
    return document(partition(*(queue(name) for name in queues)), events={"sinks": ["slow"]})


def make(sink: type[Slow], buffers: BufferedSinks) -> RM:
    registry = with_plugins(event_sinks=[sink])
    return RM(text("a"), scheduler=Scheduler(registry, ManualClock(), buffer_sinks=buffers))


def test_sink_receives_all_events_in_order_in_its_own_thread(sink: type[Slow]) -> None:
    buffers = BufferedSinks()
    rm = make(sink, buffers)
    for number in range(50):
        rm.node(f"n{number}", vcore=1)
        if number == 20:
            rm.reload(text("a", "b"))
    rm.scheduler.close()
    nodes = [f"n{number}" for number in range(50)]
    assert sink.received == ["opened", *nodes[:21], "reloaded", *nodes[21:], "closed"]
    assert sink.threads == {"yunikorn-sink-slow of test-plugin (yunikorn-test 1.0)"}
    assert list(buffers) == []


def test_events_beyond_the_buffer_are_dropped_and_counted(
    sink: type[Slow], caplog: pytest.LogCaptureFixture
) -> None:
    buffers = BufferedSinks(capacity=10)
    rm = make(sink, buffers)
    sink.transport.clear()
    rm.node("first", vcore=1)
    assert sink.busy.wait(LONG)
    with caplog.at_level(logging.WARNING, "yunikorn.plugins"):
        for number in range(100):
            rm.node(f"n{number}", vcore=1)
    (load,) = buffers
    assert (load.origin, load.waiting) == ("slow of test-plugin (yunikorn-test 1.0)", 10)
    assert load.dropped > 100
    warnings = [record.getMessage() for record in caplog.records]
    assert "event sink slow of test-plugin (yunikorn-test 1.0) is too slow" in warnings[0]
    assert len(warnings) < 12, "said again only when their number has doubled"
    sink.transport.set()
    rm.scheduler.close()
    assert sink.received[1:3] == ["first", "n0"]
    assert sink.received[-1] == "closed"


def test_sink_that_raises_is_disabled_and_reported(sink: type[Slow]) -> None:
    buffers = BufferedSinks()
    rm = make(sink, buffers)
    sink.fails = True
    rm.node("n1", vcore=1)
    thread = next(one for one in threading.enumerate() if one.name.startswith("yunikorn-sink-slow"))
    thread.join(LONG)
    rm.node("n2", vcore=1)
    (failure,) = rm.failures()
    assert failure.endswith("sending events (the sink is switched off): OSError: no space left")
    rm.node("n3", vcore=1)
    assert sink.received == ["opened", "closed"]
    sink.fails = False
    rm.reload(text("a", "b"))
    rm.node("n4", vcore=1)
    rm.scheduler.close()
    assert sink.received == ["opened", "closed", "opened", "n4", "closed"]


def test_sink_that_hangs_in_close_is_abandoned(sink: type[Slow], caplog: pytest.LogCaptureFixture) -> None:
    rm = make(sink, BufferedSinks(patience=0.01))
    sink.transport.clear()
    rm.node("n1", vcore=1)
    assert sink.busy.wait(LONG)
    rm.node("n2", vcore=1)
    rm.scheduler.close()
    assert "they are lost" in caplog.text


def test_shutdown_does_not_wait_for_a_hanging_sink(sink: type[Slow]) -> None:
    buffers = BufferedSinks(patience=LONG)
    rm = make(sink, buffers)
    sink.transport.clear()
    rm.node("n1", vcore=1)
    assert sink.busy.wait(LONG)
    rm.node("n2", vcore=1)
    rm.reload(document(partition(queue("a"))))
    assert sink.received == ["opened"], "it has its time to take what is left, and the core went on"
    assert list(buffers) == []
    sink.transport.set()
    buffers.finish()
    assert sink.received == ["opened", "n1", "n2", "closed"]


def test_sink_is_opened_after_its_predecessor_is_closed(sink: type[Slow]) -> None:
    buffers = BufferedSinks(patience=LONG)
    rm = make(sink, buffers)
    sink.transport.clear()
    rm.node("n1", vcore=1)
    assert sink.busy.wait(LONG)
    rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=text("a")), rm)
    rm.node("n2", vcore=1)
    assert sink.received == ["opened"]
    sink.transport.set()
    rm.scheduler.close()
    assert sink.received == ["opened", "n1", "closed", "opened", "n2", "closed"]


def test_exception_in_the_last_call_is_reported(sink: type[Slow]) -> None:
    buffers = BufferedSinks()
    rm = make(sink, buffers)
    sink.transport.clear()
    rm.node("n1", vcore=1)
    assert sink.busy.wait(LONG)
    sink.fails = True
    rm.scheduler.stop("rm")
    sink.transport.set()
    buffers.finish()
    assert rm.failures() == [
        "plugin slow of test-plugin (yunikorn-test 1.0): sending events (the sink is switched off): "
        "OSError: no space left"
    ]


def test_sink_that_cannot_be_opened_is_reported_immediately(sink: type[Slow]) -> None:
    def refuse(self: Slow, context: Context) -> None:
        raise PermissionError("not for you")

    sink.opened = refuse  # type: ignore[method-assign]
    rm = make(sink, BufferedSinks())
    assert "opening (the sink is switched off): PermissionError: not for you" in rm.failures()[0]
    rm.scheduler.stop("rm")


def test_buffer_without_capacity_is_rejected() -> None:
    with pytest.raises(ValueError, match="must be at least 1 event, got 0"):
        BufferedSinks(capacity=0)


def test_sink_whose_call_does_not_return_is_switched_off_and_named(sink: type[Slow]) -> None:
    buffers = BufferedSinks(patience=LONG)
    rm = make(sink, buffers)
    sink.transport.clear()
    rm.node("n1", vcore=1)
    assert sink.busy.wait(LONG)
    assert [buffers.poll(now, 60.0) for now in (100.0, 130.0, 159.0, 160.0, 200.0)] == [
        *[False] * 3,
        *[True, False],
    ]
    (failure,) = rm.failures()
    assert failure == (
        "plugin slow of test-plugin (yunikorn-test 1.0): sending events (the sink is switched off): "
        "one call has not returned for 60 seconds"
    )
    rm.node("n2", vcore=1)
    assert not rm.at_work().partition.changes.events.enabled
    sink.transport.set()
    rm.reload(text("a", "b"))
    rm.node("n3", vcore=1)
    rm.scheduler.close()
    assert sink.received == ["opened", "n1", "closed", "opened", "n3", "closed"]


def test_poll_of_healthy_sinks_finds_nothing(sink: type[Slow]) -> None:
    buffers = BufferedSinks()
    rm = make(sink, buffers)
    for number in range(5):
        rm.node(f"n{number}", vcore=1)
        assert not buffers.poll(1000.0 * number, 60.0)
    assert rm.failures() == []
    rm.scheduler.close()


def test_failure_in_the_sinks_thread_is_reported_without_further_events(sink: type[Slow]) -> None:
    buffers = BufferedSinks()
    rm = make(sink, buffers)
    sink.fails = True
    rm.node("n1", vcore=1)
    next(one for one in threading.enumerate() if one.name.startswith("yunikorn-sink-slow")).join(LONG)
    assert buffers.poll(0.0, 60.0)
    assert "sending events (the sink is switched off): OSError: no space left" in rm.failures()[0]
    rm.scheduler.close()


def test_core_does_not_wait_forever_for_a_sink_that_opens_slowly(sink: type[Slow]) -> None:
    gate = threading.Event()

    def slowly(self: Slow, context: Context) -> None:
        assert gate.wait(LONG)
        self.received.append("opened")

    sink.opened = slowly  # type: ignore[method-assign]
    rm = make(sink, BufferedSinks(opening=0.01, patience=LONG))
    assert (
        "opening: it has not returned within 0.01 seconds; events are buffered meanwhile" in rm.failures()[0]
    )
    rm.node("n1", vcore=1)
    gate.set()
    rm.scheduler.close()
    assert sink.received == ["opened", "n1", "closed"]


@pytest.mark.parametrize("error", [KeyboardInterrupt("no"), SystemExit(0), GeneratorExit()])
def test_exception_of_any_kind_in_the_sinks_thread_is_contained(
    sink: type[Slow], error: BaseException
) -> None:
    def refuse(self: Slow, context: Context) -> None:
        raise error

    sink.opened = refuse  # type: ignore[method-assign]
    rm = make(sink, BufferedSinks())
    assert type(error).__name__ in rm.failures()[0]
    rm.scheduler.close()


class Database(EventSink):
    """Counts events in a database that only the thread which has opened it may use."""

    name = "database"
    counts: list[int]

    def opened(self, context: Context) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("create table events (type text)")

    def send(self, batch: Sequence[Event]) -> None:
        self._database.executemany("insert into events values (?)", [(str(event.type),) for event in batch])

    def closed(self) -> None:
        self.counts.append(self._database.execute("select count(*) from events").fetchone()[0])
        self._database.close()


@pytest.mark.parametrize("buffered", [True, False])
def test_connection_of_opened_is_usable_in_send_in_process_and_in_a_service(buffered: bool) -> None:
    made: type[Database] = type("DatabaseHere", (Database,), {"counts": []})
    buffers = BufferedSinks() if buffered else None
    scheduler = Scheduler(with_plugins(event_sinks=[made]), ManualClock(), buffer_sinks=buffers)
    rm = RM(document(partition(queue("a")), events={"sinks": ["database"]}), scheduler=scheduler)
    rm.node("n1", vcore=1)
    rm.reload(document(partition(queue("a"), queue("b")), events={"sinks": ["database"]}))
    rm.scheduler.close()
    assert rm.failures() == []
    assert made.counts[0] > 2


def test_events_are_made_in_the_thread_of_the_sink(sink: type[Slow]) -> None:
    """A batch that waits in the buffer has not made its events."""
    buffers = BufferedSinks()
    rm = make(sink, buffers)
    sink.transport.clear()
    rm.node("n1", vcore=1)
    assert sink.busy.wait(LONG)
    rm.node("n2", vcore=1)
    (waiting,) = buffers._sinks
    assert [batch._events for batch, _, _ in waiting._events] == [None]  # type: ignore[attr-defined]
    sink.transport.set()
    rm.scheduler.close()
