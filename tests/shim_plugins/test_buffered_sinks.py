"""Event sinks in threads of their own: ordered, bounded, counted; failures are reported."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest

from tests.core.kit import RM, document, partition, queue, with_plugins
from yunikorn.api import Context, Event, EventSink
from yunikorn.clock import ManualClock
from yunikorn.interface.buffered_sinks import BufferedSinks
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler

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
    assert sink.threads == {"MainThread", "yunikorn-sink-slow of test-plugin (yunikorn-test 1.0)"}
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


def test_exception_in_close_is_reported(sink: type[Slow]) -> None:
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
        "plugin slow of test-plugin (yunikorn-test 1.0): closing: OSError: no space left"
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
