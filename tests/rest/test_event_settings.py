"""Settings of events that resource managers send, and limits on the command line."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.core.kit import RM, configuration
from tests.rest.kit import Rest
from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Event
from yunikorn.clock import ManualClock
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.decision_store import DecisionStore
from yunikorn_rest.event_store import EventSettings, EventStore, read_event_settings
from yunikorn_rest.rest_settings import EventLimits


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, EventSettings()),
        ({"log.level": "DEBUG", "eventful": "x"}, EventSettings()),
        ({"event.trackingEnabled": "false"}, EventSettings(tracking=False)),
        ({"event.trackingEnabled": "T"}, EventSettings(tracking=True)),
        ({"event.ringBufferCapacity": " 500 ", "event.requestCapacity": "7"}, EventSettings(capacity=500)),
        # Zero is the default of sizes, and forbids streams.
        ({"event.ringBufferCapacity": "0", "event.RESTResponseSize": "0"}, EventSettings()),
        ({"event.maxStreams": "0", "event.maxStreamsPerHost": "2"}, EventSettings(streams=0, per_host=2)),
    ],
)
def test_settings(extra: dict[str, str], expected: EventSettings) -> None:
    assert read_event_settings(extra) == (expected, [])


def test_all_problems_are_reported_at_once() -> None:
    settings, problems = read_event_settings(
        {
            "event.ringbufferCapacity": "1",
            "event.ringBufferCapacity": "-1",
            "event.maxStreams": "1" * 5000,
            "event.RESTResponseSize": "1000000",
            "event.trackingEnabled": "perhaps",
            "event.maxStreamsPerHost": "٣",
        }
    )
    assert settings == EventSettings()
    assert problems == [
        "event.RESTResponseSize: '1000000' is not a number from 0 to 100000; the default applies",
        f"event.maxStreams: '{'1' * 40}...' is not a number from 0 to 1000; the default applies",
        "event.maxStreamsPerHost: '٣' is not a number from 0 to 1000; the default applies",
        "event.ringBufferCapacity: '-1' is not a number from 0 to 1000000; the default applies",
        "event.ringbufferCapacity: unknown and ignored, did you mean 'event.ringBufferCapacity'?",
        "event.trackingEnabled: 'perhaps' is neither true nor false; events are kept",
    ]


class RestContext:
    """Resource managers with settings, and the routes over their events."""

    def __init__(self) -> None:
        self.store = EventStore("instance", 1000, DecisionStore())
        registry = Registry.load(third_party=False)
        self.scheduler = Scheduler(registry, ManualClock(), event_receiver=self.store)
        self.rm = RM(configuration(), scheduler=self.scheduler)
        self.rest = Rest(self.rm, self.store)

    def register(self, rm_id: str = "rm", **settings: Any) -> None:
        """Register, or register again, with these settings."""
        extra = {f"event.{name}": str(value) for name, value in settings.items()}
        request = RegisterResourceManagerRequest(rm_id, config=configuration(), extra_config=extra)
        self.scheduler.register_resource_manager(request, self.rm)

    def records(self) -> list[Any]:
        found: list[Any] = self.rest.json(f"events/batch?start={self.store.bounds[0]}")["EventRecords"]
        return found

    def submit(self, *ids: str) -> None:
        for one in ids:
            self.rm.app(one)
        self.scheduler.schedule(0)


def test_problems_are_logged_once_and_the_registration_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    site = RestContext()
    with caplog.at_level(logging.WARNING):
        site.register(maxStreams="many", trackingEnabled="")
    (record,) = caplog.records
    assert record.getMessage().startswith("resource manager rm: settings of events: event.maxStreams: 'many'")
    assert "event.trackingEnabled" in record.getMessage()


def test_tracking_is_switched_off_and_on_again() -> None:
    site = RestContext()
    site.register(trackingEnabled="false")
    site.submit("a")
    error = (500, "Event tracking is disabled")
    assert site.rest.error("events/batch") == error
    assert site.rest.error("events/stream") == error
    assert site.rest.error("partition/default/decisions") == error
    received = site.store.bounds[1]
    site.register()
    site.submit("b")
    assert site.store.bounds[1] > received
    assert "a" not in {one.get("objectID") for one in site.records()}


def test_settings_are_changed_while_a_resource_manager_is_registered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = RestContext()
    site.register()
    site.submit("a")
    site.scheduler.change_settings("rm", {"event.trackingEnabled": "false"})
    assert site.rest.error("events/batch") == (500, "Event tracking is disabled")
    assert site.scheduler.session("rm").extra_config == {"event.trackingEnabled": "false"}
    site.submit("b")
    site.scheduler.change_settings("rm", {"event.ringBufferCapacity": "1"})
    assert len(site.records()) == 1
    site.submit("c")
    assert "b" not in {one.get("objectID") for one in site.records()}
    with caplog.at_level(logging.WARNING):
        site.scheduler.change_settings("rm", {"event.maxStreams": "many"})
    (record,) = caplog.records
    assert "event.maxStreams: 'many'" in record.getMessage()
    with pytest.raises(UsageError, match="no resource manager 'other' is registered"):
        site.scheduler.change_settings("other", {})


def test_tracking_concerns_one_resource_manager() -> None:
    site = RestContext()
    site.register("quiet", trackingEnabled="false")
    site.submit("a")
    assert "a" in {one.get("objectID") for one in site.records()}


def test_capacity_changes_while_the_service_runs() -> None:
    site = RestContext()
    for number in range(0, 1500, 10):
        site.store.append(EventBatch([Event("NODE", str(number + at)) for at in range(10)]))
    assert site.store.bounds == (500, 1500)
    site.register(ringBufferCapacity=100)
    lowest, following = site.store.bounds
    assert following - lowest == 100
    site.register(ringBufferCapacity=2000)
    # What was forgotten stays forgotten, and new events have room.
    assert site.store.bounds[0] == lowest
    for _ in range(200):
        site.store.append(EventBatch([Event("NODE", "x")] * 10))
    lowest, following = site.store.bounds
    assert following - lowest == 2000
    assert len(site.rest.json(f"events/batch?start={lowest}")["EventRecords"]) == 2000
    site.register()
    lowest, following = site.store.bounds
    assert following - lowest == 1000


def test_largest_setting_of_several_resource_managers_applies() -> None:
    site = RestContext()
    site.register("one", maxStreams=5, RESTResponseSize=7)
    site.register("two", maxStreams=9)
    hub = site.rest.context.events
    assert hub is not None
    assert (hub.limits.streams, hub.limits.records) == (9, 7)
    site.scheduler.stop("two")
    site.scheduler.stop("one")
    assert (hub.limits.streams, hub.limits.records) == (100, 10_000)


def test_size_of_an_answer_and_number_of_streams() -> None:
    site = RestContext()
    site.register(RESTResponseSize=3, maxStreams=0)
    site.submit("a", "b")
    assert len(site.rest.json("events/batch?count=100")["EventRecords"]) == 3
    assert site.rest.error("events/stream") == (503, "Too many streaming connections")


def test_limits_on_the_command_line() -> None:
    assert EventLimits.parse(()) == EventLimits()
    found = EventLimits.parse(("stored=5", "streams-per-host=7", "decisions=8", "answer=9", "streams=1"))
    assert found == EventLimits(5, 8, 1, 7, 9)


def test_all_bad_limits_are_reported_at_once() -> None:
    with pytest.raises(UsageError) as error:
        EventLimits.parse(("stord=5", "streams=0", "answer", "stored=" + "9" * 30))
    assert str(error.value).splitlines() == [
        "--event-limit stord=5: no limit is called 'stord', did you mean 'stored'?; known: stored, decisions,"
        " streams, streams-per-host, answer",
        "--event-limit streams=0: give NAME=NUMBER from 1 to 10000000, such as stored=500000",
        "--event-limit answer: give NAME=NUMBER from 1 to 10000000, such as stored=500000",
        f"--event-limit stored={'9' * 30}: give NAME=NUMBER from 1 to 10000000, such as stored=500000",
    ]
