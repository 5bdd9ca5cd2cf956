"""One call of `schedule` makes all decisions that are possible: a second call at the same time finds none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any
from unittest import mock

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue, with_plugins
from tests.core.test_atomic_gangs import PATIENCE, cluster, fill, gang
from yunikorn.api import Application, AppSortPolicy, Context
from yunikorn.clock import SECOND
from yunikorn.model.context import Timeouts
from yunikorn.scheduling.atomic_gangs import AtomicGangs

TIMEOUTS = Timeouts(gang_patience=PATIENCE * SECOND, reservation=2 * SECOND)


def test_overdue_gang_takes_the_node_of_a_reservation_that_ends() -> None:
    rm = cluster(queue("a"), timeouts=TIMEOUTS)
    fill(rm, 7, "root.a")
    rm.app("large", "root.a")
    rm.ask("large", "l", vcore=3)
    rm.schedule()
    rm.pass_time(3)
    rm.schedule()
    (reserved,) = [node for node in rm.at_work().partition.nodes.values() if node.reservations]
    assert reserved.available == {"vcore": 1}
    gang(rm, "gang", 1)
    assert rm.schedule() == []
    rm.pass_time(PATIENCE)
    for one in [one for one in rm.running.values() if one.node_id != reserved.id][:3]:
        rm.release("filler", one.uuid)
    # The large request runs on the other node, so that its reservation ends.
    assert rm.schedule() == [("large", "l", "n1"), ("gang", "gang-m", reserved.id)]
    assert rm.schedule() == []


@pytest.mark.parametrize("removed", [True, False], ids=["application", "asks"])
def test_request_that_an_overdue_gang_held_back_reserves_when_the_gang_ends(removed: bool) -> None:
    policy = {"policy": "standard", "delay": PATIENCE + 20, "total": 5}
    capped = queue("a", resources={"max": {"vcore": "4m"}})
    rm = cluster(capped, queue("b"), timeouts=TIMEOUTS, reservations=policy)
    fill(rm, 7)
    fill(rm, 1, "root.a", "own")
    gang(rm, "gang", 4)
    rm.app("late", "root.a")
    rm.ask("late", "large", vcore=3)
    assert rm.schedule() == []
    rm.pass_time(PATIENCE)
    assert rm.schedule() == []
    # The delay of the request ends while the gang has precedence in the queue.
    rm.pass_time(30)
    assert rm.schedule() == []
    reserved = [node.reservations for node in rm.at_work().partition.nodes.values()]
    assert not any(reserved)
    if removed:
        rm.remove_app("gang")
    else:
        rm.release_ask("gang")
    rm.schedule()
    assert [ask.key for asks in reserved for ask in asks] == ["large"]


def test_search_ends_where_a_gang_holds_back_a_queue_and_a_policy_excludes_applications() -> None:
    looks = []
    original = AtomicGangs.look

    def look(atomic: AtomicGangs, *arguments: Any) -> None:
        looks.append(1)
        assert len(looks) < 100, "the search does not end"
        original(atomic, *arguments)

    capped = queue("a", resources={"max": {"memory": "4"}})
    aware = queue("e", properties={"application.sort.policy": "stateaware"})
    policy = {"policy": "standard", "total": 2}
    rm = GangRM(configuration(capped, aware, reservations=policy), timeouts=TIMEOUTS)
    rm.node("n1", memory=10)
    rm.app("busy", "root.a")
    rm.ask("busy", "running", memory=2)
    rm.gang("gang", "Atomic", memory=4)
    for number in range(4):
        rm.task("gang", f"member-{number}", "group", memory=1)
    assert rm.schedule() == [("busy", "running", "n1")]
    rm.pass_time(PATIENCE + 1)
    assert rm.schedule() == []
    for name in ("one", "two"):
        rm.app(name, "root.e")
        rm.ask(name, f"{name}-ask", memory=1)
    with mock.patch.object(AtomicGangs, "look", look):
        assert rm.schedule() == [("one", "one-ask", "n1")]
        assert rm.schedule() == []
    assert looks


@pytest.mark.parametrize("capped", [False, True], ids=["nodes", "quota"])
@pytest.mark.parametrize("below", ["", ".leaf"], ids=["leaf", "parent"])
def test_request_before_an_overdue_gang_reserves_and_one_after_it_does_not(capped: bool, below: str) -> None:
    """The order is that of arrival. Without a node, the first request starves beside smaller ones."""
    policy = {"policy": "standard", "delay": PATIENCE + 20, "total": 5}
    resources = {"resources": {"max": {"vcore": "4m"}}} if capped else {}
    leaf = queue("leaf") if below else None
    top = queue("a", queues=[leaf], **resources) if leaf else queue("a", **resources)
    rm = cluster(top, queue("b"), timeouts=TIMEOUTS, reservations=policy)
    name = f"root.a{below}"
    fill(rm, 7)
    fill(rm, 1, name, "own")
    rm.app("early", name)
    rm.ask("early", "large", vcore=3)
    gang(rm, "gang", 4, name)
    rm.app("late", name)
    rm.ask("late", "medium", vcore=2)
    assert rm.schedule() == []
    reserved = [node.reservations for node in rm.at_work().partition.nodes.values()]
    for seconds in (PATIENCE, 15):
        rm.pass_time(seconds)
        assert rm.schedule() == []
        assert not any(reserved)
    rm.pass_time(10)
    assert rm.schedule() == []
    assert [ask.key for asks in reserved for ask in asks] == ["large"]
    rm.pass_time(1000)
    assert rm.schedule() == []
    assert [ask.key for asks in reserved for ask in asks] == ["large"]
    (host,) = [node for node in rm.at_work().partition.nodes.values() if node.reservations]
    here = [one for one in rm.running.values() if one.node_id == host.id and one.application_id == "filler"]
    for one in here[:3]:
        rm.release("filler", one.uuid)
    assert rm.schedule() == [("early", "large", host.id)]


class Turns(AppSortPolicy):
    """Admits one application, and another one from the second minute on."""

    name = "turns"
    refresh_every = 60.0

    def opened(self, context: Context) -> None:
        self.context = context

    def key(self, app: Application) -> bool:
        return (app.id == "late") == (self.context.now() < 100 * SECOND)

    def admission_class(self, app: Application) -> Hashable:
        return "all"

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int]:
        return {"all": 1}


def test_request_of_an_application_that_is_admitted_later_reserves() -> None:
    turns = queue("a", properties={"application.sort.policy": "turns"})
    policy = {"policy": "standard", "delay": 1, "perqueue": 1}
    text = configuration(turns, queue("b"), reservations=policy)
    rm = GangRM(text, with_plugins(app_sort_policies=[Turns]))
    rm.node("n1", vcore=4)
    rm.node("n2", vcore=4)
    fill(rm, 2, "root.a", "first")
    fill(rm, 5)
    rm.app("other", "root.b")
    rm.ask("other", "medium", vcore=2)
    # The bound of the queue leaves this request without a reservation, and its like wait with it.
    rm.ask("other", "large", vcore=3)
    rm.app("late", "root.a")
    rm.ask("late", "alike", vcore=3)
    for seconds in (2, 60):
        rm.pass_time(seconds)
        rm.schedule()
    reserved = [node.reservations for node in rm.at_work().partition.nodes.values()]
    assert [ask.key for asks in reserved for ask in asks] == ["medium"]
    rm.pass_time(60)
    rm.schedule()
    assert sorted(ask.key for asks in reserved for ask in asks) == ["alike", "medium"]
