"""Events sent to the RM: their selection, form, and the effect of a callback that raises."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from tests.core.kit import RM, document, partition, queue
from tests.documentation.pages import CHECKOUT
from tests.shim_plugins.shim import Listening
from yunikorn.interface.messages import EventRecord, EventRecordType, PredicatesArgs, UpdateResponse


@pytest.fixture
def rm() -> Listening:
    rm = Listening(document(partition(queue("a"))))
    rm.node("n1", vcore=2)
    rm.app()
    rm.ask(key="k", vcore=1)
    rm.schedule()
    return rm


def of(rm: Listening, kind: EventRecordType, object_id: str) -> list[EventRecord]:
    return [one for one in rm.events if (one.type, one.object_id) == (kind, object_id)]


def test_rm_with_send_events_receives_events_without_configuration(rm: Listening) -> None:
    placed = [one for one in of(rm, EventRecordType.APP, "app") if one.reason == "APP_ALLOC"]
    assert placed == [
        EventRecord(
            EventRecordType.APP, "app", "root.a", "APP_ALLOC", f"ADD {next(iter(rm.running))} vcore 1m",
            rm.clock.now(),
        )
    ]  # fmt: skip


def test_the_group_of_an_application_is_its_queue_from_its_first_event_to_its_last(rm: Listening) -> None:
    rm.remove_app("app")
    assert {one.group_id for one in of(rm, EventRecordType.APP, "app")} == {"root.a"}
    reasons = [one.reason for one in of(rm, EventRecordType.APP, "app")]
    assert (reasons[0], reasons[-1]) == ("APP_NEW", "REMOVE")


def test_event_group_exists_as_long_as_its_application(rm: Listening) -> None:
    rm.release("app", next(iter(rm.running)))
    rm.pass_time(30 + 3 * 24 * 3600)
    last = of(rm, EventRecordType.APP, "app")[-1]
    assert (last.reason, last.group_id) == ("APP_EXPIRED", "root.a")


def test_the_group_of_a_request_is_its_application() -> None:
    rm = Listening(document(partition(queue("a", resources={"max": {"vcore": "1m"}}))))
    rm.node("n1", vcore=2)
    rm.app()
    rm.ask(key="k", vcore=2)
    rm.schedule()
    (record,) = of(rm, EventRecordType.REQUEST, "k")
    assert record.group_id == "app"
    assert record.message.startswith("Request 'k' does not fit in queue 'root.a'")
    assert record.reason == "InsufficientQueueResources"


class Picky(Listening):
    """Refuses asks named `hot`."""

    def predicates(self, args: PredicatesArgs) -> str | None:
        return "it is too warm" if args.allocation_key == "hot" else None


def test_ask_events_have_reasons() -> None:
    limits = [{"limit": "one user", "users": ["user"], "maxresources": {"vcore": "4m"}}]
    rm = Picky(document(partition(queue("a", resources={"max": {"vcore": "3m"}}))))
    rm.node("n1", vcore=9)
    rm.app()
    rm.ask(key="hot", vcore=1)
    rm.ask(key="runs", vcore=2)
    rm.ask(key="next", vcore=2)
    rm.schedule()
    rm.release_ask(key="hot")
    rm.release(key="runs")
    rm.schedule()
    rm.reload(document(partition(queue("a", limits=limits))))
    rm.ask(key="third", vcore=3)
    rm.schedule()
    rm.release(key="next")
    rm.schedule()
    reported = [(one.object_id, one.reason) for one in rm.events if one.type is EventRecordType.REQUEST]
    assert reported == [
        ("hot", "Unschedulable"),
        ("next", "InsufficientQueueResources"),
        ("next", "QueueResourcesAvailable"),
        ("third", "InsufficientUserQuota"),
        ("third", "UserQuotaAvailable"),
    ]


def test_no_event_is_recorded_without_a_change_a_detail_or_a_reason() -> None:
    calls = [
        (file.name, call.lineno, {keyword.arg for keyword in call.keywords})
        for folder in ("accounting", "scheduling")
        for file in (CHECKOUT / "yunikorn" / folder).rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "record"
        if call.args and ast.unparse(call.args[0]).startswith(("EventType.", "'"))
    ]
    assert {call[0] for call in calls} == {"changes.py", "request_events.py"}
    assert len(calls) > 15
    assert [call for call in calls if not call[2] & {"change", "detail", "reason"}] == []


def test_nodes_and_queues_have_no_group(rm: Listening) -> None:
    assert {
        one.group_id for one in rm.events if one.type in (EventRecordType.NODE, EventRecordType.QUEUE)
    } == {""}
    added = of(rm, EventRecordType.NODE, "n1")[0]
    assert (added.reason, added.message) == ("ADD", "ADD vcore 2m: Node added to the scheduler")


def test_rm_sink_can_be_disabled_or_ordered() -> None:
    rm = Listening(document(partition(queue("a")), plugins={"disable": ["event-sink:rm"]}))
    rm.node("n1", vcore=2)
    assert rm.events == []
    rm = Listening(document(partition(queue("a")), events={"sinks": ["rm", "log"]}))
    rm.node("n1", vcore=2)
    assert len(of(rm, EventRecordType.NODE, "n1")) == 2


def test_without_send_events_nothing_is_collected() -> None:
    rm = RM(document(partition(queue("a")), events={"sinks": ["rm"]}))
    assert not rm.at_work().partition.changes.events.enabled


class Deaf(Listening):
    """Fails on events while `broken`."""

    broken = True

    def send_events(self, events: Sequence[EventRecord]) -> None:
        if self.broken:
            raise OSError("the pipe is broken")
        super().send_events(events)


def test_rm_that_raises_receives_no_events_until_the_next_configuration() -> None:
    rm = Deaf(document(partition(queue("a"))))
    rm.node("n1", vcore=2)
    rm.node("n2", vcore=2)
    expected = "callback of resource manager rm: receiving events: OSError: the pipe is broken"
    assert rm.failures() == [expected]
    (failure,) = rm.scheduler.failures
    assert failure.count == 1
    assert rm.scheduler.session_state("rm") == "Running"
    assert [one.node_id for one in rm.entries("accepted_nodes")] == ["n1", "n2"]
    rm.broken = False
    rm.node("n3", vcore=2)
    assert rm.events == []
    rm.reload(document(partition(queue("a"), queue("b"))))
    rm.node("n4", vcore=2)
    assert of(rm, EventRecordType.NODE, "n4")


def test_events_precede_their_response(rm: Listening) -> None:
    before = len(rm.everything)
    rm.node("n2", vcore=1)
    kinds = [type(one) for one in rm.everything[before:]]
    assert kinds.index(EventRecord) < kinds.index(UpdateResponse)
