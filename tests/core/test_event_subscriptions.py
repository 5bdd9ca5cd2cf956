"""Events by subscription: what a sink wants is made, sent to it alone, and nothing else is made."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.kit import RM, document, partition, queue, with_plugins
from tests.documentation.pages import CHECKOUT
from tests.example_counts import examples
from yunikorn.api import Context, Event, EventSink
from yunikorn.errors import OptionError
from yunikorn.event_types import DETAILS_OF_TYPE, EventDetail, EventType
from yunikorn.framework.event_wants import read_wants
from yunikorn.framework.registry import Registry


def sink_class(wanted: Any, called: str = "listed") -> type[Any]:
    """Return a sink class that wants these events and lists its batches."""

    class Listed(EventSink):
        name = called
        wants = wanted
        batches: list[Sequence[Event]] = []  # noqa: RUF012  # one class for each test

        def send(self, batch: Sequence[Event]) -> None:
            self.batches.append(batch)

        @classmethod
        def events(cls) -> list[Event]:
            return [event for batch in cls.batches for event in batch]

    return Listed


def cluster(*sinks: type[Any], limits: Sequence[Any] = ()) -> RM:
    text = document(
        partition(queue("a", limits=list(limits))), events={"sinks": [sink.name for sink in sinks]}
    )
    return RM(text, with_plugins(event_sinks=list(sinks)))


def work(rm: RM) -> None:
    """Place two tasks, end one, and leave one without room."""
    rm.node("n1", vcore=2)
    rm.app()
    for key in ("one", "two", "three"):
        rm.ask(key=key, vcore=1)
    rm.schedule()
    rm.release(key="one")
    rm.release_ask(key="three")


def test_each_sink_receives_only_what_it_wants_in_order() -> None:
    everything, apps = sink_class(None, "all"), sink_class(["APP"], "apps")
    placed = sink_class(("APP:APP_ALLOC", "NODE:NODE_ALLOC"), "placed")
    work(cluster(everything, apps, placed))
    events = everything.events()
    assert len(events) > 20
    assert apps.events() == [one for one in events if one.type == "APP"]
    assert placed.events() == [one for one in events if one.detail in ("APP_ALLOC", "NODE_ALLOC")]
    assert all(placed.batches), "a batch without wanted events is not sent"


def test_allocation_events_carry_application_queue_and_node() -> None:
    sink = sink_class(
        ("APP:APP_ALLOC", "APP:ALLOC_CANCEL", "NODE:NODE_ALLOC", "APP:APP_REQUEST", "APP:REQUEST_CANCEL")
    )
    work(cluster(sink))
    found = {(one.type, one.detail, one.application_id, one.queue, one.node_id) for one in sink.events()}
    assert found == {
        ("APP", "APP_REQUEST", "app", "root.a", ""),
        ("APP", "REQUEST_CANCEL", "app", "root.a", ""),
        ("APP", "APP_ALLOC", "app", "root.a", "n1"),
        ("NODE", "NODE_ALLOC", "app", "root.a", "n1"),
        ("APP", "ALLOC_CANCEL", "app", "root.a", "n1"),
    }


def test_nothing_is_made_that_no_sink_wants() -> None:
    rm = cluster(sink_class(()), sink_class(("APP:APP_REJECT", "PLUGIN"), "rejects"))
    recorder = rm.at_work().partition.changes.events
    assert recorder.enabled
    assert not any((recorder.wants_allocations, recorder.wants_usage, recorder.wants_asks))
    assert not any((recorder.wants_releases, recorder.wants_requests, recorder.wants_waiting))
    rm.node("n1", vcore=2)
    assert recorder.entries == []
    assert not cluster(sink_class(())).at_work().partition.changes.events.enabled


def test_reasons_can_be_wanted() -> None:
    sink = sink_class(("REQUEST:InsufficientQueueResources",))
    text = document(partition(queue("a", resources={"max": {"vcore": "1m"}})), events={"sinks": ["listed"]})
    rm = RM(text, with_plugins(event_sinks=[sink]))
    rm.node("n1", vcore=2)
    rm.app()
    rm.ask(key="k", vcore=2)
    rm.schedule()
    assert [one.reason for one in sink.events()] == ["InsufficientQueueResources"]


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (("APPS",), "no event type is called 'APPS', did you mean 'APP'?"),
        (
            ("APP:APP_ALOC",),
            "events of type APP have no detail or reason 'APP_ALOC', did you mean 'APP_ALLOC'?",
        ),
        (
            ("APP:NODE_ALLOC",),
            "events of type APP have no detail or reason 'NODE_ALLOC'; write 'NODE:NODE_ALLOC'",
        ),
        (("APP:",), "events of type APP have no detail or reason ''"),
        ("APP", "wants must be None or a collection such as ('APP', 'NODE:NODE_ALLOC'), it is 'APP'"),
        ((3,), "wants contains 3, which is not a text"),
    ],
)
def test_unknown_types_and_details_are_refused_at_registration(wanted: Any, problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_wants(wanted)
    assert problem in str(caught.value)
    registry = Registry()
    assert not registry.register(_plugin(sink_class(wanted)), "mine")
    assert "Listed: " in registry.broken[-1].reason
    assert problem in registry.broken[-1].reason


def _plugin(cls: type[Any]) -> object:
    from types import SimpleNamespace

    from yunikorn.api import hookimpl

    return SimpleNamespace(yunikorn_event_sinks=hookimpl(lambda: [cls]))


class Late(EventSink):
    """Decides in `opened` and `reloaded`."""

    name = "late"
    answers: list[Any]
    ended: list[str]

    def __init__(self) -> None:
        self._wants: Any = ()

    @property
    def wants(self) -> Any:
        if isinstance(self._wants, Exception):
            raise self._wants
        return self._wants

    def opened(self, context: Context) -> None:
        self._wants = self.answers.pop(0)

    def reloaded(self, context: Context) -> None:
        self._wants = self.answers.pop(0)

    def closed(self) -> None:
        self.ended.append("closed")

    def send(self, batch: Sequence[Event]) -> None:
        self.ended += [event.object_id for event in batch]


def late(*answers: Any) -> type[Late]:
    made: type[Late] = type("LateHere", (Late,), {"answers": list(answers), "ended": []})
    return made


def test_wants_are_read_after_opened_and_after_reloaded() -> None:
    sink = late(("NODE",), ("APP:APP_NEW",))
    rm = cluster(sink)
    rm.node("n1", vcore=1)
    rm.reload(document(partition(queue("a"), queue("b")), events={"sinks": ["late"]}))
    rm.node("n2", vcore=1)
    rm.app()
    assert list(dict.fromkeys(sink.ended)) == ["n1", "app"]


@pytest.mark.parametrize("wrong", [("NODES",), ValueError("no idea")])
def test_sink_without_valid_wants_is_switched_off_and_reported(wrong: Any) -> None:
    sink = late(wrong)
    rm = cluster(sink)
    rm.node("n1", vcore=1)
    (failure,) = rm.failures()
    assert "late of test-plugin (yunikorn-test 1.0)" in failure
    assert "reading its wants (the sink is switched off)" in failure
    assert sink.ended == ["closed"]


def test_batch_is_immutable_and_its_events_are_frozen() -> None:
    sink = sink_class(None)
    work(cluster(sink))
    batch = next(batch for batch in sink.batches if any(one.detail == "APP_ALLOC" for one in batch))
    for change in ("append", "clear", "__setitem__", "__delitem__", "sort"):
        assert not hasattr(batch, change)
    with pytest.raises(AttributeError):
        batch[0].message = "mine"
    (amount,) = {
        one.resource for one in batch if one.detail == "APP_ALLOC" and one.reference_id.startswith("one")
    }
    with pytest.raises(TypeError, match="does not change"):
        amount["vcore"] = 7
    assert list(batch) == list(batch)
    assert batch == list(batch)
    assert len(batch) == len(list(batch))
    assert batch[:2] == tuple(batch)[:2]


KIND_OF_CALL = {
    "_record": "REQUEST",
    "_of_key": "REQUEST",
    "permit": "REQUEST",
    "_report": "REQUEST",
    "noted": "APP",
    "remarked": "APP",
    "node_noted": "NODE",
}
"""Type of the events that are recorded by methods which get a detail or a reason as an argument."""


def recorded() -> set[tuple[str, str]]:
    """Return the pairs of a type and a constant detail or reason with which the source records events."""
    found = set()
    for folder in ("accounting", "scheduling"):
        for file in (CHECKOUT / "yunikorn" / folder).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text("utf-8"))):
                if not isinstance(call, ast.Call):
                    continue
                name = ast.unparse(call.func)
                kind = KIND_OF_CALL.get(name.rpartition(".")[2])
                if name.endswith(("events.record", "self._set")) and len(call.args) > 1:
                    kind = ast.unparse(call.args[0]).removeprefix("EventType.")
                if kind is not None:
                    given = (*call.args, *(one.value for one in call.keywords))
                    found |= {(kind, value) for one in given for value in named_by(one)}
    return found


def named_by(given: ast.expr) -> set[str]:
    """Return the details, or the reason, that an argument names."""
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return {given.value} if re.fullmatch("([A-Z][A-Za-z]+)+", given.value) else set()
    return {
        one.attr
        for one in ast.walk(given)
        if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "EventDetail"
    }


def test_every_recorded_event_is_of_a_known_type_and_detail() -> None:
    """The table that subscriptions are checked against has everything that the core records."""
    pairs = recorded() - {("QUEUE", "DETAILS_NONE")}
    assert len(pairs) >= 35
    assert {"NODE_CAPACITY", "QUEUE_MAX", "Unschedulable", "PermitWait", "BackOff"} <= {
        one for _, one in pairs
    }
    assert {
        (kind, detail) for kind, detail in pairs if detail not in DETAILS_OF_TYPE[EventType[kind]]
    } == set()
    listed = {detail for details in DETAILS_OF_TYPE.values() for detail in details}
    assert listed >= {str(one) for one in EventDetail} - {"DETAILS_NONE"}
    assert set(DETAILS_OF_TYPE) == set(EventType)


# -- usage of users and groups: the changes add up to the usage ------------------------------------------

GROUP_LIMIT = [{"limit": "group", "groups": ["dev"], "maxresources": {"vcore": "90"}}]
ASKED = {"ask": {"vcore": 2}, "gpu": {"gpu": 1}}


@settings(max_examples=examples(15), deadline=None)
@given(
    steps=st.lists(
        st.sampled_from(["ask", "gpu", "schedule", "one", "release", "reload", "ask", "schedule"]),
        max_size=25,
    ),
    limited=st.booleans(),
)
def test_changes_of_usage_add_up(steps: list[str], limited: bool) -> None:
    sink = sink_class(None)

    def text(maximum: int) -> str:
        root = queue("a", limits=GROUP_LIMIT if limited else [], resources={"max": {"vcore": str(maximum)}})
        return document(partition(root, queue("b")), events={"sinks": ["listed"]})

    rm = RM(text(100), with_plugins(event_sinks=[sink]))
    rm.node("n1", vcore=40, gpu=40)
    rm.app("x", "root.a", groups=["dev"])
    rm.app("y", "root.b")
    for number, step in enumerate(steps):
        if step in ASKED:
            rm.ask("xy"[number % 2], f"k{number}", resource=ASKED[step])
        elif step == "schedule":
            rm.schedule()
        elif step == "one":
            rm.scheduler.schedule(1)
        elif step == "release" and rm.running:
            uuid = min(rm.running)
            rm.release(rm.running[uuid].application_id, uuid)
        elif step == "reload":
            rm.reload(text(100 + number))
    lengths = [len(batch) for batch in sink.batches]
    usage: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for event in sink.events():
        if event.detail in ("UG_USER_RESOURCE", "UG_GROUP_RESOURCE"):
            assert event.resource in ASKED.values()
            book = usage[event.object_id, event.reference_id]
            (book.update if event.change == "ADD" else book.subtract)(dict(event.resource))
    for tracker in rm.at_work().partition.usage:
        booked = usage[tracker.name, tracker.path]
        assert booked == Counter({} if tracker.path == "root" else tracker.usage)
    assert lengths == [len(list(batch)) for batch in sink.batches]
