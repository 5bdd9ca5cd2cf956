"""Events of applications, queues and nodes that sinks receive, from the first to the last."""

from __future__ import annotations

from tests.core.event_collector import EventCollector
from tests.core.kit import partition, queue
from yunikorn.interface.messages import NodeAction

PROVIDED = [{"name": "provided"}]


def reported(collector: EventCollector, kind: str, object_id: str) -> list[tuple[str, str, str]]:
    """Return change, detail and reference of all events of an object, oldest first."""
    return [
        (one.change, one.detail, one.reference_id)
        for one in collector.events
        if one.type == kind and one.object_id == object_id
    ]


def test_all_changes_of_an_application_are_events() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a")))
    rm.node("n1", vcore=2)
    rm.app("app")
    rm.ask("app", "task", vcore=1)
    rm.schedule()
    task = rm.entries("new_allocations")[0].uuid
    rm.release("app", task)
    rm.pass_time(31)
    rm.pass_time(3 * 24 * 3600)
    assert reported(collector, "APP", "app") == [
        ("ADD", "APP_NEW", ""),
        ("SET", "APP_ACCEPTED", ""),
        ("ADD", "APP_REQUEST", "task"),
        ("SET", "APP_STARTING", ""),
        ("ADD", "APP_ALLOC", task),
        ("REMOVE", "ALLOC_CANCEL", task),
        ("SET", "APP_COMPLETING", ""),
        ("SET", "APP_COMPLETED", ""),
        ("REMOVE", "DETAILS_NONE", ""),
        ("SET", "APP_EXPIRED", ""),
    ]


def test_removed_application_has_one_removal_event() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a")))
    rm.app("app")
    rm.remove_app("app")
    assert reported(collector, "APP", "app") == [("ADD", "APP_NEW", ""), ("REMOVE", "DETAILS_NONE", "")]
    assert collector.messages("app") == ["Application app Removed"]


def test_rejected_application_has_a_new_event_first() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a"), placementrules=PROVIDED))
    rm.app("app", "root.b")
    rm.app("other", "root.a", user="")
    for app_id in ("app", "other"):
        assert reported(collector, "APP", app_id) == [("ADD", "APP_NEW", ""), ("SET", "APP_REJECT", "")]


def test_queues_of_the_first_configuration_are_events() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("p", queue("a", resources={"max": {"vcore": "1"}}))))
    rm.node("n1", vcore=2)
    for path in ("root", "root.p"):
        assert reported(collector, "QUEUE", path) == [("ADD", "DETAILS_NONE", "")]
    assert reported(collector, "QUEUE", "root.p.a") == [("ADD", "DETAILS_NONE", ""), ("SET", "QUEUE_MAX", "")]


def test_removed_node_has_events_for_its_allocations() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a")))
    rm.node("n1", vcore=2)
    rm.app("app")
    rm.ask("app", "task", vcore=1)
    rm.schedule()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    ends = collector.of("ALLOC_NODEREMOVED", "ALLOC_CANCEL")
    assert [end[2:] for end in ends] == [("REMOVE", "ALLOC_NODEREMOVED")]


def test_over_quota_ask_has_one_event_and_another_when_there_is_room() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a", resources={"max": {"vcore": "3m"}})))
    rm.node("n1", vcore=9)
    rm.app("app")
    rm.ask("app", "one", vcore=1)
    rm.ask("app", "two", vcore=2)
    rm.schedule()
    one, two = (allocation.uuid for allocation in rm.entries("new_allocations"))
    rm.ask("app", "waits", vcore=3)
    rm.schedule()
    over = "Request 'waits' does not fit in queue 'root.a' (requested vcore 3m, available vcore 0)"
    assert collector.messages("waits") == [over]
    rm.release("app", one)
    rm.schedule()
    assert collector.messages("waits") == [over]
    rm.release("app", two)
    rm.schedule()
    room = "Request 'waits' has become schedulable in queue 'root.a'"
    assert collector.messages("waits") == [over, room]
