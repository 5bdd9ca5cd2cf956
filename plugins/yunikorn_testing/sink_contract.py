"""Contract test of event sinks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import attrs

from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Event, EventSink
from yunikorn.event_types import DETAILS_OF_TYPE
from yunikorn.framework.event_wants import read_wants
from yunikorn.framework.kinds import EVENT_SINK
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.interface.sinks import SWITCHED_OFF
from yunikorn.resources import Resource
from yunikorn_service.buffered_sinks import BufferedSinks
from yunikorn_testing.answers_contract import DIFFERENT, KEPT_SLACK, SLACK
from yunikorn_testing.costs import count_operations, count_retained
from yunikorn_testing.plugin_contract import PluginContract, Yaml

LONGEST_WRITE = 30
"""Seconds within which a thread of a sink must have written what waits; far more than any needs."""
LOOKS = 60
"""Number of events between two counts of what a sink keeps."""
SENT_BEFORE = 300
"""Number of earlier events after which the cost of an event must not have grown."""


class EventSinkContract(PluginContract):
    """Tests that an event sink must pass; set `sink = Mine(...)`.

    The tests use the sink, so set options with which the sink writes to a place for tests.
    """

    kind = EVENT_SINK
    subject = "sink"
    sink: ClassVar[EventSink]

    def name_in(self, document: Yaml) -> None:
        """Add the sink as the only one."""
        document["events"] = {"sinks": [self.named("name")]}

    def batches(self) -> Sequence[Sequence[Event]]:
        """Return batches of events of all types and details, with all and with no fields, and none."""
        kinds = ("REQUEST", "APP", "NODE", "QUEUE", "USERGROUP", "PLUGIN")
        plain = [Event(kind, f"{kind.lower()}-1") for kind in kinds]
        full = Event(
            "APP", "app-1", "ask-1", 'text, "quotes"\nand ä', "ADD", "APP_ALLOC", Resource(vcore=1), 2**62
        )
        detailed = [
            Event(str(kind), f"{kind.lower()}-1", detail=detail)
            for kind, details in DETAILS_OF_TYPE.items()
            for detail in sorted(details)
        ]
        return [plain, [full], [], [full] * 100, detailed]

    def wanted_batches(self, sink: EventSink) -> Sequence[Sequence[Event]]:
        """Return the batches as an open sink receives them: only with the events that it wants."""
        wanted = read_wants(sink.wants)
        return [EventBatch(batch).selected(wanted) for batch in self.batches()]

    @contextmanager
    def _opened(self) -> Iterator[EventSink]:
        """Open a new sink, and close it at the end."""
        sink = self.fresh()
        try:
            yield sink
        finally:
            sink.closed()

    def _one_wanted(self, sink: EventSink) -> list[Event]:
        """Return a batch of one event that the sink wants."""
        return next(([*batch][:1] for batch in self.wanted_batches(sink) if batch), [])

    def test_wants_name_existing_events(self) -> None:
        """Check that `wants` is None or a collection of existing types, details and reasons."""
        with self._opened() as sink:
            read_wants(sink.wants)
            sink.reloaded(self.context())
            read_wants(sink.wants)

    def test_every_event_is_accepted(self) -> None:
        """Check that the sink accepts events of every type and batches of any size, including empty ones."""
        with self._opened() as sink:
            for batch in self.wanted_batches(sink):
                sink.send(batch)

    def test_batches_of_events_are_not_changed(self) -> None:
        """Check that the sink does not modify the batch, which is shared with other sinks."""
        with self._opened() as sink:
            for batch in self.wanted_batches(sink):
                given = [attrs.evolve(event) for event in batch]
                sink.send(given)
                assert given == list(batch), (
                    "send() modified the batch or an event, which other sinks share; copy the batch"
                )

    def test_events_are_accepted_after_a_reload(self) -> None:
        """Check that the sink accepts events after `reloaded`."""
        with self._opened() as sink:
            for batch in self.wanted_batches(sink):
                sink.send(batch)
                sink.reloaded(self.context())

    def test_cost_of_an_event_is_independent_of_earlier_events(self) -> None:
        """Check that the cost of an event does not grow with the number of earlier events."""
        with self._opened() as sink:
            batch = self._one_wanted(sink)
            before = count_operations(lambda: sink.send(batch))
            for _ in range(SENT_BEFORE):
                sink.send(batch)
            after = count_operations(lambda: sink.send(batch))
        assert after <= 2 * before + SLACK, (
            f"send() costs {before} executed lines at first, and {after} after {SENT_BEFORE} events: "
            "the cost must not grow; do not iterate over earlier events"
        )

    def test_memory_is_independent_of_earlier_events(self) -> None:
        """Check that the sink does not keep every event; it may keep some until it writes them."""
        threads = set(threading.enumerate())
        kept = []
        with self._opened() as sink:
            batch = self._one_wanted(sink)
            for number in range(2 * DIFFERENT):
                sink.send([attrs.evolve(event, object_id=f"{event.object_id}-{number}") for event in batch])
                if number % LOOKS == LOOKS - 1:
                    kept.append(count_retained(sink))
            most, least = max(kept[: len(kept) // 2]), min(kept[len(kept) // 2 :])
            if set(threading.enumerate()) - threads:
                least = _wait_until_written(sink, least, most + KEPT_SLACK)
        assert least <= most + KEPT_SLACK, (
            f"the sink keeps at most {most} objects of {DIFFERENT} events, and always {least} or more of the "
            "next ones: the scheduler runs for months, so bound what is kept"
        )

    def test_sink_works_in_a_thread_of_its_own(self) -> None:
        """Check that all calls may come from one thread, which is not the one that made the object.

        In a service every sink has such a thread. Open connections in `opened`, not in the constructor.
        """
        # The sink gets all the time that it needs, also on a machine that is busy.
        failures, buffers = PluginFailures(), BufferedSinks(patience=60, opening=60)
        made = self.registry().make(self.kind, type(self.given).name, self.option_texts())
        sink = buffers(made, "the sink")
        context = failures.context_of("the sink", self.context())
        try:
            sink.opened(context)
            for batch in self.wanted_batches(sink):
                sink.send(batch)
                sink.reloaded(context)
        finally:
            sink.closed()
            buffers.finish()
        # The sink may report failures that it has handled, such as a server that is away.
        found = [
            failure.message.removeprefix("plugin the sink: ")
            for failure in failures
            if failure.operation.endswith(f"({SWITCHED_OFF})")
        ]
        assert not found, "\n".join(["the sink failed in a thread of its own, as a service has it:", *found])

    def test_sink_without_events_closes(self) -> None:
        """Check that the sink can be closed without any event."""
        self.fresh().closed()


def _wait_until_written(sink: EventSink, kept: int, goal: int) -> int:
    """Return how many objects a sink keeps once a thread of its own has written events that waited.

    Such a thread may be behind on a busy machine; what a sink never writes is kept after the wait, too.
    """
    pause = threading.Event()
    for _ in range(LONGEST_WRITE * 100):
        if kept <= goal:
            break
        pause.wait(0.01)
        kept = count_retained(sink)
    return kept
