"""The cost of an operation of one resource manager does not depend on the number of others."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.core.kit import configuration
from tests.service.kit import CollectingCallback, work
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AllocationAsk,
    RegisterResourceManagerRequest,
    UpdateRequest,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource

FEW, MANY = 4, 64
CONFIG = configuration({"name": "a"})


class Crowd:
    """A scheduler with a manual clock, and resource managers that are idle."""

    def __init__(self, registry: Registry, number: int) -> None:
        self.clock = ManualClock()
        self.scheduler = Scheduler(registry, self.clock)
        self.callback: dict[str, CollectingCallback] = {}
        for one in range(number):
            self.join(f"idle-{one}")
        self.join("busy")
        self.settle()

    def join(self, rm_id: str) -> None:
        """Register a resource manager with a full node, and one more ask than fits."""
        self.register(rm_id)
        self.scheduler.update(work(2, rm_id))
        self.scheduler.update(UpdateRequest(rm_id, asks=[ask("waits")]))

    def register(self, rm_id: str) -> None:
        """Register a resource manager without nodes."""
        self.callback[rm_id] = CollectingCallback()
        self.scheduler.register_resource_manager(
            RegisterResourceManagerRequest(rm_id, config=CONFIG), self.callback[rm_id]
        )

    def settle(self) -> None:
        """Schedule until the scheduler is idle, and let all back-offs pass."""
        for _ in range(20):
            self.scheduler.schedule()
            self.clock.advance(60)
            self.scheduler.fire_timers()

    def step(self) -> int:
        """Perform one step as a service does."""
        self.scheduler.fire_timers()
        decided = self.scheduler.schedule(256)
        self.scheduler.next_timer()
        return decided


def ask(key: str) -> AllocationAsk:
    """Return one more ask of the application that every resource manager has."""
    return AllocationAsk(key, "app", resource_ask=Resource(vcore=1))


def lines_of(operation: Callable[[], object]) -> int:
    """Return the lines of Python code that an operation executes."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        operation()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def update(crowd: Crowd) -> None:
    crowd.scheduler.update(UpdateRequest("busy", asks=[ask("one-more")]))
    crowd.step()


def decide(crowd: Crowd) -> None:
    crowd.scheduler.update(
        UpdateRequest("busy", new_schedulable_nodes=work(1, app="another").new_schedulable_nodes)
    )
    assert crowd.step() == 1


def pass_time(crowd: Crowd) -> None:
    # Completed applications expire days later: those of the busy RM only.
    crowd.scheduler.stop("busy")
    crowd.register("busy")
    crowd.scheduler.update(work(1, "busy"))
    crowd.step()
    crowd.clock.advance(600)
    assert crowd.scheduler.fire_timers()
    crowd.step()


def idle(crowd: Crowd) -> None:
    crowd.step()


def register(crowd: Crowd) -> None:
    crowd.register("another")
    crowd.step()


def lose(crowd: Crowd) -> None:
    crowd.scheduler.pause("busy")
    crowd.step()
    crowd.clock.advance(100_000)
    crowd.step()


@pytest.mark.parametrize("operation", [update, decide, pass_time, idle, register, lose])
def test_cost_per_rm_is_independent_of_registered_rms(
    registry: Registry, operation: Callable[[Crowd], None]
) -> None:
    def lines(number: int) -> int:
        crowd = Crowd(registry, number)
        return lines_of(lambda: operation(crowd))

    lines(0)  # so that first-time work is done before counting
    few, many = lines(FEW), lines(MANY)
    assert many - few < MANY - FEW, "less than a line of Python for each of the others"
