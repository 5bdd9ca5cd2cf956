"""Events: bodies that an API server accepts, series of equal events, limits, and drops that are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.kubernetes.api_server.memory_server import Json, MemoryServer, failure, lost, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from yunikorn.clock import SECOND, ManualClock
from yunikorn_kubernetes.api_server.api_resources import NODES, PODS
from yunikorn_kubernetes.api_server.back_off import seeded
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.pod_events import PodEvents, cut_note, reference
from yunikorn_kubernetes.api_server.rate_limit import RateLimit
from yunikorn_kubernetes.api_server.transport import ServerAnswer
from yunikorn_kubernetes.objects import Node, ObjectMeta, ObjectReference, Pod

API = "/apis/events.k8s.io/v1"
WEB = ObjectReference("v1", "Pod", "shop", "web", "u1")


class Reported:
    """Server in memory, and events that are sent to it."""

    def __init__(self, busy: Callable[[], bool], capacity: int, limit: RateLimit | None) -> None:
        self.memory = MemoryServer()
        self.events = PodEvents(
            ApiServer(self.memory),
            instance="yunikorn-0",
            clock=ManualClock(1_700_000_000 * SECOND),
            random=seeded(1),
            busy=busy,
            capacity=capacity,
            rate_limit=limit,
        )

    def stored(self) -> list[Json]:
        """Return the events of the server."""
        return list(self.memory.objects.get((API, "events"), {}).values())

    def report(self, note: str, regarding: ObjectReference = WEB) -> None:
        """Report an event."""
        self.events.report(regarding, "Scheduling", "Scheduling", note)


@asynccontextmanager
async def reporting(
    *,
    busy: Callable[[], bool] = lambda: False,
    capacity: int = 1000,
    limit: RateLimit | None = None,
) -> AsyncIterator[Reported]:
    """Send events until the context ends."""
    made = Reported(busy, capacity, limit)
    task = asyncio.create_task(made.events.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_an_event_has_what_the_server_requires() -> None:
    async def scenario() -> None:
        async with reporting() as each:
            pod = Pod(metadata=ObjectMeta(name="web", namespace="shop", uid="u1", resource_version="7"))
            about = reference(PODS, pod)
            each.events.report(about, "Scheduled", "Binding", "on n1", warning=True)
            each.events.report(
                reference(NODES, Node(metadata=ObjectMeta(name="n1"))), "Accepted", "Add", "added"
            )
            await asyncio.sleep(1.0)
            first, second = each.stored()
            meta = first.pop("metadata")
            assert meta["namespace"] == "shop"
            assert meta["name"].startswith("web.")
            assert first == {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "eventTime": "2023-11-14T22:13:20.000000Z",
                "reportingController": "yunikorn",
                "reportingInstance": "yunikorn-0",
                "type": "Warning",
                "reason": "Scheduled",
                "action": "Binding",
                "note": "on n1",
                "regarding": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "namespace": "shop",
                    "name": "web",
                    "uid": "u1",
                    "resourceVersion": "7",
                },
            }
            assert second["metadata"]["namespace"] == "default"

    run_virtual(scenario())


def test_events_of_config_maps_wait_for_no_others() -> None:
    async def scenario() -> None:
        busy = True
        async with reporting(busy=lambda: busy, capacity=10) as each:
            for number in range(11):
                each.report(f"pod {number}")
            config = ObjectReference("v1", "ConfigMap", "yunikorn", "yunikorn-configs", "u2")
            each.report("refused (1 of 2)", config)
            each.report("refused (2 of 2)", config)
            busy = False
            await asyncio.sleep(1.0)
            notes = [one["note"] for one in each.stored()]
            assert notes[:2] == ["refused (1 of 2)", "refused (2 of 2)"]
            assert len(notes) == 12
            assert each.events.dropped == 1

    run_virtual(scenario())


def test_long_notes_are_cut_between_characters() -> None:
    assert cut_note("short") == "short"
    cut = cut_note("é" * 600)
    assert len(cut.encode()) <= 1024
    assert cut == "é" * 510 + "..."


def test_equal_events_are_one_series_that_is_written_now_and_again() -> None:
    async def scenario() -> None:
        async with reporting() as each:
            for _ in range(600):
                each.report("queued")
                await asyncio.sleep(1.0)
            await asyncio.sleep(120.0)
            (event,) = each.stored()
            assert event["series"]["count"] == 600
            assert 8 <= len(each.memory.calls) <= 12
            await asyncio.sleep(400.0)
            each.report("queued")
            await asyncio.sleep(1.0)
            assert len(each.stored()) == 2

    run_virtual(scenario())


def test_a_series_whose_event_has_expired_is_created_again() -> None:
    async def scenario() -> None:
        async with reporting() as each:
            each.report("queued")
            await asyncio.sleep(1.0)
            each.memory.objects.clear()
            each.report("queued")
            await asyncio.sleep(61.0)
            (event,) = each.stored()
            assert event["series"]["count"] == 2

    run_virtual(scenario())


def test_events_beyond_the_capacity_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with reporting(capacity=100) as each:
            for number in range(1000):
                each.report(f"note {number}")
            await asyncio.sleep(60.0)
            assert len(each.stored()) == 100
            assert each.events.dropped == 900

    run_virtual(scenario())
    assert caplog.text.count("events are dropped") == 1


def test_events_have_a_rate_and_wait_for_what_is_more_important() -> None:
    async def scenario() -> None:
        busy = True
        async with reporting(busy=lambda: busy, limit=RateLimit(10.0, 10.0)) as each:
            for number in range(100):
                each.report(f"note {number}")
            await asyncio.sleep(60.0)
            assert each.stored() == []
            busy = False
            await asyncio.sleep(5.05)
            assert 50 <= len(each.stored()) <= 70
            await asyncio.sleep(60.0)
            assert len(each.stored()) == 100

    run_virtual(scenario())


def test_events_wait_for_a_server_that_does_not_answer() -> None:
    async def scenario() -> None:
        async with reporting() as each:
            each.memory.before = lambda method, path: refused()
            each.report("one")
            each.report("two")
            await asyncio.sleep(3600.0)
            each.memory.before = lambda method, path: None
            answers = [lost()]
            each.memory.after = lambda method, path: answers.pop() if answers else None
            await asyncio.sleep(120.0)
            assert len(each.stored()) == 2
            assert each.events.dropped == 0

    run_virtual(scenario())


def test_events_that_the_server_refuses_are_dropped() -> None:
    async def scenario() -> None:
        async with reporting() as each:
            each.memory.before = lambda method, path: failure(422, "Invalid", "note has too many bytes")
            each.report("one")
            await asyncio.sleep(1.0)
            each.memory.before = lambda method, path: None
            each.report("two")
            await asyncio.sleep(1.0)
            assert [event["note"] for event in each.stored()] == ["two"]
            assert each.events.dropped == 1

    run_virtual(scenario())


def forbidden_in_shop(_: str, path: str) -> ServerAnswer | None:
    """Forbid all calls in one namespace."""
    return failure(403, "Forbidden", "no rights are known") if "/shop/" in path else None


@pytest.mark.parametrize(("seconds", "lost_events"), [(20.0, 0), (40.0, 3)])
def test_forbidden_events_are_tried_again_for_half_a_minute_while_others_are_sent(
    seconds: float, lost_events: int
) -> None:
    async def scenario() -> None:
        async with reporting() as each:
            each.memory.before = forbidden_in_shop
            for number in range(3):
                each.report(f"note {number}")
            each.report("elsewhere", ObjectReference("v1", "Pod", "depot", "web", "u2"))
            each.report("note 1")
            await asyncio.sleep(1.0)
            assert [event["note"] for event in each.stored()] == ["elsewhere"]
            await asyncio.sleep(seconds)
            each.memory.before = lambda method, path: None
            await asyncio.sleep(20.0)
            assert len(each.stored()) == 4 - lost_events
            assert each.events.dropped == lost_events
            if not lost_events:
                (series,) = [event["series"]["count"] for event in each.stored() if "series" in event]
                assert series == 2

    run_virtual(scenario())


def test_the_end_of_a_process_waits_for_forbidden_events() -> None:
    async def scenario() -> None:
        async with reporting() as each:
            each.memory.before = forbidden_in_shop
            each.report("one")
            await each.events.drain(2.0)
            assert each.stored() == []
            each.memory.before = lambda method, path: None
            await each.events.drain(5.0)
            assert len(each.stored()) == 1

    run_virtual(scenario())


def test_forbidden_events_that_wait_count_in_the_capacity() -> None:
    async def scenario() -> None:
        async with reporting(capacity=10) as each:
            each.memory.before = forbidden_in_shop
            for number in range(30):
                each.report(f"note {number}")
                await asyncio.sleep(0.1)
            each.memory.before = lambda method, path: None
            await asyncio.sleep(60.0)
            assert len(each.stored()) == 10
            assert each.events.dropped == 20

    run_virtual(scenario())
