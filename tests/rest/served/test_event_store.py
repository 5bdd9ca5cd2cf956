"""The store of the latest events: ids, capacity, readers, and what it receives from a scheduler."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import RM, document, partition, queue, with_plugins
from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Ask, Event, EventSink, Node, Predicate
from yunikorn.clock import ManualClock
from yunikorn.framework.event_wants import EVERYTHING
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.event_store import COMPACT_FROM, EventStore, Extract


def batch(*ids: int) -> EventBatch:
    """Return a batch with an event for each id."""
    return EventBatch([Event("NODE", str(number)) for number in ids])


def store_of(sizes: Sequence[int], capacity: int) -> EventStore:
    """Return a store that received batches of these sizes; each event is named like its id."""
    store, number = EventStore("instance", capacity), 0
    for size in sizes:
        store.append(batch(*range(number, number + size)))
        number += size
    return store


def ids_of(extract: Extract) -> list[int] | None:
    return None if extract.events is None else [int(event.object_id) for event in extract.events]


@given(
    st.lists(st.integers(0, 7), max_size=40),
    st.integers(1, 30),
    st.integers(0, 120),
    st.integers(1, 60),
)
def test_store_is_the_end_of_a_list(sizes: list[int], capacity: int, start: int, count: int) -> None:
    store, every = store_of(sizes, capacity), list(range(sum(sizes)))
    held = every[-capacity:]
    found = store.read(start, count)
    assert (found.lowest, found.highest) == ((held[0], held[-1]) if held else (0, 0))
    assert ids_of(found) == (every[start : start + count] if start in held else None)
    windows = store.windows(start, count)
    assert [event.object_id for window in windows for event in window.events] == [
        str(number) for number in ids_of(found) or ()
    ]
    assert [window.first + window.begin for window in windows[:1]] == ([start] if start in held else [])


def test_request_in_the_older_half_of_a_wrapped_ring_has_no_more_than_it_asked_for() -> None:
    # In YuniKorn 1.9 an unsigned subtraction underflows here, and the answer has five more events.
    store = store_of([5] * 5, 20)
    assert ids_of(store.read(5, 3)) == [5, 6, 7]
    assert ids_of(store.read(10, 3)) == [10, 11, 12]
    assert ids_of(store.read(4, 3)) is None


def test_events_beyond_the_capacity_are_released() -> None:
    store = store_of([1] * (5 * COMPACT_FROM), 10)
    assert len(store._batches) < 3 * COMPACT_FROM
    assert sum(one is not None for one in store._batches) == 10
    assert ids_of(store.read(5 * COMPACT_FROM - 1, 5)) == [5 * COMPACT_FROM - 1]


def test_batch_larger_than_the_capacity_keeps_its_end() -> None:
    store = store_of([3, 25], 10)
    assert store.bounds == (18, 28)
    assert ids_of(store.read(18, 100)) == list(range(18, 28))
    with pytest.raises(ValueError, match="at least 1 event"):
        EventStore("instance", 0)


def test_wakers_are_called_after_each_batch_until_they_are_removed() -> None:
    store, woken = EventStore("instance"), []
    wake = lambda: woken.append(store.bounds)  # noqa: E731
    store.add_waker(wake)
    store.append(batch(0, 1))
    store.append(batch())
    store.remove_waker(wake)
    store.append(batch(2))
    assert woken == [(0, 2)]


def test_readers_in_other_threads_see_each_event_once_and_in_order() -> None:
    store, news, number = EventStore("instance", 1_000_000), threading.Event(), 3_000
    store.add_waker(news.set)
    seen: list[list[int]] = [[], [], []]

    def read(found: list[int]) -> None:
        while len(found) < number:
            events = store.read(len(found), 50).events
            if not events:
                news.wait(0.01)
            found.extend(int(event.object_id) for event in events or ())

    threads = [threading.Thread(target=read, args=(found,)) for found in seen]
    for thread in threads:
        thread.start()
    for first in range(0, number, 3):
        store.append(batch(first, first + 1, first + 2))
    for thread in threads:
        thread.join()
    assert seen == [list(range(number))] * 3


# -- from a scheduler ----------------------------------------------------------------------------------


class Everything(EventSink):
    """Keeps all events."""

    name = "everything"
    received: list[Event]

    def send(self, batch: Sequence[Event]) -> None:
        self.received.extend(batch)


class Broken(Predicate):
    """Raises."""

    name = "broken"

    def check(self, ask: Ask, node: Node) -> str | None:
        raise RuntimeError("broken")


def at_work(scheduler: Scheduler, **keys: object) -> RM:
    rm = RM(document(partition(queue("a"), predicates=["broken"]), **keys), scheduler=scheduler)
    rm.node("n1", vcore=4)
    rm.app("app")
    rm.ask("app", vcore=1)
    rm.schedule()
    return rm


def test_store_receives_what_a_sink_receives() -> None:
    sink: type[Everything] = type("Sink", (Everything,), {"received": [], "__doc__": "Keeps."})
    store = EventStore("instance")
    registry = with_plugins(event_sinks=[sink], predicates=[Broken])
    scheduler = Scheduler(registry, ManualClock(7), event_receiver=store)
    at_work(scheduler, events={"sinks": ["everything"]})
    scheduler.close()
    assert store.read(0, 1000).events == sink.received
    assert {event.type for event in sink.received} >= {"APP", "NODE", "QUEUE", "PLUGIN"}


def test_store_makes_no_events_until_they_are_read_and_none_are_made_without_it() -> None:
    store = EventStore("instance")
    rm = at_work(Scheduler(with_plugins(predicates=[Broken]), ManualClock(), event_receiver=store))
    assert store.bounds[1] > 5
    assert all(one is not None and one._events is None for one in store._batches)
    assert rm.at_work().partition.changes.events._wanted == EVERYTHING
    rm = at_work(Scheduler(with_plugins(predicates=[Broken]), ManualClock()))
    assert not rm.at_work().partition.changes.events.enabled


def test_failure_of_a_plugin_is_stored_once_for_all_resource_managers() -> None:
    store = EventStore("instance")
    scheduler = Scheduler(with_plugins(predicates=[Broken]), ManualClock(), event_receiver=store)
    other = RM(document(partition(queue("a"))), scheduler=scheduler, rm_id="other")
    at_work(scheduler)
    other.app("app")
    other.schedule()
    found = [event for event in store.read(0, 1000).events or () if event.type == "PLUGIN"]
    assert len(found) == 1
