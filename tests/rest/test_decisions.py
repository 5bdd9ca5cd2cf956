"""Route of the recent decisions, and the store behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from tests.plugins.permit_kit import Gate, clear
from tests.rest.kit import Rest
from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Ask, Event, Node, Predicate, Wait
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import PreemptionPolicy
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.context import Timeouts
from yunikorn_rest import decision_store
from yunikorn_rest.decision_store import Decision, DecisionStore, Wish
from yunikorn_rest.event_store import EventStore

_ = pytest.fixture(autouse=True)(clear)
SOURCE = ("rm", "default")


class RestContext:
    """A resource manager, and the routes over the decisions about its applications."""

    def __init__(
        self,
        config: str = "",
        registry: Registry | None = None,
        timeouts: Timeouts | None = None,
        kind: type[RM] = RM,
    ) -> None:
        store = EventStore("instance", decisions=DecisionStore())
        self.scheduler = Scheduler(
            registry or Registry.load(third_party=False), ManualClock(), timeouts, event_receiver=store
        )
        self.rm = kind(config or configuration(), scheduler=self.scheduler)
        self.rest = Rest(self.rm, store)

    def ask(self, query: str = "") -> list[dict[str, Any]]:
        self.scheduler.schedule(0)
        found: list[dict[str, Any]] = self.rest.json(f"partition/default/decisions{query}")
        return found

    def said(self, query: str = "") -> list[tuple[str, str, str, str]]:
        """Return kind, request, node and message of each decision, oldest first."""
        return [
            (one["decision"], one.get("allocationKey", ""), one.get("nodeID", ""), one.get("message", ""))
            for one in reversed(self.ask(query))
        ]


def test_shape() -> None:
    site = RestContext()
    site.rm.pass_time(1)
    site.rm.node(vcore=4)
    site.rm.app()
    site.rm.ask(vcore=1)
    site.rm.schedule()
    (uuid,) = site.rm.running
    place = {"rmID": "rm", "partition": "default", "applicationID": "app", "queueName": "root.a"}
    assert site.ask() == [
        {
            "time": SECOND,
            "decision": "placed",
            **place,
            "nodeID": "n1",
            "allocationKey": "ask",
            "allocationID": uuid,
            "message": "the first suitable node",
            "resource": {"vcore": 1},
        },
        {"time": SECOND, "decision": "accepted", **place, "message": "placed in the queue"},
    ]


class Never(Predicate):
    """Refuses all nodes."""

    name = "never"

    def check(self, ask: Ask, node: Node) -> str | None:
        return None if ask.tags.get("fits") else "no <b>luck</b>"


def test_refused_requests_and_applications() -> None:
    site = RestContext(
        configuration(queue("a", resources={"max": {"vcore": "2"}}), predicates=["never"]),
        with_plugins(predicates=[Never]),
    )
    rm = site.rm
    rm.node(vcore=4000)
    rm.app()
    rm.app("lost", "root.none")
    rm.ask("app", "never", vcore=1000)
    rm.schedule()
    rm.ask("app", "large", vcore=3000)
    rm.schedule()
    kinds = {(one[0], one[1]): one[3] for one in site.said()}
    assert list(kinds) == [("accepted", ""), ("rejected", ""), ("refused", "never"), ("refused", "large")]
    assert "queue root.none does not exist" in kinds["rejected", ""]
    assert kinds["refused", "never"] == "Unschedulable request 'never': no <b>luck</b> (1x)"
    assert kinds["refused", "large"].startswith("Request 'large' does not fit in queue 'root.a'")
    assert [one["queueName"] for one in site.ask("?application=app")] == ["root.a"] * 3
    # Markup is escaped, as in all answers.
    assert "<b>" not in site.rest.get("partition/default/decisions").text


def test_preempted_for_whom() -> None:
    queues = [queue(name, resources={"guaranteed": {"vcore": "2"}}) for name in ("a", "b")]
    site = RestContext(configuration(*queues))
    rm = site.rm
    rm.policy = PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
    rm.node("n1", vcore=4000)
    rm.app("victim", "root.a")
    rm.ask("victim", "v", 4, vcore=1000)
    rm.schedule()
    rm.app("needy", "root.b")
    rm.ask("needy", "urgent", vcore=1000)
    rm.pass_time(60)
    rm.schedule()
    rm.confirm()
    rm.schedule()
    assert [one for one in site.said("?application=victim") if one[0] not in ("placed", "accepted")] == [
        ("preempted", "v", "n1", "Preempted by urgent from application needy in root.b"),
        ("ended", "v", "n1", "preempting allocations to free up resources to run ask: urgent"),
    ]
    assert [one[0] for one in site.said("?application=needy")] == [
        "accepted",
        "reserved",
        "refused",
        "unreserved",
        "placed",
    ]


def test_gang() -> None:
    site = RestContext(kind=GangRM)
    rm = site.rm
    assert isinstance(rm, GangRM)
    rm.node(vcore=4)
    rm.gang("app", vcore=2)
    rm.task("app", "place", "group", 2, placeholder=True, vcore=1)
    rm.schedule()
    rm.task("app", "real", "group", vcore=1)
    rm.schedule()
    rm.confirm()
    rm.pass_time(15 * 60 + 1)
    rm.confirm()
    found = site.said("?application=app")
    assert found[:5] == [
        ("accepted", "", "", "placed in the queue"),
        ("placeholder placed", "place", "n1", "for the task group group"),
        ("placeholder placed", "place", "n1", "for the task group group"),
        ("placed", "real", "n1", "in place of a placeholder of the task group group"),
        ("placeholder replaced", "place", "n1", "replaced by real"),
    ]
    assert found[5][:3] == ("timed out", "place", "n1")


def test_held_and_permitted_placements() -> None:
    site = RestContext(configuration(queue("a"), permits=["gate"]), with_plugins(permit_policies=[Gate]))
    Gate.answers["ask"] = Wait(5, "the disk is prepared")
    rm = site.rm
    rm.node(vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    Gate.answers["ask"] = None
    rm.pass_time(6)
    rm.schedule()
    kinds = [one[0] for one in site.said("?node=n1")]
    assert kinds == ["held", "permitted", "placed"]


def test_held_applications_and_failed_ones() -> None:
    site = RestContext(configuration(queue("a", maxapplications=1)))
    rm = site.rm
    rm.node(vcore=4)
    for app in ("app", "second"):
        rm.app(app)
        rm.ask(app, vcore=1)
        rm.schedule()
    assert [one[0] for one in site.said("?application=second")] == ["accepted", "held"]
    rm.remove_app("app")
    rm.schedule()
    assert [one[0] for one in site.said("?application=app")] == ["accepted", "placed", "ended", "left"]
    assert [one[0] for one in site.said("?application=second")] == ["accepted", "held", "placed"]


def test_allocations_that_existed_before() -> None:
    site = RestContext()
    other = RestContext()
    other.rm.node(vcore=4)
    other.rm.app()
    other.rm.ask(vcore=1)
    other.rm.schedule()
    site.rm.app()
    site.rm.node(vcore=4, existing=list(other.rm.running.values()))
    assert ("recovered", "ask", "n1", "reported by the resource manager") in site.said("?application=app")


# -- filters -------------------------------------------------------------------------------------------


def busy() -> RestContext:
    site = RestContext(configuration(queue("a", queue("b"), queue("c")), queue("aa")))
    for node in ("n1", "n2"):
        site.rm.node(node, vcore=20)
    for path in ("root.a.b", "root.a.c", "root.aa"):
        site.rm.app(path, path)
        site.rm.ask(path, f"of {path}", 10, vcore=1)
    site.rm.schedule()
    return site


@pytest.mark.parametrize(
    ("query", "queues"),
    [
        ("", ["root.a.b", "root.a.c", "root.aa"]),
        ("?queue=root.a", ["root.a.b", "root.a.c"]),
        ("?queue=ROOT.A.B", ["root.a.b"]),
        ("?queue=root.aa&application=root.aa", ["root.aa"]),
        ("?queue=root.aa&application=root.a.b", []),
        ("?application=unknown", []),
        ("?node=n1&application=root.a.b", ["root.a.b"]),
    ],
)
def test_filters(query: str, queues: Sequence[str]) -> None:
    assert sorted({one["queueName"] for one in busy().ask(query)}) == list(queues)


def test_decisions_about_a_node() -> None:
    found = busy().ask("?node=n2")
    assert {one["nodeID"] for one in found} == {"n2"}
    assert len(found) == len([one for one in busy().ask() if one.get("nodeID") == "n2"]) > 0


def test_limit() -> None:
    site = busy()
    every = site.ask()
    assert len(every) == 33
    assert site.ask("?limit=5") == every[:5]
    assert len(site.ask("?limit=99999999")) == 33


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("partition/none/decisions", (404, "Partition not found")),
        ("partition/default/decisions?limit=0", (400, 'limit: expected a whole number from 1 on, got "0"')),
        ("partition/default/decisions?limit=x", (400, 'limit: expected a whole number from 1 on, got "x"')),
    ],
)
def test_errors(path: str, error: tuple[int, str]) -> None:
    assert RestContext().rest.error(path) == error


def test_invalid_queue() -> None:
    status, message = RestContext().rest.error("partition/default/decisions?queue=root.a%20b")
    assert (status, message[:18]) == (400, "invalid queue name")


def test_without_events_there_are_no_decisions() -> None:
    rest = Rest(RM(), EventStore("instance"))
    assert rest.error("partition/default/decisions") == (500, "Event tracking is disabled")


def test_partitions_and_resource_managers_are_told_apart() -> None:
    site = RestContext(document(partition(queue("a")), partition(queue("a"), name="gpu")))
    other = RM(configuration(), rm_id="other", scheduler=site.scheduler)
    for rm, name in ((site.rm, ""), (site.rm, "gpu"), (other, "")):
        rm.app(f"{rm.rm_id}-{name}", partition_name=name)
    rest, found = site.rest, {}
    site.scheduler.schedule(0)
    for name in ("default", "gpu", "[other]default"):
        (one,) = rest.json(f"partition/{name}/decisions")
        found[name] = one["applicationID"], one["rmID"], one["partition"]
    assert found == {
        "default": ("rm-", "rm", "default"),
        "gpu": ("rm-gpu", "rm", "gpu"),
        "[other]default": ("other-", "other", "default"),
    }


# -- the store -----------------------------------------------------------------------------------------


def event(number: int, *, usual: bool) -> Event:
    """Return an event of a placement, or of a refusal."""
    made = Event("APP", "", detail="APP_ALLOC") if usual else Event("REQUEST", "", reason="Unschedulable")
    return attrs.evolve(
        made,
        timestamp=number,
        application_id=f"app-{number % 7}",
        queue=f"root.q{number % 3}",
        node_id=f"n{number % 5}",
    )


WISHES = st.builds(
    Wish,
    st.just(SOURCE),
    st.sampled_from(["", "app-0", "app-3"]),
    st.sampled_from(["", "root", "root.q1"]),
    st.sampled_from(["", "n2"]),
)


def times(store: DecisionStore, wish: Wish) -> list[int]:
    return [one.time for one in store.search(wish) if one is not None]


@given(
    st.lists(st.lists(st.booleans(), max_size=7), max_size=10),
    st.integers(1, 60),
    st.lists(WISHES, max_size=3),
)
def test_store_is_the_end_of_a_list(batches: list[list[bool]], capacity: int, wishes: list[Wish]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decision_store, "BLOCK", 4)
        store, every = DecisionStore(capacity), list[Decision]()
        for batch in batches:
            events = [event(len(every) + at, usual=usual) for at, usual in enumerate(batch)]
            store.append(EventBatch(events, source=SOURCE))
            single = DecisionStore()
            single.append(EventBatch(events, source=SOURCE))
            found = [one for one in single.search(Wish(SOURCE)) if one is not None]
            every += reversed(found)
            for wish in wishes[len(every) % 2 :]:
                times(store, wish)
        held = [one for one in store.search(Wish(SOURCE)) if one is not None]
        assert len(held) == len(store) <= capacity + 4 * 4
        # What is kept is the end, and unusual decisions before that.
        latest = [one.time for one in reversed(every)]
        recent = min(len(every), capacity - capacity // 5)
        assert [one.time for one in held[:recent]] == latest[:recent]
        assert times(store, Wish(SOURCE)) == sorted((one.time for one in held), reverse=True)
        for wish in wishes:
            assert times(store, wish) == [one.time for one in held if wish.takes(one)]


def test_refusals_remain_longer_than_placements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_store, "BLOCK", 10)
    store = DecisionStore(100)
    store.append(EventBatch([event(1, usual=False)], source=SOURCE))
    for number in range(10, 1000, 10):
        store.append(EventBatch([event(number + at, usual=True) for at in range(10)], source=SOURCE))
    found = times(store, Wish(SOURCE))
    assert found[-1] == 1
    assert found[-2] > 800


def test_store_can_change_its_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_store, "BLOCK", 5)
    store = DecisionStore(100)
    for number in range(100):
        store.append(EventBatch([event(number, usual=True)], source=SOURCE))
    store.resize(20)
    assert times(store, Wish(SOURCE))[:16] == list(range(99, 83, -1))
    assert len(store) <= 30
    with pytest.raises(ValueError, match="at least 1 decision"):
        DecisionStore(0)


def test_question_about_one_application_looks_at_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    store, looked = DecisionStore(), list[int]()
    for number in range(20_000):
        one = attrs.evolve(event(number, usual=True), application_id=f"app-{number // 1000}")
        store.append(EventBatch([one], source=SOURCE))
    wish = Wish(SOURCE, "app-3")
    assert len(times(store, wish)) == 1000
    made = decision_store.decisions_in

    def count(*arguments: Any) -> list[Decision]:
        looked.append(1)
        return made(*arguments)

    monkeypatch.setattr(decision_store, "decisions_in", count)
    assert len(times(store, wish)) == 1000
    # The block of this application, and the last one.
    assert len(looked) <= 2 * decision_store.BLOCK
