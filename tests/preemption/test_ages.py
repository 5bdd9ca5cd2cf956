"""The age of a victim is that of its request, also after a recovery."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation
from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.resources import Resource

CREATED = {"first": "200", "second": "300", "third": "100"}
"""Creation times (s) of requests, in the order of their placement."""


def running(*, recovered: bool, tagged: bool = True, policy: str = "standard") -> RM:
    """Return an RM whose only node is full."""
    of_a = queue("a", resources={"guaranteed": {"memory": 3}})
    registry = with_plugins(preemption_policies=[Placed])
    rm = RM(configuration(of_a, queue("b"), preemption={"policy": policy}), registry)
    rm.pass_time(1000)
    rm.app("work", "root.b")
    tags = {key: {"creationTime": time} if tagged else {} for key, time in CREATED.items()}
    if recovered:
        existing = [
            Allocation(key, "work", f"{key}#9", "n1", Resource(memory=1), allocation_tags=tags[key])
            for key in reversed(CREATED)
        ]
        rm.running.update({one.uuid: one for one in existing})
        rm.node("n1", existing=existing, memory=3)
    else:
        rm.node("n1", memory=3)
        for key in CREATED:
            rm.ask("work", key, tags=tags[key], memory=1)
            rm.schedule()
            rm.pass_time(1)
    rm.app("late", "root.a")
    return rm


def victims(rm: RM, **ask: Any) -> list[str]:
    """Return the order in which three requests preempt."""
    found = []
    for number in range(3):
        rm.ask("late", f"r{number}", memory=1, **ask)
        rm.pass_time(31)
        rm.schedule()
        found += [uuid.partition("#")[0] for uuid in rm.evicted]
        rm.confirm()
        rm.schedule()
    return found


@pytest.mark.parametrize("tags", [{}, {REQUIRED_NODE_TAG: "n1"}], ids=["guarantee", "required node"])
@pytest.mark.parametrize("recovered", [False, True])
def test_youngest_request_is_the_first_victim(recovered: bool, tags: dict[str, str]) -> None:
    assert victims(running(recovered=recovered), tags=tags) == ["second", "first", "third"]


def test_placement_counts_where_no_creation_is_reported() -> None:
    assert victims(running(recovered=False, tagged=False)) == ["third", "second", "first"]


class Placed(api.PreemptionPolicy):
    """Preempts what was placed first, and checks that both ages are known."""

    name = "placed"

    def rank(self, victim: api.Allocation, cause: api.PreemptionCause) -> int:
        assert victim.created == int(CREATED[victim.key]) * SECOND < victim.placed
        return victim.placed


def test_policy_may_use_either_age() -> None:
    assert victims(running(recovered=False, policy="placed")) == ["first", "second", "third"]


APPS = {"one": "work", "two": "work", "three": "other", "four": "work", "five": "other"}
"""Applications of tasks whose requests were created in the same second, in the order of their placement."""
ORDERS = {"placed": None, "recovered": [*APPS], "recovered in reverse": [*reversed(APPS)]}


def equal_ages(order: list[str] | None, **keys: Any) -> RM:
    """Return an RM whose only node is full of tasks of equal age, recovered in this order if any."""
    rm = RM(configuration(queue("a", resources={"guaranteed": {"memory": 5}}), queue("b", **keys)))
    rm.pass_time(1000)
    tags = {"creationTime": "100"}
    for app in dict.fromkeys(APPS.values() if order is None else [APPS[key] for key in order]):
        rm.app(app, "root.b")
    if order is None:
        rm.node("n1", memory=5)
        for key, app in APPS.items():
            rm.ask(app, key, tags=tags, memory=1)
            rm.schedule()
            rm.pass_time(1)
    else:
        existing = [
            Allocation(key, APPS[key], f"{key}#9", "n1", Resource(memory=1), allocation_tags=tags)
            for key in order
        ]
        rm.running.update({one.uuid: one for one in existing})
        rm.node("n1", existing=existing, memory=5)
    rm.app("late", "root.a")
    return rm


@pytest.mark.parametrize("tags", [{}, {REQUIRED_NODE_TAG: "n1"}], ids=["guarantee", "required node"])
@pytest.mark.parametrize("order", ORDERS)
def test_recovery_does_not_change_the_order_of_victims_of_equal_age(order: str, tags: dict[str, str]) -> None:
    assert victims(equal_ages(ORDERS[order]), tags=tags) == ["two", "three", "one"]


@pytest.mark.parametrize("order", ORDERS)
def test_recovery_does_not_change_the_victims_of_a_lowered_quota(order: str) -> None:
    rm = equal_ages(ORDERS[order], resources={"max": {"memory": 5}})
    quota = {"resources": {"max": {"memory": 3}}, "properties": {"quota.preemption.delay": "1s"}}
    lowered = configuration(queue("a"), queue("b", **quota), preemption={"quotapreemptionenabled": True})
    assert rm.reload(lowered)
    rm.pass_time(2)
    rm.schedule()
    assert {uuid.partition("#")[0] for uuid in rm.evicted} == {"two", "three"}
