"""Dynamic queues: created by placement, configured by templates, drained, and removed when empty."""

from __future__ import annotations

from typing import Any

from tests.core.event_collector import EventCollector
from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource

BY_USER = [{"name": "user", "create": True, "parent": {"name": "fixed", "value": "root.users"}}]
PROVIDED = [{"name": "provided", "create": True}]


def users(*children: Any, **keys: Any) -> Any:
    """Return a parent queue below which every user gets a queue."""
    return queue("users", *children, parent=True, **keys)


def text(*queues: Any, rules: Any = BY_USER) -> str:
    """Return a configuration with these placement rules."""
    return configuration(*queues, placementrules=rules)


def rm_with(*queues: Any, rules: Any = BY_USER) -> RM:
    """Return an RM with one large node."""
    rm = RM(text(*queues, rules=rules))
    rm.node(memory=1000, vcore=1000)
    return rm


def exists(rm: RM, path: str) -> bool:
    """Return True if there is such a queue."""
    return rm.at_work().partition.queue(path) is not None


def names(decisions: list[tuple[str, str, str]]) -> list[str]:
    """Return the names of the served users, in order."""
    return [app for app, _, _ in decisions]


# -- created by placement ----------------------------------------------------------------------------------


def test_rule_whose_queue_cannot_be_created_falls_through_to_the_next() -> None:
    rm = rm_with(queue("leaf"), queue("other"), rules=[*PROVIDED, {"name": "fixed", "value": "root.other"}])
    rm.app("below-a-leaf", "root.leaf.x")
    rm.app("reserved-name", "root.new.@recovery@")
    assert rm.entries("rejected_applications") == []
    other = rm.find_queue("root.other")
    assert [rm.find_app(app_id).queue for app_id in ("below-a-leaf", "reserved-name")] == [other, other]
    assert not exists(rm, "root.new")


def test_no_queue_is_created_below_a_draining_queue_and_the_next_rule_is_tried() -> None:
    rules = [*PROVIDED, {"name": "fixed", "value": "root.other", "create": True}]
    rm = rm_with(queue("leaving", queue("busy")), rules=rules)
    rm.app("one", "root.leaving.busy")
    rm.reload(text(queue("a"), rules=rules))
    assert rm.find_queue("root.leaving").state == "Draining"
    rm.app("two", "root.leaving.new")
    assert rm.find_app("two").queue is rm.find_queue("root.other")


def test_forced_application_enters_the_recovery_queue_if_no_queue_can_be_created() -> None:
    rm = rm_with(queue("leaf"), rules=PROVIDED)
    rm.app_tagged("forced", "root.leaf.x", {"application.create.force": "true"})
    rm.app("other", "root.leaf.x")
    assert rm.find_app("forced").queue is rm.find_queue("root.@recovery@")
    (refused,) = rm.entries("rejected_applications")
    assert "provided: queue root.leaf.x cannot be created: root.leaf is a leaf queue" in refused.reason


def test_dynamic_queue_exists_from_its_first_application_until_after_its_last() -> None:
    rm = rm_with(users())
    rm.app("one", user="ann")
    rm.app("two", user="ann")
    made = rm.find_queue("root.users.ann")
    assert (made.is_leaf, made.managed) == (True, False)
    rm.remove_app("one")
    rm.pass_time(60)
    assert exists(rm, "root.users.ann")
    rm.remove_app("two")
    rm.pass_time(9)
    assert exists(rm, "root.users.ann")
    rm.pass_time(2)
    assert not exists(rm, "root.users.ann")
    assert exists(rm, "root.users")  # it is in the configuration, so it stays


def test_dynamic_queue_that_is_reused_in_time_stays() -> None:
    rm = rm_with(users())
    rm.app("one", user="ann")
    first = rm.find_queue("root.users.ann")
    rm.remove_app("one")
    rm.pass_time(5)
    rm.app("two", user="ann")
    rm.pass_time(60)
    assert rm.find_queue("root.users.ann") is first
    rm.ask("two", memory=1)
    assert names(rm.schedule()) == ["two"]


def test_a_removed_dynamic_queue_can_be_created_again() -> None:
    rm = rm_with(users())
    for app in ("one", "two", "three"):
        rm.app(app, user="ann")
        rm.ask(app, count=2, memory=1)
        assert names(rm.schedule()) == [app, app]
        rm.remove_app(app)
        assert rm.find_queue("root.users.ann").allocated["memory"] == 0
        rm.pass_time(11)
        assert not exists(rm, "root.users.ann")
        assert rm.find_queue("root.users").children == {}
        assert rm.find_queue("root").waiting == 0


def test_dynamic_parents_are_removed_with_their_last_child() -> None:
    rm = rm_with(queue("a"), rules=PROVIDED)
    rm.app("deep", "root.x.y.z")
    rm.app("flat", "root.x.w")
    assert [rm.find_queue(path).is_leaf for path in ("root.x", "root.x.y", "root.x.y.z")] == [
        False,
        False,
        True,
    ]
    rm.remove_app("deep")
    rm.pass_time(11)
    assert not exists(rm, "root.x.y.z")
    rm.pass_time(10)
    assert not exists(rm, "root.x.y")
    assert exists(rm, "root.x")
    rm.remove_app("flat")
    rm.pass_time(21)
    assert not exists(rm, "root.x")


def test_completing_applications_keep_their_queue() -> None:
    rm = rm_with(users())
    rm.app("one", user="ann")
    rm.ask("one", memory=1)
    rm.schedule()
    rm.release("one", next(iter(rm.running)))
    assert rm.state("one") == "Completing"
    rm.pass_time(29)
    assert exists(rm, "root.users.ann")
    rm.pass_time(12)
    assert rm.state("one") == "Completed"
    assert not exists(rm, "root.users.ann")


# -- templates ----------------------------------------------------------------------------------------------

TEMPLATE = {
    "maxapplications": 1,
    "resources": {"max": {"memory": "3"}, "guaranteed": {"memory": "2"}},
    "properties": {"application.sort.policy": "fair", "priority.offset": "4"},
}


def test_dynamic_leaf_has_the_settings_of_its_template() -> None:
    rm = rm_with(users(childtemplate=TEMPLATE))
    for app in ("one", "two"):
        rm.app(app, user="ann")
        rm.ask(app, count=2, memory=2)
    made = rm.find_queue("root.users.ann")
    assert (dict(made.max or {}), dict(made.guaranteed), made.max_applications) == (
        {"memory": 3},
        {"memory": 2},
        1,
    )
    assert made.settings.app_sort == "fair"
    assert made.priority == 4
    assert names(rm.schedule()) == ["one"]  # the second would exceed its max, the other one `maxapplications`


def test_dynamic_leaf_inherits_only_the_template() -> None:
    rm = rm_with(
        users(properties={"application.sort.policy": "fair"}),
        queue("p", parent=True, childtemplate={"properties": {"application.sort.priority": "disabled"}}),
        rules=PROVIDED,
    )
    rm.app("one", "root.users.ann")
    rm.app("two", "root.p.x")
    assert rm.find_queue("root.users.ann").settings.app_sort == "fifo"
    assert rm.find_queue("root.p.x").settings.sort_priority is False


def test_dynamic_parents_pass_the_template_down_without_applying_it() -> None:
    rm = rm_with(users(childtemplate=TEMPLATE), rules=PROVIDED)
    rm.app("one", "root.users.team.ann")
    team, ann = rm.find_queue("root.users.team"), rm.find_queue("root.users.team.ann")
    assert (team.max, team.max_applications) == (None, 0)
    assert (dict(ann.max or {}), ann.max_applications) == ({"memory": 3}, 1)


def test_configured_parents_take_the_template_above_unless_they_have_one() -> None:
    rm = rm_with(
        users(
            queue("plain", parent=True),
            queue("own", parent=True, childtemplate={"maxapplications": 7}),
            queue("leaf"),
            childtemplate=TEMPLATE,
        ),
        rules=PROVIDED,
    )
    for number, path in enumerate(("plain.x", "own.x", "leaf")):
        rm.app(f"app-{number}", f"root.users.{path}")
    assert rm.find_queue("root.users.plain.x").max_applications == 1
    assert rm.find_queue("root.users.own.x").max_applications == 7
    assert rm.find_queue("root.users.own.x").max is None
    assert rm.find_queue("root.users.leaf").max_applications == 0  # configured leaves ignore the template


def test_changed_template_applies_to_new_dynamic_queues_only() -> None:
    rm = rm_with(users(childtemplate=TEMPLATE), rules=PROVIDED)
    rm.app("old", "root.users.team.old")
    rm.reload(text(users(childtemplate={"maxapplications": 9}), rules=PROVIDED))
    rm.app("new", "root.users.new")
    rm.app("in-team", "root.users.team.new")
    assert rm.find_queue("root.users.team.old").max_applications == 1
    assert rm.find_queue("root.users.new").max_applications == 9
    assert rm.find_queue("root.users.team.new").max_applications == 9  # also below a dynamic parent
    rm.reload(text(users(), rules=PROVIDED))
    rm.app("newest", "root.users.team.newest")
    assert rm.find_queue("root.users.team.newest").max_applications == 0


def test_the_recovery_queue_ignores_templates() -> None:
    """Running work must be recovered under any configuration; in YuniKorn 1.9 root's template limits it."""
    root = queue("root", queue("a"), submitacl="*", childtemplate=TEMPLATE)
    rm = RM(document({"name": "default", "queues": [root], "placementrules": [{"name": "provided"}]}))
    rm.node(memory=100)
    for app in ("one", "two"):
        rm.app_tagged(app, "", {"application.create.force": "true"})
        rm.ask(app, count=2, memory=3)
    recovery = rm.find_app("one").queue
    assert recovery is not None
    assert (recovery.path, recovery.max, recovery.max_applications) == ("root.@recovery@", None, 0)
    assert names(rm.schedule()) == ["one", "one", "two", "two"]


# -- draining -----------------------------------------------------------------------------------------------


def test_queue_removed_from_the_configuration_drains_and_is_removed() -> None:
    rm = rm_with(queue("a"), queue("b"), rules=[{"name": "provided"}])
    rm.app("one", "root.a")
    rm.ask("one", count=2, memory=1)
    rm.schedule(1)
    rm.reload(text(queue("b"), rules=[{"name": "provided"}]))
    assert rm.find_queue("root.a").state == "Draining"
    rm.take_response()
    rm.app("two", "root.a")
    (refused,) = rm.take_response().rejected_applications
    assert "root.a" in refused.reason
    assert names(rm.schedule()) == ["one"]
    rm.ask("one", "more", memory=1)
    assert names(rm.schedule()) == ["one"]
    rm.remove_app("one")
    rm.pass_time(11)
    assert not exists(rm, "root.a")


def test_empty_draining_queue_is_removed_with_its_children_after_ten_seconds() -> None:
    rm = rm_with(queue("p", queue("x"), queue("y")), queue("b"))
    rm.reload(text(queue("b")))
    assert [rm.find_queue(path).state for path in ("root.p", "root.p.x")] == ["Draining", "Draining"]
    rm.pass_time(11)
    assert not exists(rm, "root.p.x")
    rm.pass_time(10)
    assert not exists(rm, "root.p")


def test_draining_queue_that_is_configured_again_is_active() -> None:
    rm = rm_with(queue("a"), queue("b"), rules=[{"name": "provided"}])
    rm.app("one", "root.a")
    rm.reload(text(queue("b"), rules=[{"name": "provided"}]))
    rm.reload(text(queue("a"), queue("b"), rules=[{"name": "provided"}]))
    assert rm.find_queue("root.a").state == "Active"
    rm.app("two", "root.a")
    rm.pass_time(60)
    assert rm.state("two") == "New"
    rm.ask("two", memory=1)
    assert names(rm.schedule()) == ["two"]


def test_no_queue_is_created_below_a_draining_parent() -> None:
    rm = rm_with(users(), queue("b"), rules=PROVIDED)
    rm.app("one", "root.users.ann")
    rm.reload(text(queue("b"), rules=PROVIDED))
    rm.take_response()
    rm.app("two", "root.users.bob")
    (refused,) = rm.take_response().rejected_applications
    assert "root.users" in refused.reason
    rm.remove_app("one")
    rm.pass_time(21)
    assert not exists(rm, "root.users")


# -- from dynamic to configured ----------------------------------------------------------------------------


def test_dynamic_queue_becomes_configured_when_the_configuration_names_it() -> None:
    rm = rm_with(users(childtemplate=TEMPLATE))
    rm.app("one", user="ann")
    rm.ask("one", count=9, memory=1)
    assert len(rm.schedule()) == 3
    own = queue(
        "ann",
        resources={"max": {"memory": "5"}},
        limits=[{"limit": "l", "users": ["ann"], "maxresources": {"memory": "4"}}],
    )
    rm.reload(text(users(own, childtemplate=TEMPLATE)))
    made = rm.find_queue("root.users.ann")
    assert (made.managed, dict(made.max or {}), made.max_applications) == (True, {"memory": 5}, 0)
    assert made.settings.app_sort == "fifo"
    assert len(rm.schedule()) == 1  # 5 in the queue, 4 for ann
    rm.remove_app("one")
    rm.pass_time(60)
    assert exists(rm, "root.users.ann")


def test_configured_queue_never_becomes_dynamic() -> None:
    rm = rm_with(users(queue("ann")))
    rm.app("one", user="ann")
    rm.reload(text(users()))
    assert rm.find_queue("root.users.ann").state == "Draining"
    rm.remove_app("one")
    rm.pass_time(11)
    assert not exists(rm, "root.users.ann")
    rm.app("two", user="ann")  # placement creates the queue again
    assert not rm.find_queue("root.users.ann").managed


# -- with limits --------------------------------------------------------------------------------------------


def test_limits_of_ancestors_apply_to_dynamic_queues() -> None:
    limits = [{"limit": "l", "users": ["*"], "maxresources": {"memory": "3"}}]
    rm = rm_with(users(limits=limits))
    for turn in range(3):
        for user in ("ann", "bob"):
            rm.app(f"{user}-{turn}", user=user)
            rm.ask(f"{user}-{turn}", count=5, memory=1)
        placed = names(rm.schedule())
        assert (placed.count(f"ann-{turn}"), placed.count(f"bob-{turn}")) == (3, 3)
        for user in ("ann", "bob"):
            rm.remove_app(f"{user}-{turn}")
        rm.pass_time(11)
        assert list(rm.at_work().partition.usage) == []


def test_recovered_allocation_recreates_its_dynamic_queue() -> None:
    rm = RM(text(users()))
    rm.app("one", user="ann")
    rm.node(memory=10, existing=[Allocation("k", "one", "k#1", "n1", Resource(memory=2))])
    assert rm.find_queue("root.users.ann").allocated == {"memory": 2}


# -- events -------------------------------------------------------------------------------------------------


def test_queue_changes_are_events() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(users(), queue("b"), placementrules=BY_USER))
    rm.app("one", user="ann")
    rm.remove_app("one")
    rm.pass_time(11)
    rm.app("two", user="ann")  # events are delivered with the next response
    assert collector.of("QUEUE_DYNAMIC") == [
        ("root.users.ann", "", "ADD", "QUEUE_DYNAMIC"),
        ("root.users.ann", "", "REMOVE", "QUEUE_DYNAMIC"),
        ("root.users.ann", "", "ADD", "QUEUE_DYNAMIC"),
    ]
    assert collector.of("QUEUE_APP")[:2] == [
        ("root.users.ann", "one", "ADD", "QUEUE_APP"),
        ("root.users.ann", "one", "REMOVE", "QUEUE_APP"),
    ]
    collector.events.clear()
    rm.reload(
        collector.text(
            partition(users(queue("ann", resources={"max": {"memory": "5"}})), placementrules=BY_USER)
        )
    )
    rm.pass_time(11)
    rm.app("three", user="ann")
    assert ("root.users.ann", "", "SET", "QUEUE_MAX") in collector.of("QUEUE_MAX")
    assert collector.of("QUEUE_TYPE") == [("root.users.ann", "", "SET", "QUEUE_TYPE")]
    assert [one.object_id for one in collector.events if one.type == "QUEUE" and one.change == "REMOVE"] == [
        "root.b"
    ]
