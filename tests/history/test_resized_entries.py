"""Resizes of allocations: entries without events, for receivers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.core.kit import RM, document, partition, queue, with_plugins
from yunikorn.accounting.event_batch import RESIZED, EventBatch
from yunikorn.api import Event, EventSink
from yunikorn.clock import ManualClock
from yunikorn.framework.event_wants import EVERYTHING, read_wants
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource


class Received:
    """A receiver that keeps all batches."""

    failures_seen = 0
    wanted = EVERYTHING

    def __init__(self) -> None:
        self.batches: list[EventBatch] = []

    def append(self, batch: EventBatch) -> None:
        self.batches.append(batch)

    def configure(self, rm_id: str, settings: Mapping[str, str] | None) -> bool:
        return True


def test_a_resize_is_an_entry_without_an_event_and_no_sink_is_called_for_it() -> None:
    calls: list[int] = []

    class Ends(EventSink):
        name = "ends"
        wants = ("APP", "NODE")

        def send(self, events: Sequence[Event]) -> None:
            calls.append(len(events))

    received = Received()
    received.wanted = read_wants(["APP", "NODE"])
    scheduler = Scheduler(with_plugins(event_sinks=[Ends]), ManualClock(5), event_receiver=received)
    config = document(partition(queue("a")), events={"sinks": ["ends"]})
    rm = RM(config, scheduler=scheduler)
    rm.node("n", memory=10)
    rm.app("app", "root.a")
    rm.ask("app", "ask", memory=2)
    rm.schedule()
    [one] = rm.running.values()
    assert calls
    received.batches.clear()
    calls.clear()
    rm.update(allocations=[Allocation("ask", "app", one.uuid, one.node_id, Resource(memory=3))])
    [batch] = received.batches
    kind, time, allocation, before, after = batch.entries[0]  # type: ignore[misc]
    assert (kind, time, allocation.uuid) == (RESIZED, 5, one.uuid)
    assert (before, after) == (Resource(memory=2), Resource(memory=3))
    assert len(batch) == 0
    assert [*batch] == []
    assert calls == []


def test_resizes_do_not_count_among_events() -> None:
    received = Received()
    rm = RM(
        document(partition(queue("a"))),
        scheduler=Scheduler(Registry.load(third_party=False), ManualClock(), event_receiver=received),
    )
    rm.node("n", memory=10)
    rm.app("app", "root.a")
    rm.ask("app", "ask", memory=2)
    rm.schedule()
    [one] = rm.running.values()
    received.batches.clear()
    rm.update(allocations=[Allocation("ask", "app", one.uuid, one.node_id, Resource(memory=3))])
    rm.update(allocations=[Allocation("ask", "app", one.uuid, one.node_id, Resource(memory=1))])
    assert all(len(batch) == len([*batch]) for batch in received.batches)
    resizes = [entry for batch in received.batches for entry in batch.entries if entry[0] is RESIZED]  # type: ignore[index]
    assert len(resizes) == 2
