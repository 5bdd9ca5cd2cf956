"""Limits on the usage of users and groups in a queue and below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.core.event_collector import EventCollector
from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.interface.messages import Allocation
from yunikorn.model.application import Application
from yunikorn.model.usage_tracker import GROUP, USER, UsageTracker
from yunikorn.resources import Resource


def limit(
    *, users: list[str] | None = None, groups: list[str] | None = None, apps: int = 0, **most: int
) -> Any:
    """Return an entry under `limits`."""
    found: dict[str, Any] = {"limit": "a test"}
    if users:
        found["users"] = users
    if groups:
        found["groups"] = groups
    if apps:
        found["maxapplications"] = apps
    if most:
        found["maxresources"] = {name: str(amount) for name, amount in most.items()}
    return found


def limited(*limits: Any, name: str = "a") -> str:
    """Return a configuration with one queue that has these limits."""
    return configuration(queue(name, limits=list(limits)))


def rm_with(config: str, memory: int = 1000) -> RM:
    """Return an RM with one large node."""
    rm = RM(config)
    rm.node(memory=memory)
    return rm


def submit(
    rm: RM, app: str, user: str, *groups: str, count: int = 1, memory: int = 1, into: str = "root.a"
) -> None:
    """Submit an application of a user, with `count` asks."""
    rm.app(app, into, user=user, groups=groups)
    rm.ask(app, count=count, memory=memory)


def names(decisions: list[tuple[str, str, str]]) -> list[str]:
    """Return the names of the served applications, in order."""
    return [app for app, _, _ in decisions]


def end_one(rm: RM, app: str) -> None:
    """End one allocation of an application."""
    rm.release(app, next(uuid for uuid, one in rm.running.items() if one.application_id == app))


def used(rm: RM, kind: str, name: str, path: str = "root.a") -> dict[str, int] | None:
    """Return the usage of a user or group in a queue; None if it has no tracker there."""
    tracker = rm.at_work().partition.usage.of(kind, name, path)
    return None if tracker is None else {kind: amount for kind, amount in tracker.usage.items() if amount}


# -- resources of a user ----------------------------------------------------------------------------------


def test_user_at_its_limit_does_not_block_others() -> None:
    rm = rm_with(limited(limit(users=["ann"], memory=3)))
    submit(rm, "hers", "ann", count=5)
    submit(rm, "his", "bob", count=5)
    assert names(rm.schedule()) == ["hers"] * 3 + ["his"] * 5
    assert rm.schedule() == []
    end_one(rm, "hers")
    assert names(rm.schedule()) == ["hers"]
    assert used(rm, USER, "ann") == {"memory": 3}


def test_all_applications_of_a_user_share_its_limit() -> None:
    rm = rm_with(limited(limit(users=["ann"], memory=3)))
    submit(rm, "one", "ann", count=2)
    submit(rm, "two", "ann", count=2)
    assert names(rm.schedule()) == ["one", "one", "two"]
    end_one(rm, "one")
    assert names(rm.schedule()) == ["two"]


def test_large_ask_over_the_limit_does_not_block_a_small_one() -> None:
    rm = rm_with(limited(limit(users=["ann"], memory=4)))
    submit(rm, "large", "ann", memory=3)
    submit(rm, "larger", "ann", memory=5)
    submit(rm, "small", "ann", memory=1)
    assert names(rm.schedule()) == ["large", "small"]


def test_unnamed_type_is_unlimited_and_zero_allows_none() -> None:
    rm = RM(limited(limit(users=["ann"], memory=2, gpu=0)))
    rm.node(memory=100, vcore=100, gpu=8)
    rm.app("hers", user="ann")
    rm.ask("hers", "cores", vcore=50)
    rm.ask("hers", "cards", gpu=1)
    rm.ask("hers", "no-cards", memory=1, gpu=0)
    assert [key for _, key, _ in rm.schedule()] == ["cores", "no-cards"]


def test_user_wildcard_limits_each_user_separately() -> None:
    rm = rm_with(limited(limit(users=["ann"], memory=1), limit(users=["*"], memory=2)))
    for app, user in (("a", "ann"), ("b", "bob"), ("c", "cid")):
        submit(rm, app, user, count=4)
    assert names(rm.schedule()) == ["a", "b", "b", "c", "c"]


def test_named_user_is_not_under_the_wildcard_even_without_such_a_limit() -> None:
    """Ann's own entry has no resources: at this queue only her number of applications is limited."""
    rm = rm_with(limited(limit(users=["ann"], apps=5), limit(users=["*"], memory=2)))
    submit(rm, "a", "ann", count=4)
    assert names(rm.schedule()) == ["a"] * 4


def test_the_tightest_level_counts_and_usage_adds_up_upwards() -> None:
    tree = queue(
        "p",
        queue("a", limits=[limit(users=["ann"], memory=1)]),
        queue("b"),
        limits=[limit(users=["ann"], memory=3)],
    )
    rm = rm_with(configuration(tree))
    submit(rm, "in-a", "ann", count=5, into="root.p.a")
    submit(rm, "in-b", "ann", count=5, into="root.p.b")
    submit(rm, "his", "bob", count=1, into="root.p.b")
    # b has more pending; then a, which has less; the limit of a is reached, and then that of p.
    assert names(rm.schedule()) == ["in-b", "in-a", "in-b", "his"]
    assert used(rm, USER, "ann", "root.p.a") == {"memory": 1}
    assert used(rm, USER, "ann", "root.p.b") == {"memory": 2}
    assert used(rm, USER, "ann", "root.p") == used(rm, USER, "ann", "root") == {"memory": 3}
    assert used(rm, USER, "bob", "root.p") == {"memory": 1}


def test_limits_of_the_partition_are_those_of_root() -> None:
    rm = rm_with(configuration(queue("a"), queue("b"), limits=[limit(users=["ann"], memory=3)]))
    submit(rm, "one", "ann", count=2, into="root.a")
    submit(rm, "two", "ann", count=2, into="root.b")
    assert len(rm.schedule()) == 3
    assert used(rm, USER, "ann", "root") == {"memory": 3}


def test_partitions_have_separate_usage_trackers() -> None:
    """In YuniKorn 1.9 partitions share usage, and the limits of the last partition apply to all."""

    def one(name: str, most: int) -> Any:
        return partition(queue("a", limits=[limit(users=["ann"], memory=most)]), name=name)

    rm = RM(document(one("default", 2), one("lab", 3)))
    rm.node("n1", memory=10)
    rm.node("n2", {"si/node-partition": "lab"}, memory=10)
    for name in ("default", "lab"):
        rm.app(name, user="ann", partition_name=name)
        rm.ask(name, count=9, partition_name=name, memory=1)
    placed = names(rm.schedule())
    assert (placed.count("default"), placed.count("lab")) == (2, 3)


def test_recovered_allocations_are_booked_over_the_limit() -> None:
    rm = RM(limited(limit(users=["ann"], memory=3)))
    rm.app("hers", user="ann", groups=[])
    rm.node(memory=100, existing=[Allocation("k", "hers", "k#1", "n1", Resource(memory=5))])
    assert used(rm, USER, "ann") == {"memory": 5}
    rm.ask("hers", memory=1)
    assert rm.schedule() == []
    rm.release("hers", "k#1")
    assert names(rm.schedule()) == ["hers"]


# -- groups -----------------------------------------------------------------------------------------------


def test_members_of_a_group_share_its_limit() -> None:
    rm = rm_with(limited(limit(groups=["dev"], memory=3)))
    submit(rm, "a", "ann", "dev", count=2)
    submit(rm, "b", "bob", "dev", count=2)
    submit(rm, "c", "cid", "ops", count=2)
    assert names(rm.schedule()) == ["a", "a", "b", "c", "c"]
    end_one(rm, "a")
    assert names(rm.schedule()) == ["b"]
    assert used(rm, GROUP, "dev") == {"memory": 3}
    assert used(rm, GROUP, "ops") is None  # no limit names them: nothing is counted for them


def test_user_and_group_limits_both_apply() -> None:
    rm = rm_with(limited(limit(groups=["dev"], memory=3), limit(users=["ann"], memory=2)))
    submit(rm, "a", "ann", "dev", count=4)
    submit(rm, "b", "bob", "dev", count=4)
    assert names(rm.schedule()) == ["a", "a", "b"]
    end_one(rm, "b")
    assert names(rm.schedule()) == ["b"]
    end_one(rm, "a")
    assert names(rm.schedule()) == ["a"]


def test_application_counts_for_the_first_group_in_the_order_of_the_limits() -> None:
    rm = rm_with(limited(limit(groups=["dev"], memory=1), limit(groups=["ops"], memory=3)))
    submit(rm, "both", "ann", "ops", "dev", count=5)
    submit(rm, "ops", "bob", "ops", count=5)
    assert rm.find_app("both").group == "dev"
    assert names(rm.schedule()) == ["both", "ops", "ops", "ops"]


def test_limited_group_nearest_to_the_leaf_counts_at_all_ancestors() -> None:
    tree = queue(
        "p",
        queue("a", limits=[limit(groups=["ops"], memory=4)]),
        queue("b"),
        limits=[limit(groups=["dev"], memory=1)],
    )
    rm = rm_with(configuration(tree))
    submit(rm, "in-a", "ann", "dev", "ops", count=6, into="root.p.a")
    submit(rm, "in-b", "ann", "dev", "ops", count=6, into="root.p.b")
    # In a she counts as ops, which p does not limit; in b as dev.
    assert (rm.find_app("in-a").group, rm.find_app("in-b").group) == ("ops", "dev")
    placed = names(rm.schedule())
    assert (placed.count("in-a"), placed.count("in-b")) == (4, 1)
    assert used(rm, GROUP, "ops", "root.p") == {"memory": 4}
    assert used(rm, GROUP, "dev", "root.p") == {"memory": 1}


def test_group_wildcard_limits_all_other_groups_together() -> None:
    rm = rm_with(limited(limit(groups=["dev"], memory=5), limit(groups=["*"], memory=3)))
    submit(rm, "a", "ann", "dev", count=9)
    submit(rm, "b", "bob", "ops", count=2)
    submit(rm, "c", "cid", "lab", count=2)
    assert names(rm.schedule()) == ["a"] * 5 + ["b", "b", "c"]
    assert used(rm, GROUP, "*") == {"memory": 3}


def test_a_user_without_any_limited_group_is_free_of_group_limits() -> None:
    rm = rm_with(limited(limit(groups=["dev"], memory=1)))
    submit(rm, "a", "ann", "ops", count=3)
    assert rm.find_app("a").group == ""
    assert names(rm.schedule()) == ["a"] * 3


# -- applications of a user or group ----------------------------------------------------------------------


def test_application_over_the_users_maxapplications_waits() -> None:
    rm = rm_with(limited(limit(users=["ann"], apps=1)))
    submit(rm, "a1", "ann", count=2)
    submit(rm, "a2", "ann")
    submit(rm, "b1", "bob")
    assert names(rm.schedule()) == ["a1", "a1", "b1"]
    assert rm.state("a2") == "Accepted"
    end_one(rm, "a1")
    assert rm.schedule() == []
    end_one(rm, "a1")
    assert names(rm.schedule()) == ["a2"]


def test_applications_of_a_group_are_counted_together() -> None:
    rm = rm_with(limited(limit(groups=["dev"], apps=2)))
    for number, user in enumerate(("ann", "bob", "ann", "cid"), 1):
        submit(rm, f"app-{number}", user, "dev")
    assert names(rm.schedule()) == ["app-1", "app-2"]
    rm.remove_app("app-1")
    assert names(rm.schedule()) == ["app-3"]
    rm.remove_app("app-2")
    assert names(rm.schedule()) == ["app-4"]


def test_waiting_applications_start_by_priority_then_age() -> None:
    rm = rm_with(limited(limit(users=["*"], apps=1)))
    for app, priority in (("running", 0), ("first", 0), ("urgent", 7), ("second", 0)):
        rm.app(app, user="ann")
        rm.ask(app, priority=priority, memory=1)
        if app == "running":
            rm.schedule()
    served = []
    for gone in ("running", "urgent", "first"):
        rm.remove_app(gone)
        served += names(rm.schedule())
    assert served == ["urgent", "first", "second"]


def test_maxapplications_of_queue_and_user_both_apply() -> None:
    rm = rm_with(configuration(queue("a", maxapplications=2, limits=[limit(users=["ann"], apps=1)])))
    for app, user in (("a1", "ann"), ("a2", "ann"), ("b1", "bob"), ("b2", "bob")):
        submit(rm, app, user)
    assert names(rm.schedule()) == ["a1", "b1"]
    rm.remove_app("b1")
    assert names(rm.schedule()) == ["b2"]  # a2 is older, but ann has her one application
    rm.remove_app("a1")
    assert names(rm.schedule()) == ["a2"]


# -- other configurations ---------------------------------------------------------------------------------


def test_raised_limit_applies_immediately_and_lowered_limit_ends_nothing() -> None:
    rm = rm_with(limited(limit(users=["ann"], memory=2)))
    submit(rm, "hers", "ann", count=9)
    assert len(rm.schedule()) == 2
    rm.reload(limited(limit(users=["ann"], memory=4)))
    assert len(rm.schedule()) == 2
    rm.reload(limited(limit(users=["ann"], memory=1)))
    assert len(rm.running) == 4
    for _ in range(3):
        end_one(rm, "hers")
        assert rm.schedule() == []
    end_one(rm, "hers")
    assert names(rm.schedule()) == ["hers"]


def test_new_limit_counts_existing_usage() -> None:
    rm = rm_with(configuration(queue("a")))
    submit(rm, "hers", "ann", "dev", count=3)
    rm.schedule()
    rm.ask("hers", "more", count=9, memory=1)
    rm.reload(limited(limit(users=["ann"], memory=5), limit(groups=["dev"], memory=4)))
    assert len(rm.schedule()) == 1
    assert used(rm, GROUP, "dev") == {"memory": 4}
    rm.reload(configuration(queue("a")))
    assert len(rm.schedule()) == 8


def test_changed_limited_group_takes_over_existing_usage() -> None:
    """YuniKorn 1.9 starts the new group at zero, and subtracts usage from it that it never had."""
    rm = rm_with(limited(limit(groups=["dev"], memory=5)))
    submit(rm, "hers", "ann", "dev", "ops", count=9)
    assert len(rm.schedule()) == 5
    rm.reload(limited(limit(groups=["ops"], memory=6)))
    assert used(rm, GROUP, "dev") is None
    assert used(rm, GROUP, "ops") == {"memory": 5}
    assert len(rm.schedule()) == 1
    end_one(rm, "hers")
    assert used(rm, GROUP, "ops") == {"memory": 5}


def test_lowered_maxapplications_stops_none_and_raised_lets_the_next_start() -> None:
    rm = rm_with(limited(limit(users=["*"], apps=2)))
    for number in range(1, 6):
        submit(rm, f"app-{number}", "ann", count=1)
    assert names(rm.schedule()) == ["app-1", "app-2"]
    rm.reload(limited(limit(users=["*"], apps=1)))
    rm.ask("app-2", "more", memory=1)
    assert names(rm.schedule()) == ["app-2"]  # it runs
    rm.remove_app("app-1")
    assert rm.schedule() == []
    rm.reload(limited(limit(users=["*"], apps=3)))
    assert names(rm.schedule()) == ["app-3", "app-4"]
    rm.reload(limited(limit(users=["bob"], apps=1)))
    assert names(rm.schedule()) == ["app-5"]


def test_updated_ask_after_a_reload_is_under_the_new_limits() -> None:
    rm = rm_with(limited(limit(users=["ann"], apps=1)))
    submit(rm, "hers", "ann")
    rm.schedule()
    rm.reload(limited(limit(users=["ann"], memory=2)))
    rm.ask("hers", count=5, memory=1)  # the same ask with a larger count: more replicas are pending
    assert names(rm.schedule()) == ["hers"]
    end_one(rm, "hers")
    assert names(rm.schedule()) == ["hers"]


# -- accounting --------------------------------------------------------------------------------------------


def test_idle_users_leave_no_usage_tracker() -> None:
    rm = rm_with(limited(limit(users=["*"], memory=2, apps=2), limit(groups=["dev", "*"], memory=50)))
    for number in range(30):
        submit(rm, f"app-{number}", f"user-{number}", "dev")
        rm.schedule()
    assert len(list(rm.at_work().partition.usage)) == 2 * 30 + 2
    for number in range(30):
        rm.remove_app(f"app-{number}")
    assert list(rm.at_work().partition.usage) == []
    for number in range(600):
        submit(rm, f"late-{number}", f"guest-{number}", "ops")
        rm.schedule()
        rm.remove_app(f"late-{number}")
    pending_classes = rm.at_work().partition.pending_classes
    assert pending_classes.schedulable.bit_length() < 2 * 600


def test_asks_are_served_after_their_pending_class_was_removed() -> None:
    """Meanwhile so many other ask classes come that the old class is forgotten and its bit reused."""
    rm = rm_with(limited(limit(users=["ann"], memory=2)), memory=10_000)
    submit(rm, "hers", "ann")
    rm.schedule()
    rm.app("many", user="bob")
    for number in range(300):
        rm.ask("many", f"brief-{number}", memory=number + 2)
        rm.release_ask("many", f"brief-{number}")
    for number in range(400):
        rm.ask("many", f"huge-{number}", memory=number + 20_000)
    assert rm.schedule() == []
    rm.ask("hers", count=5, memory=1)  # the ask that was served before gets more replicas
    assert names(rm.schedule()) == ["hers"]
    end_one(rm, "hers")
    assert names(rm.schedule()) == ["hers"]


def test_limits_and_usage_are_events() -> None:
    collector = EventCollector()
    rm = collector.rm(
        partition(queue("a", limits=[limit(users=["ann"], memory=1), limit(groups=["dev"], memory=9)]))
    )
    rm.node(memory=10)
    submit(rm, "hers", "ann", "dev", count=2)
    rm.schedule()
    assert collector.of("UG_APP_LINK") == [("dev", "hers", "SET", "UG_APP_LINK")]
    assert collector.of("UG_USER_RESOURCE") == [("ann", "root.a", "ADD", "UG_USER_RESOURCE")]
    assert collector.of("UG_GROUP_RESOURCE") == [("dev", "root.a", "ADD", "UG_GROUP_RESOURCE")]
    (message,) = collector.messages("ask")
    assert "exceeds the available user quota" in message
    assert "memory 1" in message

    end_one(rm, "hers")
    rm.schedule()
    assert collector.messages("ask")[-1] == "Request 'ask' fits in the available user quota"
    assert ("ann", "root.a", "REMOVE", "UG_USER_RESOURCE") in collector.of("UG_USER_RESOURCE")

    collector.events.clear()
    rm.reload(collector.text(partition(queue("a", limits=[limit(users=["ann"], memory=2)]))))
    assert collector.of("UG_USER_LIMIT", "UG_GROUP_LIMIT", "UG_APP_LINK") == [
        ("ann", "root.a", "SET", "UG_USER_LIMIT"),
        ("dev", "root.a", "REMOVE", "UG_GROUP_LIMIT"),
        ("dev", "hers", "REMOVE", "UG_APP_LINK"),
    ]


def test_removed_application_has_a_link_removal_event() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a", limits=[limit(groups=["dev"], memory=9)])))
    rm.app("hers", user="ann", groups=["dev"])
    rm.remove_app("hers")
    assert collector.of("UG_APP_LINK") == [
        ("dev", "hers", "SET", "UG_APP_LINK"),
        ("dev", "hers", "REMOVE", "UG_APP_LINK"),
    ]


def test_usage_of_a_user_by_queue() -> None:
    tree = queue("p", queue("p-1"), queue("x"), limits=[limit(users=["*"], apps=9, memory=10)])
    rm = rm_with(configuration(tree, queue("b"), queue("c", limits=[limit(groups=["dev"], memory=10)])))
    for app, path, count in (("one", "root.p.p-1", 3), ("two", "root.p.x", 2), ("three", "root.b", 1)):
        submit(rm, app, "ann", "dev", count=count, into=path)
    submit(rm, "four", "bob", "dev", into="root.c")
    rm.schedule()
    usage = rm.at_work().partition.usage
    assert (usage.names(USER), usage.names(GROUP)) == (["ann", "bob"], ["dev"])
    assert [(one.path, one.usage["memory"], len(one.applications)) for one in usage.through(USER, "ann")] == [
        ("root", 6, 3),
        ("root.b", 1, 1),
        ("root.p", 5, 2),
        ("root.p.p-1", 3, 1),
        ("root.p.x", 2, 1),
    ]
    in_p = usage.of(USER, "ann", "root.p")
    assert in_p is not None
    assert (in_p.max_resources, in_p.max_applications, in_p.headroom) == ({"memory": 10}, 9, {"memory": 5})
    assert usage.through(USER, "nobody") == []


def test_example_of_the_documentation_works() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scheduling.md").read_text("utf-8")
    (text,) = re.findall(r"## Limits\n.*?```yaml\n(.*?)```", page, re.DOTALL)
    rm = RM(text)
    rm.node(memory=1000 * 10**9, vcore=1_000_000)
    giga = 10**9
    for number in (1, 2, 3):
        submit(rm, f"ann-{number}", "ann", "students", memory=30 * giga, into="root.science")
    submit(rm, "bob", "bob", "staff", count=2, memory=60 * giga, into="root.science")
    submit(rm, "cid", "cid", "guests", count=2, memory=30 * giga, into="root.science")
    # Ann's third is one application too many for her; bob and cid share 100G.
    assert names(rm.schedule()) == ["ann-1", "ann-2", "bob", "cid"]


# -- cost -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["resources", "applications"])
def test_the_cost_of_a_release_is_independent_of_blocked_applications(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    entry = limit(users=["ann"], memory=1) if kind == "resources" else limit(users=["ann"], apps=1)
    rm = rm_with(limited(entry))
    for number in range(10_000):
        submit(rm, f"app-{number}", "ann")
    submit(rm, "other", "bob")
    assert names(rm.schedule()) == ["app-0", "other"]
    calls = {"activate": 0, "mark_dirty": 0, "has_room": 0}
    for owner, name in ((Application, "activate"), (Application, "mark_dirty"), (UsageTracker, "has_room")):
        _count(monkeypatch, owner, name, calls)
    for number in range(5):
        end_one(rm, f"app-{number}")
        assert names(rm.schedule()) == [f"app-{number + 1}"]
    assert max(calls.values()) < 60, calls


def _count(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, calls: dict[str, int]) -> None:
    original = getattr(owner, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)
