"""Places under `maxapplications` of users and groups are held from the start of an application to its end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.core.test_limits import end_one, limit, limited, names, rm_with, submit, used
from yunikorn.interface.messages import Allocation
from yunikorn.model.usage_tracker import GROUP
from yunikorn.resources import Resource

LIMITS = [limit(users=["ann"], apps=1), limit(users=["*"], apps=1), limit(groups=["dev"], apps=1)]


@pytest.mark.parametrize("one", LIMITS, ids=["user", "each user", "group"])
def test_application_with_pending_asks_still_counts_after_its_last_allocation(one: Any) -> None:
    rm = rm_with(limited(one))
    submit(rm, "first", "ann", "dev")
    assert names(rm.schedule()) == ["first"]
    rm.ask("first", "large", memory=2000)
    submit(rm, "second", "ann", "dev")
    end_one(rm, "first")
    assert rm.schedule() == []
    # With two running applications the limit of one would be exceeded.
    rm.node("n2", memory=2000)
    assert names(rm.schedule()) == ["first"]
    end_one(rm, "first")
    assert rm.state("first") == "Completing"
    assert names(rm.schedule()) == ["second"]


def test_application_stops_counting_when_its_last_ask_is_released() -> None:
    rm = rm_with(limited(LIMITS[0]))
    submit(rm, "first", "ann")
    rm.schedule()
    rm.ask("first", "large", 2, memory=2000)
    submit(rm, "second", "ann")
    end_one(rm, "first")
    assert rm.schedule() == []
    rm.release_ask("first", "large")
    assert names(rm.schedule()) == ["second"]


def test_application_still_counts_while_its_last_ask_is_resized() -> None:
    rm = rm_with(limited(LIMITS[0]))
    submit(rm, "first", "ann")
    rm.schedule()
    rm.ask("first", "large", memory=2000)
    submit(rm, "second", "ann")
    end_one(rm, "first")
    rm.ask("first", "large", memory=1500)
    assert rm.schedule() == []
    rm.ask("first", "large", memory=1000)
    assert names(rm.schedule()) == ["first"]


def test_resumed_application_counts_from_its_next_allocation() -> None:
    """As in 1.9, its state is not asked again: it may then exceed the limit."""
    rm = rm_with(limited(LIMITS[0]))
    submit(rm, "first", "ann")
    rm.schedule()
    end_one(rm, "first")
    assert rm.state("first") == "Completing"
    rm.ask("first", "large", memory=2000)
    submit(rm, "second", "ann")
    assert names(rm.schedule()) == ["second"]
    usage = rm.at_work().partition.usage.of("user", "ann", "root.a")
    assert usage is not None
    assert set(usage.applications) == {"second"}
    rm.node("n2", memory=2000)
    assert names(rm.schedule()) == ["first"]
    assert set(usage.applications) == {"first", "second"}


def test_recovered_allocation_makes_a_completing_application_count() -> None:
    rm = rm_with(limited(LIMITS[0]))
    submit(rm, "first", "ann")
    rm.schedule()
    end_one(rm, "first")
    found = Allocation("found", "first", "u1", "n2", Resource(memory=1))
    rm.running["u1"] = found
    rm.node("n2", existing=[found], memory=10)
    submit(rm, "second", "ann")
    assert rm.schedule() == []
    rm.release("first", "u1")
    assert names(rm.schedule()) == ["second"]


def test_new_limit_counts_applications_with_pending_asks_only() -> None:
    rm = rm_with(limited(limit(users=["bob"], apps=1)))
    submit(rm, "first", "ann")
    rm.schedule()
    rm.ask("first", "large", memory=2000)
    end_one(rm, "first")
    usage = rm.at_work().partition.usage.of("user", "ann", "root.a")
    assert usage is not None
    assert usage.applications == ("first",)
    rm.reload(limited(LIMITS[0]))
    submit(rm, "second", "ann")
    assert rm.schedule() == []
    rm.reload(limited(limit(users=["bob"], apps=1)))
    assert names(rm.schedule()) == ["second"]
    again = rm.at_work().partition.usage.of("user", "ann", "root.a")
    assert again is not None
    assert set(again.applications) == {"first", "second"}
    rm.release_ask("first", "large")
    assert set(again.applications) == {"second"}


def test_resuming_gang_stops_counting_and_may_count_again() -> None:
    rm = GangRM(configuration(queue("a", limits=[LIMITS[0]]), queue("b")))
    rm.node("n1", vcore=3)
    for app_id in ("gang", "other"):
        rm.gang(app_id, "Soft", seconds=60, user="ann", vcore=4)
        rm.task(app_id, "ph", "workers", 2, placeholder=True, vcore=2)
    rm.task("gang", "t", "", vcore=3)
    assert rm.schedule() == [("gang", "ph", "n1")]
    rm.pass_time(60)
    rm.confirmed()
    # It has to start again: the next in the order takes the one place, and here that is the gang itself.
    assert rm.schedule() == [("gang", "t", "n1")]
    assert rm.state("gang") == "Starting"
    rm.remove_app("gang")
    assert rm.schedule() == [("other", "ph", "n1")]


def test_named_group_uses_its_own_limits_at_each_level_and_never_the_wildcard() -> None:
    leaf = {"limits": [limit(groups=["dev"], memory=2)]}
    above = [limit(groups=["ops"], memory=3), limit(groups=["*"], memory=3)]
    rm = rm_with(configuration(queue("p", queue("a", **leaf), queue("b", **leaf), queue("c"), limits=above)))
    submit(rm, "in-a", "ann", "dev", count=9, into="root.p.a")
    submit(rm, "in-b", "ann", "dev", count=9, into="root.p.b")
    submit(rm, "guests", "bob", "guests", count=9, into="root.p.c")
    # At root.p dev has no limit: the wildcard there is for applications that no limit names on the way up.
    assert sorted(names(rm.schedule())) == ["guests"] * 3 + ["in-a"] * 2 + ["in-b"] * 2
    assert used(rm, GROUP, "dev", "root.p") == {"memory": 4}
    assert used(rm, GROUP, "*", "root.p") == {"memory": 3}
