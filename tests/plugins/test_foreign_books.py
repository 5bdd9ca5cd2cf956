"""Foreign tasks in the books of plugins with `counts_foreign` (docs/decisions/archive/0117)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from tests.core.book_keepers import Ledger, Witness, check_books
from tests.core.kit import RM, configuration, plugin_with, with_plugins
from yunikorn import api
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource

PORT = "port"


class Ports(api.Predicate):
    """Accepts one task per port and node, foreign tasks included."""

    name = "ports"
    counts_foreign = True

    def __init__(self) -> None:
        self.taken: dict[tuple[str, str], list[api.Task]] = {}

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "the port is taken" if (ask.tags.get(PORT, ""), node.id) in self.taken else None

    def placed(self, task: api.Task, node: api.Node) -> None:
        if PORT in task.tags:
            self.taken.setdefault((task.tags[PORT], node.id), []).append(task)

    def released(self, task: api.Task, node: api.Node) -> None:
        if PORT in task.tags:
            tasks = self.taken[task.tags[PORT], node.id]
            tasks.remove(next(one for one in tasks if one.key == task.key))
            if not tasks:
                del self.taken[task.tags[PORT], node.id]


class PortsByDomain(Ports):
    """Declares classes and domains."""

    name = "ports-by-domain"

    def ask_class(self, ask: api.Ask) -> str:
        return ask.tags.get(PORT, "")

    def domain(self, node: api.Node) -> str:
        return node.id

    def subjects(self, task: api.Task) -> tuple[Hashable]:
        return (task.tags.get(PORT, ""),)


class FreePort(api.PermitPolicy):
    """Holds a task until its port is free of foreign tasks."""

    name = "free-port"
    counts_foreign = True

    def __init__(self) -> None:
        self.foreign: list[str] = []

    def permit(self, allocation: api.Allocation) -> api.Wait | None:
        taken = allocation.tags.get(PORT, "") in self.foreign
        return api.Wait(5, "a task of others has the port") if taken else None

    def placed(self, task: api.Task, node: api.Node) -> None:
        if task.foreign:
            self.foreign.append(task.tags.get(PORT, ""))

    def released(self, task: api.Task, node: api.Node) -> None:
        if task.foreign:
            self.foreign.remove(task.tags.get(PORT, ""))


def registry() -> Registry:
    return with_plugins(predicates=[Ledger, Witness, Ports, PortsByDomain], permit_policies=[FreePort])


def test_books_of_a_permit_policy_may_have_foreign_tasks() -> None:
    rm = RM(configuration(permits=["free-port"]), registry())
    rm.node("n1", vcore=8)
    rm.update(allocations=[pod("a", "n1", "80")])
    rm.app()
    rm.ask(vcore=1, tags={PORT: "80"})
    assert rm.schedule() == []
    rm.release("", key="a")
    rm.pass_time(5)
    rm.schedule()
    assert len(rm.running) == 1
    assert list(rm.scheduler.failures) == []


def ready(*predicates: str) -> RM:
    rm = RM(configuration(predicates=list(predicates)), registry())
    for name in ("n1", "n2"):
        rm.node(name, {"zone": name}, vcore=8)
    return rm


def pod(key: str, node_id: str, port: str = "", vcore: int = 1, priority: int = 0) -> Allocation:
    tags = {"foreign": "default"} | ({PORT: port} if port else {})
    return Allocation(key, "", "", node_id, Resource(vcore=vcore), allocation_tags=tags, priority=priority)


def keeper(rm: RM, name: str) -> Any:
    books = rm.at_work().orders.books
    assert books is not None
    return next(one.plugin for one in books.keepers if one.plugin.name == name)


@pytest.mark.parametrize("predicate", ["ports", "ports-by-domain"])
def test_a_foreign_task_counts_until_it_is_released(predicate: str) -> None:
    rm = ready(predicate)
    rm.update(allocations=[pod("a", "n1", "80"), pod("b", "n2", "80"), pod("c", "n2", "81")])
    rm.app()
    rm.ask(vcore=1, tags={PORT: "80"})
    assert rm.schedule() == []
    rm.release("", key="c")
    assert rm.schedule() == []
    rm.release("", key="b")
    assert rm.schedule() == [("app", "ask", "n2")]


@pytest.mark.parametrize("predicate", ["ports", "ports-by-domain"])
def test_a_foreign_task_that_moves_or_changes_its_tags_frees_its_place(predicate: str) -> None:
    rm = ready(predicate)
    rm.update(allocations=[pod("a", "n1", "80"), pod("b", "n2", "80")])
    rm.app()
    rm.ask(vcore=1, tags={PORT: "80"}, count=2)
    assert rm.schedule() == []
    rm.update(allocations=[pod("a", "n2", "80")])
    assert rm.schedule() == [("app", "ask", "n1")]
    rm.update(allocations=[pod("b", "n2", "81"), pod("a", "n2", "81")])
    assert rm.schedule() == [("app", "ask", "n2")]


def test_view_of_a_foreign_task() -> None:
    rm = ready("ports")
    rm.clock.set(5)
    rm.update(allocations=[pod("a", "n1", "80", vcore=2, priority=7)])
    [task] = keeper(rm, "ports").taken["80", "n1"]
    assert task.foreign
    assert (task.key, task.uuid, task.priority, task.placed) == ("a", "a", 7, 5)
    assert (dict(task.tags), dict(task.resource)) == ({"foreign": "default", PORT: "80"}, {"vcore": 2})
    assert (task.task_group, task.placeholder, task.originator, task.execution_timeout) == (
        "",
        False,
        False,
        0,
    )
    owner = task.app
    assert (owner.id, owner.user, owner.queue_name, owner.queue, owner.state) == ("", "", "", None, "")
    assert not any((owner.groups, owner.tags, owner.allocations, owner.allocations_by_node))
    assert not any((owner.allocated, owner.pending, owner.demand, owner.fair_total))
    for member in [name for name in dir(api.Application) if not name.startswith("_")]:
        assert hasattr(owner, member), member
    for member in [name for name in dir(api.Allocation) if not name.startswith("_")]:
        assert hasattr(task, member), member


def test_books_of_others_do_not_contain_foreign_tasks() -> None:
    rm = ready("ledger", "witness")
    rm.update(allocations=[pod("a", "n1"), pod("b", "n2")])
    check_books(rm.at_work())
    assert keeper(rm, "ledger").books == {}
    assert len(keeper(rm, "witness").foreign) == 2


def test_the_same_report_again_changes_no_books() -> None:
    rm = ready("ports")
    rm.update(allocations=[pod("a", "n1", "80")])
    before = keeper(rm, "ports").taken["80", "n1"][0]
    rm.update(allocations=[pod("a", "n1", "80")])
    assert keeper(rm, "ports").taken["80", "n1"] == [before]
    rm.update(allocations=[pod("a", "n1", "80", priority=3)])
    assert keeper(rm, "ports").taken["80", "n1"] != [before]
    assert keeper(rm, "ports").taken["80", "n1"][0].priority == 3


def test_foreign_tasks_enter_the_books_at_registration_and_leave_with_their_node() -> None:
    rm = ready("witness")
    rm.node("n3", {"zone": "z"}, existing=[pod("a", "n3", "80")], vcore=4)
    check_books(rm.at_work())
    rm.change_node("n3", attributes={"zone": "y"})
    check_books(rm.at_work())
    rm.at_work().remove_node(rm.find_node("n3"))
    check_books(rm.at_work())
    assert keeper(rm, "witness").foreign == {}


def test_reload_fills_new_books_with_tasks_of_both_kinds_in_order_of_placement() -> None:
    seen: list[str] = []

    class Ordered(Witness):
        name = "ordered"

        def placed(self, task: api.Task, node: api.Node) -> Any:
            seen.append(task.key)
            return super().placed(task, node)

    rm = ready("ports")
    rm.clock.set(10)
    rm.update(allocations=[pod("a", "n2", "80")])
    rm.clock.set(20)
    rm.app()
    rm.ask(key="own", vcore=1)
    rm.schedule()
    rm.clock.set(30)
    rm.update(allocations=[pod("b", "n1", "81")])
    rm.scheduler.register_plugin("rm", plugin_with(predicates=[Ordered]), "late")
    assert seen == ["a", "own", "b"]
    check_books(rm.at_work())


def test_an_allocation_that_awaits_its_application_is_no_foreign_task() -> None:
    rm = ready("witness")
    awaited = Allocation(
        "k", "later", "u1", "n3", Resource(vcore=1), allocation_tags={"application.create.force": "true"}
    )
    rm.node("n3", existing=[awaited], vcore=4)
    assert keeper(rm, "witness").foreign == {}
    check_books(rm.at_work())
    rm.app("later", **{"application.create.force": "true"})
    check_books(rm.at_work())
    assert len(keeper(rm, "witness").books) == 1


def test_failure_for_a_foreign_task_is_reported_with_its_name() -> None:
    class Failing(Witness):
        name = "failing"

        def placed(self, task: api.Task, node: api.Node) -> Any:
            raise ValueError("odd task")

    rm = RM(configuration(predicates=["failing"]), with_plugins(predicates=[Failing]))
    rm.node(vcore=8)
    rm.update(allocations=[pod("a", "n1")])
    assert any("foreign task a on node n1" in message for message in rm.failures())
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == []


def test_node_scores_may_count_foreign_tasks() -> None:
    class Quiet(api.NodeSortPolicy):
        name = "quiet"
        counts_foreign = True

        def __init__(self) -> None:
            self.tasks: dict[str, int] = {}

        def score(self, node: api.Node) -> float:
            return self.tasks.get(node.id, 0)

        def placed(self, task: api.Task, node: api.Node) -> None:
            self.tasks[node.id] = self.tasks.get(node.id, 0) + 1

        def released(self, task: api.Task, node: api.Node) -> None:
            self.tasks[node.id] -= 1

    rm = RM(configuration(nodesortpolicy={"type": "quiet"}), with_plugins(node_sort_policies=[Quiet]))
    for name in ("n1", "n2"):
        rm.node(name, vcore=8)
    rm.update(allocations=[pod("a", "n1", vcore=0), pod("b", "n1", vcore=0)])
    rm.app()
    rm.ask(count=3, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["n2", "n2", "n1"]


def test_counts_foreign_needs_books() -> None:
    class Odd(api.Predicate):
        name = "odd"
        counts_foreign = True

        def check(self, ask: api.Ask, node: api.Node) -> str | None:
            return None

    class Words(Ledger):
        name = "words"
        counts_foreign = "yes"  # type: ignore[assignment]

    for kind, reason in (
        (Odd, "Odd has counts_foreign without placed: foreign tasks are only passed to a class that keeps"),
        (Words, "counts_foreign of test_counts_foreign_needs_books.<locals>.Words is 'yes': write"),
    ):
        found = Registry.load(third_party=False)
        assert not found.register(plugin_with(predicates=[kind]), "odd", "odd", "1")
        assert reason in found.broken[-1].reason
