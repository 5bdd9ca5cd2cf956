"""Priorities of asks, of their applications, and of the queues above."""

from __future__ import annotations

from typing import Any

from tests.core.kit import RM, configuration, queue
from yunikorn.resources import INT32_MAX, INT32_MIN

NONE = INT32_MIN
"""Priority that an application or queue without pending asks publishes."""


def rm_with(*queues: Any, **keys: Any) -> RM:
    """Return an RM with one large node and these queues."""
    rm = RM(configuration(*queues, **keys))
    rm.node(memory=1000)
    return rm


def submit(
    rm: RM, app: str, priority: int, *, into: str = "root.a", count: int = 1, key: str = "ask"
) -> None:
    """Submit an application with asks of one priority."""
    rm.app(app, into)
    rm.ask(app, key, count, priority=priority, memory=1)


def names(decisions: list[tuple[str, str, str]]) -> list[str]:
    """Return the names of the served applications, in order."""
    return [app for app, _, _ in decisions]


def with_properties(name: str, *children: Any, **properties: str) -> Any:
    """Return a queue with these properties, with `_` in place of `.`."""
    return queue(
        name, *children, properties={key.replace("_", "."): text for key, text in properties.items()}
    )


# -- inside an application, and inside a queue --------------------------------------------------------------


def test_asks_are_served_by_priority_then_order_of_submission() -> None:
    rm = rm_with(queue("a"))
    rm.app()
    for key, priority in (("zero", 0), ("low", -5), ("high", 9), ("later", 0), ("high-too", 9)):
        rm.ask("app", key, priority=priority, memory=1)
    assert [key for _, key, _ in rm.schedule()] == ["high", "high-too", "zero", "later", "low"]


def test_asks_of_another_size_keep_their_priority_order_after_some_were_served() -> None:
    rm = rm_with(queue("a"))
    rm.app()
    for key, priority in (("first", 9), ("second", 8), ("ordinary", 0), ("later", 0)):
        rm.ask("app", key, priority=priority, memory=1)
    assert [key for _, key, _ in rm.schedule(2)] == ["first", "second"]
    assert rm.find_app().priority == 0
    rm.ask("app", "large", priority=5, memory=2)
    assert rm.find_app().priority == 5
    assert [key for _, key, _ in rm.schedule(2)] == ["large", "ordinary"]
    rm.ask("app", "small", priority=-1, memory=1)
    rm.ask("app", "large-again", priority=-1, memory=2)
    rm.ask("app", "urgent", priority=9, memory=1)
    assert [key for _, key, _ in rm.schedule()] == ["urgent", "later", "small", "large-again"]


def test_application_has_the_priority_of_its_most_urgent_ask() -> None:
    rm = rm_with(queue("a"))
    submit(rm, "steady", 5, count=2)
    submit(rm, "mixed", 0, count=2)
    rm.ask("mixed", "urgent", priority=9, memory=1)
    # Once its urgent ask is served, the application has its normal priority again.
    assert [(app, key) for app, key, _ in rm.schedule()] == [
        ("mixed", "urgent"),
        ("steady", "ask"),
        ("steady", "ask"),
        ("mixed", "ask"),
        ("mixed", "ask"),
    ]


def test_unplaceable_ask_keeps_the_priority_of_its_application() -> None:
    rm = rm_with(queue("a"))
    submit(rm, "old", 1, count=1)
    submit(rm, "blocked", 0, count=1)
    rm.ask("blocked", "huge", priority=9, memory=5000)
    assert names(rm.schedule()) == ["blocked", "old"]
    rm.release_ask("blocked", "huge")
    submit(rm, "urgent", 3)
    rm.ask("blocked", "again", priority=0, memory=1)
    assert names(rm.schedule()) == ["urgent", "blocked"]


def test_equal_applications_are_served_by_submission_if_priorities_are_disabled() -> None:
    rm = rm_with(with_properties("a", application_sort_priority="disabled"))
    submit(rm, "low", -1)
    submit(rm, "high", 9)  # at the same moment: equal for fifo
    rm.pass_time(1)
    submit(rm, "later", 100)
    assert names(rm.schedule()) == ["low", "high", "later"]


def test_equal_queues_are_served_by_name_if_priorities_are_disabled() -> None:
    rm = rm_with(
        with_properties("p", queue("a"), queue("b"), queue("c"), application_sort_priority="disabled")
    )
    for name, priority in (("c", 9), ("b", 5), ("a", 0)):
        submit(rm, name, priority, into=f"root.p.{name}")
    assert names(rm.schedule()) == ["a", "b", "c"]
    rm.reload(configuration(queue("p", queue("a"), queue("b"), queue("c"))))
    for name, priority in (("c", 9), ("b", 5), ("a", 0)):
        rm.ask(name, "more", priority=priority, memory=1)
    assert names(rm.schedule()) == ["c", "b", "a"]


def test_asks_of_one_application_are_served_by_priority_if_priorities_are_disabled() -> None:
    rm = rm_with(with_properties("a", application_sort_priority="disabled"))
    rm.app()
    for key, priority in (("low", 1), ("high", 5)):
        rm.ask("app", key, priority=priority, memory=1)
    assert [key for _, key, _ in rm.schedule()] == ["high", "low"]


def test_fair_with_and_without_priorities() -> None:
    for setting, wanted in (("enabled", ["b", "b", "a", "a"]), ("disabled", ["a", "b", "a", "b"])):
        rm = rm_with(with_properties("a", application_sort_policy="fair", application_sort_priority=setting))
        submit(rm, "a", 0, count=2)
        submit(rm, "b", 1, count=2)
        assert names(rm.schedule()) == wanted, setting


# -- up the tree ------------------------------------------------------------------------------------------


def published(rm: RM, path: str) -> int:
    """Return the priority that a queue publishes to its parent."""
    return rm.find_queue(path).priority


def test_a_queue_publishes_its_most_urgent_application_and_its_offset() -> None:
    rm = rm_with(with_properties("a", priority_offset="5"))
    assert published(rm, "root.a") == NONE
    submit(rm, "one", 10)
    submit(rm, "two", 20)
    assert published(rm, "root.a") == 25
    rm.remove_app("two")
    assert published(rm, "root.a") == 15
    rm.schedule()
    assert published(rm, "root.a") == NONE


def test_fenced_queue_publishes_only_its_offset() -> None:
    rm = rm_with(
        with_properties("a", priority_policy="fence"),
        with_properties("b", priority_policy="fence", priority_offset="7"),
        queue("c"),
    )
    for leaf, priority in (("a", 1000), ("b", -1000), ("c", 3)):
        submit(rm, f"in-{leaf}", priority, into=f"root.{leaf}")
    assert [published(rm, f"root.{leaf}") for leaf in "abc"] == [0, 7, 3]
    assert names(rm.schedule()) == ["in-b", "in-c", "in-a"]
    assert [published(rm, f"root.{leaf}") for leaf in "abc"] == [NONE] * 3


def test_priorities_with_offsets_are_clamped() -> None:
    rm = rm_with(
        with_properties("a", priority_offset=str(INT32_MAX)),
        with_properties("b", priority_offset=str(INT32_MIN)),
    )
    submit(rm, "up", 5, into="root.a")
    submit(rm, "down", -5, into="root.b")
    assert published(rm, "root.a") == INT32_MAX
    assert published(rm, "root.b") == INT32_MIN + 1  # the lowest value means that nothing is pending


def test_priorities_of_fenced_tenants_and_system_queues() -> None:
    """Example of YuniKorn's documentation: fenced tenants, and system queues above and below them."""
    system = with_properties(
        "system",
        with_properties("low", priority_offset="-1000"),
        queue("normal"),
        with_properties("high", priority_offset="1000"),
    )
    tenants = queue(
        "tenants",
        with_properties("a", queue("a1"), queue("a2"), priority_policy="fence"),
        with_properties("b", queue("b1"), priority_policy="fence", priority_offset="10"),
    )
    rm = rm_with(system, tenants)
    for app, path, priority in (
        ("system-low", "root.system.low", 3),
        ("system-normal", "root.system.normal", 2),
        ("system-high", "root.system.high", 1),
        ("a1", "root.tenants.a.a1", 5000),
        ("a2", "root.tenants.a.a2", 6000),
        ("b1", "root.tenants.b.b1", -1),
    ):
        submit(rm, app, priority, into=path)
    assert published(rm, "root.system") == 1001
    assert published(rm, "root.system.low") == -997
    assert published(rm, "root.tenants.a.a2") == 6000
    assert published(rm, "root.tenants.a") == 0
    assert published(rm, "root.tenants.b") == published(rm, "root.tenants") == 10
    assert names(rm.schedule()) == ["system-high", "b1", "system-normal", "a2", "a1", "system-low"]


def test_offset_and_fence_are_not_inherited_but_the_order_is() -> None:
    rm = rm_with(
        with_properties(
            "p",
            queue("x"),
            priority_offset="5",
            priority_policy="fence",
            application_sort_priority="disabled",
        )
    )
    rm.app("one", "root.p.x")
    rm.ask("one", priority=7, memory=1)
    assert (published(rm, "root.p.x"), published(rm, "root.p")) == (7, 5)
    settings = rm.find_queue("root.p.x").settings
    assert (settings.priority_offset, settings.priority_fence) == (0, False)
    assert not settings.sort_priority


def test_priority_precedes_fairness_between_queues_unless_disabled() -> None:
    for setting, wanted in (("enabled", ["b", "b", "b", "a"]), ("disabled", ["b", "a", "b", "b"])):
        rm = rm_with(
            with_properties(
                "p",
                queue("a", resources={"guaranteed": {"memory": "10"}}),
                queue("b", resources={"guaranteed": {"memory": "10"}}),
                application_sort_priority=setting,
            )
        )
        submit(rm, "a", 0, into="root.p.a", count=1)
        submit(rm, "b", 3, into="root.p.b", count=3)
        assert names(rm.schedule()) == wanted, setting


def test_the_priority_of_a_queue_follows_every_change_of_its_requests() -> None:
    rm = rm_with(queue("p", queue("x")))
    path = "root.p.x"
    rm.app("app", path)
    rm.ask("app", "huge", priority=4, memory=5000)
    assert published(rm, "root.p") == 4
    rm.ask("app", "huge", priority=9, memory=5000)  # changed
    assert published(rm, "root.p") == 9
    rm.ask("app", "small", priority=20, memory=1)
    assert published(rm, "root.p") == 20
    rm.schedule()  # small is placed, huge does not fit
    assert published(rm, "root.p") == 9
    rm.release_ask("app", "huge")
    assert published(rm, "root.p") == NONE


def test_reload_changes_offsets_fences_and_orders_immediately() -> None:
    rm = rm_with(queue("a"), queue("b"))
    submit(rm, "a", 5, into="root.a", count=2)
    submit(rm, "b", 1, into="root.b", count=2)
    assert names(rm.schedule(1)) == ["a"]
    rm.reload(
        configuration(
            with_properties("a", priority_policy="fence"), with_properties("b", priority_offset="1")
        )
    )
    assert (published(rm, "root.a"), published(rm, "root.b")) == (0, 2)
    assert names(rm.schedule(1)) == ["b"]
    rm.reload(configuration(queue("a"), queue("b")))
    assert names(rm.schedule()) == ["a", "b"]


def test_allocations_do_not_raise_the_priority_of_a_queue() -> None:
    """Only pending asks count: a queue full of urgent allocations has no priority for that."""
    rm = rm_with(queue("a"), queue("b"))
    submit(rm, "urgent", 100, into="root.a")
    rm.schedule()
    rm.ask("urgent", "more", priority=0, memory=1)
    submit(rm, "b", 1, into="root.b")
    assert names(rm.schedule()) == ["b", "urgent"]
