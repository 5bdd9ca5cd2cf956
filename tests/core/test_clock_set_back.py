"""A clock that is set back: time goes on in the core, no use is negative, and none counts twice."""

from __future__ import annotations

import pytest

from tests.core.kit import with_plugins
from tests.core.test_past_service import LeastRecent, decaying
from yunikorn.clock import SECOND, Clock, ManualClock, SteadyClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_service.runtime.threaded import ThreadedScheduler


class SetClock:
    """A clock that a person sets; in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def now(self) -> int:
        return round(self.seconds * SECOND)


class Listener:
    """Callback that keeps uuids."""

    def __init__(self) -> None:
        self.uuids: list[str] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        self.uuids += [one.uuid for one in response.new_allocations]


def started(clock: Clock) -> tuple[Scheduler, Listener]:
    """Return a scheduler with this clock and one running task of one core."""
    scheduler, listener = Scheduler(with_plugins(app_sort_policies=[LeastRecent]), clock), Listener()
    scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=decaying()), listener)
    scheduler.update(
        UpdateRequest(
            "rm",
            asks=[AllocationAsk("task", "app", "", Resource(vcore=1))],
            new_applications=[AddApplicationRequest("app", "root.a", "", UserGroupInformation("ann"))],
            new_schedulable_nodes=[NewNodeInfo("n1", {}, Resource(vcore=1))],
        )
    )
    scheduler.schedule()
    return scheduler, listener


def use(scheduler: Scheduler) -> tuple[float, float]:
    """Return the service and the recent use of the application, in core seconds."""
    at = scheduler.partition("rm", "default")
    assert at is not None
    partition = at.partition
    past = (partition.applications.get("app") or partition.ended["app"]).past
    return past.served.get("vcore", 0.0), past.recent.get("vcore", 0.0)


def test_use_is_neither_negative_nor_counted_twice() -> None:
    clock = SetClock(100)
    scheduler, listener = started(clock)
    clock.seconds = 110
    assert use(scheduler) == pytest.approx((10, 10), rel=1e-6)
    for seconds in 50, 70, 110:
        clock.seconds = seconds
        served, recent = use(scheduler)
        assert served == pytest.approx(10, abs=0.1)
        assert recent == pytest.approx(10, abs=0.1)
    clock.seconds = 40
    [uuid] = listener.uuids
    ended = AllocationReleasesRequest([AllocationRelease("app", uuid)], [])
    scheduler.update(UpdateRequest("rm", releases=ended))
    assert use(scheduler) == pytest.approx((10, 10), abs=0.1)


def test_time_goes_on_at_half_speed_until_the_clock_has_caught_up() -> None:
    source, watch = SetClock(1000), ManualClock()
    clock = SteadyClock(source, watch.now)
    assert clock.now() == 1000 * SECOND
    assert clock.now() == 1000 * SECOND, "a clock may stand still"
    found = []
    for second in range(1, 31):
        watch.advance(1)
        source.seconds = 990 + second
        found.append(clock.now() / SECOND)
    assert found[:3] == [1000.5, 1001, 1001.5]
    assert found[18:21] == [1009, 1010, 1011]
    assert found[-1] == 1020


def test_timers_of_a_service_go_on() -> None:
    source = SetClock(1000)
    registry = Registry.load(third_party=False)
    with ThreadedScheduler(lambda clock: Scheduler(registry, clock), source) as core:
        before = core.call(lambda scheduler: scheduler.clock.now())
        source.seconds = 10
        assert core.call(lambda scheduler: scheduler.clock.now()) >= before
