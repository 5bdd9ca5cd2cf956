"""Tags that predicates commit with allocations, and their counts of room: what the RM gets, and failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Ask, Node, PermitPolicy, Predicate, Task, Wait
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource

SEAT = "example.com/seat"


class Seats(Predicate):
    """Two numbered seats on each node, for requests with the tag `seat`."""

    name = "seats"
    seats = 2

    def __init__(self) -> None:
        self.taken: dict[tuple[str, str], int] = {}
        self.calls: list[str] = []

    def check(self, ask: Ask, node: Node) -> str | None:
        return None if not ask.tags.get("seat") or self.free(node) else "no seat is free"

    def free(self, node: Node) -> list[str]:
        return [str(one) for one in range(self.seats) if (node.id, str(one)) not in self.taken]

    def commit(self, ask: Ask, node: Node) -> Mapping[str, str] | None:
        self.calls.append(ask.key)
        return {SEAT: self.free(node)[0]} if ask.tags.get("seat") else None

    def room(self, ask: Ask, node: Node) -> int | None:
        return len(self.free(node)) if ask.tags.get("seat") else None

    def placed(self, task: Task, node: Node) -> None:
        if task.tags.get("seat"):
            seat = task.tags.get(SEAT) or self.free(node)[0]
            self.taken[node.id, seat] = self.taken.get((node.id, seat), 0) + 1

    def released(self, task: Task, node: Node) -> None:
        if task.tags.get("seat"):
            # A request has the seat that was free: the last one of the node.
            seat = task.tags.get(SEAT) or max(seat for where, seat in self.taken if where == node.id)
            self.taken[node.id, seat] -= 1
            if not self.taken[node.id, seat]:
                del self.taken[node.id, seat]


class Broken(Seats):
    """Fails to commit the second allocation."""

    name = "broken"

    def commit(self, ask: Ask, node: Node) -> Mapping[str, str] | None:
        found = super().commit(ask, node)
        return found if len(self.calls) < 2 else {SEAT: 7}  # type: ignore[dict-item]


class Closed(Predicate):
    """Refuses requests with the tag `closed` everywhere."""

    name = "closed"

    def check(self, ask: Ask, node: Node) -> str | None:
        return "closed" if ask.tags.get("closed") else None


class Later(PermitPolicy):
    """Permits nothing."""

    name = "later"

    def permit(self, allocation: Any) -> Wait:
        return Wait(100, "later")


def ready(*names: str, kind: type[RM] = RM, nodes: int = 2, **partition: Any) -> Any:
    registry: Registry = with_plugins(predicates=[Seats, Broken], permit_policies=[Later])
    rm = kind(configuration(predicates=list(names or ["seats"]), **partition), registry)
    for number in range(nodes):
        rm.node(f"n{number}", {"rack": f"r{number}"}, vcore=8)
    rm.app()
    return rm


def seats(rm: RM) -> list[tuple[str, str]]:
    return sorted((one.node_id, one.allocation_tags.get(SEAT, "")) for one in rm.running.values())


def plugin(rm: Any) -> Any:
    (keeper,) = rm.at_work().orders.books.keepers
    return keeper.plugin


def test_the_rm_gets_the_tags_and_reports_them_after_a_restart() -> None:
    rm = ready()
    rm.ask(count=5, vcore=1, tags={"seat": "yes"})
    rm.schedule()
    assert seats(rm) == [("n0", "0"), ("n0", "1"), ("n1", "0"), ("n1", "1")]
    assert all(one.allocation_tags["seat"] == "yes" for one in rm.running.values())
    assert len(plugin(rm).calls) == 4
    again = ready()
    again.update(allocations=[one for one in rm.running.values() if one.node_id == "n0"])
    assert plugin(again).taken == {("n0", "0"): 1, ("n0", "1"): 1}
    again.ask(count=5, vcore=1, tags={"seat": "yes"})
    again.schedule()
    assert [one for one in seats(again) if one[0] == "n1"] == [("n1", "0"), ("n1", "1")]


def test_requests_without_tags_keep_theirs_alone() -> None:
    rm = ready()
    rm.ask(count=3, vcore=1, tags={"zone": "a"})
    rm.schedule()
    assert [one.allocation_tags for one in rm.running.values()] == [{"zone": "a"}] * 3


def test_a_released_seat_is_given_again() -> None:
    rm = ready(nodes=1)
    rm.ask(count=3, vcore=1, tags={"seat": "yes"})
    rm.schedule()
    first = next(uuid for uuid, one in rm.running.items() if one.allocation_tags[SEAT] == "0")
    rm.release(uuid=first)
    rm.pass_time(60)
    rm.schedule()
    assert seats(rm) == [("n0", "0"), ("n0", "1")]


def test_members_of_a_gang_are_committed_one_after_the_other() -> None:
    rm = ready(kind=GangRM, nodes=1)
    rm.gang("gang", "Atomic", vcore=2)
    rm.task("gang", "one", "group", vcore=1, tags={"seat": "yes"})
    rm.task("gang", "two", "group", vcore=1, tags={"seat": "yes"})
    rm.schedule()
    assert seats(rm) == [("n0", "0"), ("n0", "1")]
    assert plugin(rm).calls == ["one", "two"]


def test_a_held_placement_has_its_tags() -> None:
    rm = ready(permits=["later"])
    rm.ask(vcore=1, tags={"seat": "yes"})
    rm.schedule()
    assert seats(rm) == []
    assert plugin(rm).taken == {("n0", "0"): 1}


def test_a_predicate_that_fails_to_commit_allocates_nothing_any_more() -> None:
    rm = ready("broken")
    rm.app("other")
    rm.ask(count=4, vcore=1, tags={"seat": "yes"})
    rm.ask("other", "plain", vcore=1)
    rm.schedule()
    assert seats(rm) == [("n0", "0")]
    rm.schedule()
    assert plugin(rm).calls == ["ask", "ask"]
    (failure,) = rm.scheduler.failures
    assert "instead of two texts" in str(failure)


def test_a_gang_whose_second_member_fails_is_not_placed() -> None:
    rm = ready("broken", kind=GangRM)
    rm.gang("gang", "Atomic", vcore=2)
    rm.task("gang", "one", "group", vcore=1, tags={"seat": "yes"})
    rm.task("gang", "two", "group", vcore=1, tags={"seat": "yes"})
    rm.schedule()
    assert not rm.running


def test_an_allocation_of_the_rm_is_not_committed() -> None:
    rm = ready()
    rm.ask(vcore=1, tags={"seat": "yes"})
    rm.update(allocations=[Allocation("ask", "app", "u1", "n1", Resource(vcore=1))])
    assert plugin(rm).calls == []


@pytest.mark.parametrize(("seated", "rack"), [(0, "r0"), (1, "r1")])
def test_room_counts_for_the_domain_of_a_gang(seated: int, rack: str) -> None:
    rm = ready(kind=GangRM, topology=["rack"])
    if seated:
        rm.ask(count=seated, vcore=1, tags={"seat": "yes"})
    rm.schedule()
    tags = {"yunikorn.apache.org/gang-topology": '{"required": "rack"}'}
    rm.gang("gang", "Atomic", vcore=2, tags=tags)
    for key in ("one", "two"):
        rm.task("gang", key, "group", vcore=1, tags={"seat": "yes"})
    rm.schedule()
    made = [one.node_id for one in rm.running.values() if one.application_id == "gang"]
    assert made == [f"n{rack[1:]}"] * 2
    assert len(plugin(rm).calls) == seated + 2


@pytest.mark.parametrize("answer", [-1, True, "2", 1.5])
def test_a_wrong_count_is_no_room(answer: Any) -> None:
    class Wrong(Seats):
        name = "wrong"

        def room(self, ask: Ask, node: Node) -> Any:
            return answer

    rm = GangRM(configuration(predicates=["wrong"], topology=["rack"]), with_plugins(predicates=[Wrong]))
    rm.node("n0", {"rack": "r0"}, vcore=8)
    rm.gang("gang", "Atomic", vcore=2, tags={"yunikorn.apache.org/gang-topology": '{"required": "rack"}'})
    rm.task("gang", "one", "group", 2, vcore=1)
    rm.schedule()
    assert not rm.running
    (failure,) = rm.scheduler.failures
    assert "room" in str(failure)


def test_request_that_lacks_only_what_victims_have_preempts_one_of_them() -> None:
    owner = queue("a", resources={"guaranteed": {"vcore": 16}})
    registry = with_plugins(predicates=[Seats])
    rm = RM(configuration(owner, queue("b"), predicates=["seats"]), registry)
    for number in range(2):
        rm.node(f"n{number}", vcore=8)
    rm.app("low", "root.b")
    rm.ask("low", "standing", 4, vcore=1)
    rm.ask("low", "seated", 4, tags={"seat": "yes"}, vcore=1)
    assert len(rm.schedule()) == 8
    rm.app("high", "root.a")
    rm.ask("high", "also", tags={"seat": "yes"}, vcore=1)
    rm.schedule()
    rm.pass_time(31)
    rm.schedule()
    (victim,) = rm.evicted.values()
    assert victim.allocation_key == "seated"
    rm.confirm()
    ((_, key, _),) = rm.schedule()
    assert key == "also"


def test_refusal_by_another_predicate_preempts_nothing() -> None:
    owner = queue("a", resources={"guaranteed": {"vcore": 16}})
    registry = with_plugins(predicates=[Seats, Closed])
    rm = RM(configuration(owner, queue("b"), predicates=["seats", "closed"]), registry)
    rm.node("n0", vcore=8)
    rm.app("low", "root.b")
    rm.ask("low", "standing", 4, vcore=1)
    assert len(rm.schedule()) == 4
    rm.app("high", "root.a")
    rm.ask("high", "closed", tags={"closed": "yes"}, vcore=1)
    for _ in range(3):
        rm.pass_time(31)
        rm.schedule()
    assert rm.evicted == {}


def test_originator_with_a_seat_is_spared_where_another_seat_can_be_had() -> None:
    owner = queue("a", resources={"guaranteed": {"vcore": 16}})
    rm = RM(configuration(owner, queue("b"), predicates=["seats"]), with_plugins(predicates=[Seats]))
    rm.node("n0", vcore=8)
    rm.app("low", "root.b")
    rm.ask("low", "other", tags={"seat": "yes"}, vcore=1)
    rm.ask("low", "driver", tags={"seat": "yes"}, originator=True, vcore=1)
    assert len(rm.schedule()) == 2
    rm.app("high", "root.a")
    rm.ask("high", "also", tags={"seat": "yes"}, vcore=1)
    rm.schedule()
    rm.pass_time(31)
    rm.schedule()
    assert [one.allocation_key for one in rm.evicted.values()] == ["other"]
