"""Books of application sort policies: keys depend on tasks of other applications, and stay up to date."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, ClassVar

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Application, AppSortPolicy, Node, Task
from yunikorn.interface.messages import Allocation, NodeAction
from yunikorn.resources import Resource


class Turns(AppSortPolicy):
    """Orders applications by the running tasks of their user."""

    name = "turns"
    fails: ClassVar[bool] = False

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.keyed = 0

    def key(self, app: Application) -> int:
        self.keyed += 1
        return self.running[app.user]

    def subject(self, app: Application) -> str:
        return app.user

    def placed(self, task: Task, node: Node) -> None:
        if self.fails:
            raise RuntimeError("out of paper")
        self.running[task.app.user] += 1

    def released(self, task: Task, node: Node) -> None:
        self.running[task.app.user] -= 1


class Owners(AppSortPolicy):
    """Puts applications of users who have nodes of their own after those of others."""

    name = "owners"

    def __init__(self) -> None:
        self.nodes: Counter[str] = Counter()

    def key(self, app: Application) -> bool:
        return self.nodes[app.user] > 0

    def subject(self, app: Application) -> str:
        return app.user

    def node_added(self, node: Node) -> list[str]:
        return self._counted(node, 1)

    def node_removed(self, node: Node) -> list[str]:
        return self._counted(node, -1)

    def placed(self, task: Task, node: Node) -> None:
        """Keep books, of nodes alone."""

    def released(self, task: Task, node: Node) -> None:
        """Keep books, of nodes alone."""

    def _counted(self, node: Node, change: int) -> list[str]:
        owner = node.attributes.get("owner", "")
        self.nodes[owner] += change
        return [owner]


PROPERTIES = {"application.sort.policy": "turns"}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Turns.fails = False


def rm_of(*names: str) -> RM:
    return RM(config(*names), with_plugins(app_sort_policies=[Turns]))


def config(*names: str, **keys: str) -> str:
    return configuration(*(queue(name, properties={**PROPERTIES, **keys}) for name in names))


def policy_of(rm: RM, path: str = "root.a") -> Any:
    return rm.find_queue(path).order.policy


def submit(rm: RM, user: str, number: int, count: int, queue_name: str = "root.a") -> None:
    rm.app(f"{user}-{number}", queue_name, user=user)
    rm.ask(f"{user}-{number}", count=count, vcore=1)


def test_a_task_changes_the_keys_of_all_applications_of_its_user() -> None:
    rm = rm_of("a")
    for number in range(3):
        submit(rm, "ann", number, 2)
    submit(rm, "bob", 0, 4)
    rm.node(vcore=6)
    users = [app_id.partition("-")[0] for app_id, _, _ in rm.schedule()]
    assert users == ["ann", "bob", "ann", "bob", "ann", "bob"]


def test_other_applications_are_not_computed_again() -> None:
    rm = rm_of("a")
    for number in range(50):
        submit(rm, "ann", number, 1)
        submit(rm, f"other{number}", 0, 1)
    rm.node(vcore=1)
    rm.schedule()
    policy = policy_of(rm)
    rm.ask("other7-0", "more", vcore=1)
    before = policy.keyed
    rm.node("n2", vcore=2)
    rm.schedule()
    # A placement of others concerns one application, the first one of ann 50; a new node all of them.
    assert policy.keyed - before < 2 * 100 + 60


def test_tasks_of_other_queues_count_and_change_the_order() -> None:
    rm = rm_of("a", "b")
    submit(rm, "ann", 0, 3, "root.a")
    rm.node(vcore=3)
    rm.schedule()
    submit(rm, "ann", 1, 2, "root.b")
    submit(rm, "bob", 0, 2, "root.b")
    rm.node("n2", vcore=1)
    assert [app_id for app_id, _, _ in rm.schedule()] == ["bob-0"]
    for uuid in [uuid for uuid, one in rm.running.items() if one.application_id == "ann-0"]:
        rm.release("ann-0", uuid=uuid)
    assert rm.schedule()[0][0] == "ann-1"


def test_recovered_tasks_and_those_before_a_reload_are_in_the_books() -> None:
    rm = RM(configuration(queue("a")), with_plugins(app_sort_policies=[Turns]))
    rm.app("ann-0", user="ann")
    existing = [
        Allocation(f"t{number}", "ann-0", f"u{number}", "n1", Resource({"vcore": 1})) for number in (1, 2)
    ]
    rm.node(vcore=2, existing=existing)
    rm.reload(config("a"))
    policy = policy_of(rm)
    assert policy.running == {"ann": 2}
    submit(rm, "ann", 1, 1)
    submit(rm, "bob", 0, 1)
    rm.node("n2", vcore=1)
    assert [app_id for app_id, _, _ in rm.schedule()] == ["bob-0"]
    rm.reload(config("a", "b"))
    assert policy_of(rm) is policy_of(rm, "root.b") is policy
    assert policy.running == {"ann": 2, "bob": 1}
    rm.reload(configuration(queue("a"), queue("b")))
    rm.release("bob-0", key="ask")
    assert policy.running == {"ann": 2, "bob": 1}, "a policy without queues is told nothing more"


def test_a_queue_that_placement_creates_fills_new_books() -> None:
    rules = [{"name": "user", "create": True, "parent": {"name": "fixed", "value": "p"}}]
    parent = {**queue("p"), "parent": True, "childtemplate": {"properties": PROPERTIES}}
    rm = RM(
        configuration(queue("a"), parent, placementrules=[{"name": "provided"}, *rules]),
        with_plugins(app_sort_policies=[Turns]),
    )
    submit(rm, "ann", 0, 2)
    rm.node(vcore=3)
    rm.schedule()
    submit(rm, "ann", 1, 1, "")
    policy = policy_of(rm, "root.p.ann")
    assert policy.running == {"ann": 2}
    rm.schedule()
    assert policy.running == {"ann": 3}


def test_nodes_that_come_and_go_change_the_order() -> None:
    rm = RM(
        configuration(queue("a", properties={"application.sort.policy": "owners"})),
        with_plugins(app_sort_policies=[Owners]),
    )
    submit(rm, "ann", 0, 3)
    submit(rm, "bob", 0, 3)
    rm.node("n1", vcore=1)
    assert rm.schedule()[0][0] == "ann-0"
    rm.node("n2", vcore=1, attributes={"owner": "ann"})
    assert rm.schedule()[0][0] == "bob-0"
    rm.change_node("n2", NodeAction.DECOMMISSION)
    rm.node("n3", vcore=1, attributes={"owner": "bob"})
    assert rm.schedule()[0][0] == "ann-0"


def test_books_that_fail_are_reported_once_and_made_again_at_a_reload() -> None:
    rm = rm_of("a")
    submit(rm, "ann", 0, 2)
    rm.node(vcore=4)
    Turns.fails = True
    assert len(rm.schedule()) == 2
    (failure,) = rm.failures()
    assert "turns of test-plugin (yunikorn-test 1.0): adding to its books" in failure
    Turns.fails = False
    before = policy_of(rm)
    rm.reload(config("a", "b"))
    assert policy_of(rm) is not before
    assert (before.running, policy_of(rm).running) == ({}, {"ann": 2})
    submit(rm, "ann", 1, 1)
    submit(rm, "bob", 0, 1)
    assert [app_id for app_id, _, _ in rm.schedule(1)] == ["bob-0"]


@pytest.mark.parametrize("seed", range(3))
def test_every_decision_serves_the_user_with_the_fewest_tasks(seed: int) -> None:
    draw = random.Random(seed)
    rm = rm_of("a")
    rm.node(vcore=5)
    for number in range(40):
        submit(rm, f"u{draw.randrange(4)}", number, draw.randrange(1, 4))
        if draw.random() < 0.5 and rm.running:
            one = draw.choice(sorted(rm.running))
            rm.release(rm.running[one].application_id, uuid=one)
        while True:
            counts = Counter(one.application_id.partition("-")[0] for one in rm.running.values())
            waiting = [app for app in rm.find_queue().applications.values() if app.has_waiting]
            made = rm.schedule(1)
            if not made:
                break
            least = min(counts[app.user] for app in waiting)
            assert counts[made[0][0].partition("-")[0]] == least
