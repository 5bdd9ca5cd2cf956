"""Order of the requests within an application: `ask_key` of its sort policy."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, Tree, configuration, queue, with_plugins
from yunikorn.api import Application, AppSortPolicy, Ask
from yunikorn.interface.messages import Allocation, AllocationAsk, NewNodeInfo, TerminationType, UpdateRequest
from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.resources import Resource


class Sorted(AppSortPolicy):
    """Orders requests by a function that a test sets."""

    name = "sorted"
    by: ClassVar[Callable[[Ask], Any]]
    asked: ClassVar[list[str]] = []

    def key(self, app: Application) -> int:
        return app.submitted

    def ask_key(self, ask: Ask) -> Any:
        self.asked.append(ask.key)
        return type(self).by(ask)


class Backwards(AppSortPolicy):
    """Serves the latest request first."""

    name = "backwards"
    gangs = True

    def key(self, app: Application) -> int:
        return app.submitted

    def ask_key(self, ask: Ask) -> tuple[str, float]:
        return "", -int(ask.tags.get("number", "0"))


PLUGINS = with_plugins(app_sort_policies=[Sorted, Backwards])

ORIGIN = "sorted of test-plugin (yunikorn-test 1.0)"


def largest_first(ask: Ask) -> float:
    return -ask.resource.get("vcore", 0)


@pytest.fixture(autouse=True)
def _largest_first() -> None:
    Sorted.by = largest_first
    Sorted.asked.clear()


def leaf(policy: str = "sorted", name: str = "a", **properties: str) -> Tree:
    return queue(name, properties={"application.sort.policy": policy, **properties})


def cluster(policy: str = "sorted", vcore: int = 100, **properties: str) -> RM:
    rm = RM(configuration(leaf(policy, **properties)), PLUGINS)
    rm.node("n1", vcore=vcore)
    return rm


def served(rm: RM) -> list[str]:
    return [key for _, key, _ in rm.schedule()]


def test_requests_of_an_application_go_by_the_key_of_its_policy() -> None:
    rm = cluster()
    rm.app()
    for number, size in enumerate((1, 3, 2, 3)):
        rm.ask(key=f"task-{number}", vcore=size)
    assert served(rm) == ["task-1", "task-3", "task-2", "task-0"]
    assert sorted(Sorted.asked) == [f"task-{number}" for number in range(4)]  # once for each


def test_requests_of_one_batch_go_by_their_keys() -> None:
    rm = cluster()
    rm.app()
    asks = [AllocationAsk(f"t{n}", "app", resource_ask=Resource(vcore=n % 3)) for n in range(1, 9) if n % 3]
    rm.scheduler.update(UpdateRequest("rm", asks=asks))
    assert served(rm) == ["t2", "t5", "t8", "t1", "t4", "t7"]


def test_priority_is_first() -> None:
    rm = cluster()
    rm.app()
    rm.ask(key="large", vcore=9)
    rm.ask(key="urgent", vcore=1, priority=1)
    rm.ask(key="urgent-large", vcore=2, priority=1)
    assert served(rm) == ["urgent-large", "urgent", "large"]


def test_equal_keys_go_by_creation_then_by_arrival() -> None:
    rm = cluster()
    rm.pass_time(1000)
    rm.app()
    rm.ask(key="late", vcore=1)
    rm.ask(key="early", vcore=1, tags={"creationTime": "500"})
    rm.ask(key="later", vcore=1)
    assert served(rm) == ["early", "late", "later"]


def test_a_changed_request_moves_to_its_new_place() -> None:
    rm = cluster()
    rm.app()
    for key, size in (("a", 1), ("b", 2), ("c", 3)):
        rm.ask(key=key, vcore=size)
    rm.ask(key="a", vcore=4)
    rm.ask(key="c", vcore=1)
    assert served(rm) == ["a", "b", "c"]


def test_a_request_of_which_only_the_key_changes_moves_too() -> None:
    Sorted.by = lambda ask: not ask.originator
    rm = cluster()
    rm.app()
    rm.ask(key="worker", vcore=1)
    rm.ask(key="driver", vcore=1)
    rm.ask(key="driver", vcore=1, originator=True)
    assert served(rm) == ["driver", "worker"]


def test_a_reload_sorts_waiting_requests_by_the_new_policy() -> None:
    rm = cluster(vcore=1)
    rm.app()
    for number in range(1, 5):
        rm.ask(key=f"t{number}", vcore=1, tags={"number": str(number)})
    assert served(rm) == ["t1"]
    rm.reload(configuration(leaf("backwards")))
    rm.node("n2", vcore=1)
    assert served(rm) == ["t4"]
    rm.reload(configuration(leaf("fifo")))
    rm.node("n3", vcore=1)
    assert served(rm) == ["t2"]
    rm.ask(key="t5", vcore=1)
    rm.node("n4", vcore=2)
    assert served(rm) == ["t3", "t5"]


def test_a_reload_with_the_same_policy_computes_no_key_again() -> None:
    rm = cluster(vcore=1)
    rm.app()
    rm.ask(key="small", vcore=2)
    rm.ask(key="large", vcore=3)
    Sorted.asked.clear()
    rm.reload(configuration(leaf(**{"preemption.delay": "1m"})))
    assert Sorted.asked == []
    rm.node("n2", vcore=5)
    assert served(rm) == ["large", "small"]


def test_policies_order_requests_only_of_their_own_queue() -> None:
    rm = RM(configuration(leaf("sorted", "a"), leaf("fifo", "b")), PLUGINS)
    rm.node("n1", vcore=100)
    for name in ("a", "b"):
        rm.app(name, f"root.{name}")
        rm.ask(name, f"{name}-small", vcore=1)
        rm.ask(name, f"{name}-large", vcore=2)
    found = served(rm)
    assert [key for key in found if key.startswith("a")] == ["a-large", "a-small"]
    assert [key for key in found if key.startswith("b")] == ["b-small", "b-large"]


def test_a_task_that_could_not_be_started_returns_to_its_place() -> None:
    rm = cluster(vcore=4)
    rm.app()
    rm.ask(key="large", vcore=3)
    rm.ask(key="larger", vcore=4)
    assert served(rm) == ["larger"]
    rm.ask(key="largest", vcore=5)
    [uuid] = rm.running
    rm.release(uuid=uuid, termination=TerminationType.SCHEDULING_FAILED_ON_RM)
    rm.node("n2", vcore=12)
    assert served(rm) == ["largest", "larger", "large"]


def test_a_recovery_restores_the_order() -> None:
    rm = RM(configuration(leaf()), PLUGINS)
    asks = [AllocationAsk(f"t{size}", "app", resource_ask=Resource(vcore=size)) for size in (1, 3, 2)]
    running = Allocation("t4", "app", "u1", "n1", Resource(vcore=4))
    rm.app()
    rm.update(
        asks=asks,
        new_schedulable_nodes=[NewNodeInfo("n1", {}, Resource(vcore=99), existing_allocations=[running])],
    )
    assert served(rm) == ["t3", "t2", "t1"]


def test_queues_of_a_template_have_its_order() -> None:
    template = {"properties": {"application.sort.policy": "sorted"}}
    rule = {"name": "provided", "create": True}
    parent = queue("p", parent=True, childtemplate=template)
    rm = RM(configuration(parent, placementrules=[rule]), PLUGINS)
    rm.node("n1", vcore=100)
    rm.app(queue_name="root.p.x")
    for size in (1, 3, 2):
        rm.ask(key=f"t{size}", vcore=size)
    assert served(rm) == ["t3", "t2", "t1"]


# -- failures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [float("nan"), "text", (1, 2), None, [1], object(), 1 << 2000, (((1,),),), Resource(vcore=1)],
    ids=lambda bad: type(bad).__name__,
)
def test_a_key_that_does_not_compare_is_reported_and_last(bad: Any) -> None:
    Sorted.by = lambda ask: bad if "bad" in ask.key else largest_first(ask)
    rm = cluster()
    rm.app()
    for key, size in (("small", 1), ("bad-1", 9), ("bad-2", 8), ("large", 3)):
        rm.ask(key=key, vcore=size)
    assert served(rm) == ["large", "small", "bad-1", "bad-2"]
    [failure] = rm.scheduler.failures
    assert failure.count == 2
    assert failure.plugin == ORIGIN


def test_a_policy_that_raises_leaves_requests_in_order_of_arrival() -> None:
    def by(ask: Ask) -> int:
        raise RuntimeError("no idea")

    Sorted.by = by
    rm = cluster()
    rm.app()
    for key, size in (("a", 1), ("b", 9), ("c", 3)):
        rm.ask(key=key, vcore=size)
    rm.ask(key="urgent", vcore=1, priority=1)
    assert served(rm) == ["urgent", "a", "b", "c"]
    [failure] = rm.scheduler.failures
    assert failure.count == 4


def test_messages_name_the_keys_and_what_is_expected() -> None:
    Sorted.by = lambda ask: {"text": "x", "list": [1]}.get(ask.key, 1.5)
    rm = cluster()
    rm.app()
    for key in ("number", "text", "list"):
        rm.ask(key=key, vcore=1)
    assert rm.failures() == [
        f"plugin {ORIGIN}: comparing keys of ask text of application app: 'x' does not compare with 1.5, the "
        "first key of its queue",
        f"plugin {ORIGIN}: computing the key of ask list of application app: TypeError: ask_key returned [1] "
        "instead of a number, a text, a tuple of them, or None",
    ]


@pytest.mark.parametrize("keys", [(2, 1.5, True), ("b", "ab", "a"), ((1, "b"), (1, "a"), (0, "z"))])
def test_numbers_texts_and_tuples_are_keys(keys: tuple[Any, ...]) -> None:
    Sorted.by = lambda ask: keys[int(ask.key)]
    rm = cluster()
    rm.app()
    for number in range(3):
        rm.ask(key=str(number), vcore=1)
    assert served(rm) == ["2", "1", "0"]
    assert rm.failures() == []


def test_a_policy_may_leave_all_requests_in_order_of_arrival() -> None:
    Sorted.by = lambda ask: None
    rm = cluster()
    rm.app()
    for number in range(3):
        rm.ask(key=str(number), vcore=1)
    assert served(rm) == ["0", "1", "2"]
    assert rm.failures() == []


# -- gangs -------------------------------------------------------------------------------------------------


def gang_cluster(**amounts: int) -> GangRM:
    rm = GangRM(configuration(leaf("backwards")), PLUGINS)
    rm.node("n1", capacity=amounts or {"vcore": 100})
    return rm


def test_members_of_an_atomic_gang_are_taken_in_order() -> None:
    rm = gang_cluster()
    rm.gang("app", "Atomic", vcore=2)
    for number in (1, 3):
        rm.task("app", f"t{number}", "workers", tags={"number": str(number)}, vcore=1)
    rm.task("app", "t4", "workers", tags={"number": "4"}, vcore=1)
    rm.task("app", "single", "", tags={"number": "2"}, vcore=1)
    assert served(rm) == ["t3", "t1", "t4", "single"]


def test_a_gang_stands_at_the_place_of_its_first_member() -> None:
    rm = gang_cluster()
    rm.gang("app", "Atomic", vcore=2)
    rm.task("app", "single", "", tags={"number": "2"}, vcore=1)
    for number in (1, 3):
        rm.task("app", f"t{number}", "workers", tags={"number": str(number)}, vcore=1)
    rm.task("app", "first", "", tags={"number": "5"}, vcore=1)
    assert served(rm) == ["first", "t3", "t1", "single"]


def test_a_reload_moves_a_waiting_gang() -> None:
    rm = gang_cluster(vcore=1)
    rm.gang("app", "Atomic", vcore=2)
    for number in (1, 3):
        rm.task("app", f"t{number}", "workers", tags={"number": str(number)}, vcore=1)
    rm.task("app", "single", "", tags={"number": "2"}, vcore=5)
    rm.reload(configuration(leaf("fifo")))
    assert served(rm) == []
    rm.reload(configuration(leaf("backwards")))
    rm.task("app", "t4", "workers", tags={"number": "4"}, vcore=1)
    rm.node("n2", vcore=20)
    assert served(rm) == ["t3", "t1", "t4", "single"]


@pytest.mark.parametrize(("policy", "first"), [("backwards", "r3"), ("fifo", "r1")])
def test_real_tasks_replace_placeholders_in_order(policy: str, first: str) -> None:
    rm = GangRM(configuration(leaf("fifo" if policy == "backwards" else "backwards")), PLUGINS)
    rm.node("n1", vcore=1)
    rm.gang("app", vcore=2)
    rm.task("app", "p", "workers", 2, placeholder=True, vcore=1)
    for number in (1, 2, 3):
        rm.task("app", f"r{number}", "workers", tags={"number": str(number)}, vcore=1)
    rm.reload(configuration(leaf(policy)))
    rm.node("n2", vcore=1)
    rm.schedule()
    rm.confirm()
    replaced = [one.allocation_key for one in rm.entries("new_allocations") if not one.placeholder]
    assert replaced[0] == first
    assert "r2" in replaced


# -- preemption --------------------------------------------------------------------------------------------


def test_an_older_request_preempts_although_a_younger_one_is_first() -> None:
    keys = {"resources": {"guaranteed": {"vcore": "4"}}}
    owner = queue("a", properties={"application.sort.policy": "backwards"}, **keys)
    rm = RM(configuration(owner, queue("b")), PLUGINS)
    rm.node("n1", vcore=4)
    rm.app("full", "root.b")
    rm.ask("full", "x", 4, vcore=1)
    rm.schedule()
    rm.app()
    rm.ask(key="old", vcore=1, tags={"number": "1"})
    rm.pass_time(20)
    rm.ask(key="young", vcore=1, tags={"number": "2"})
    rm.schedule()
    assert not rm.evicted
    rm.pass_time(10)
    rm.schedule()
    assert len(rm.evicted) == 1


def test_requests_for_one_node_may_have_keys_of_different_policies() -> None:
    rm = RM(configuration(leaf("sorted", "a"), leaf("backwards", "b"), queue("c")), PLUGINS)
    rm.node("n1", vcore=4)
    rm.app("full", "root.c")
    rm.ask("full", "x", 4, vcore=1)
    rm.schedule()
    for name in ("a", "b"):
        rm.app(name, f"root.{name}")
        rm.ask(name, f"{name}-daemon", vcore=1, tags={REQUIRED_NODE_TAG: "n1"})
    rm.schedule()
    rm.confirm()
    assert sorted(served(rm)) == ["a-daemon", "b-daemon"]


# -- positions ---------------------------------------------------------------------------------------------


def test_positions_follow_the_order_and_name_its_policy() -> None:
    rm = cluster(vcore=0)
    rm.app()
    for key, size in (("small", 1), ("large", 3), ("middle", 2)):
        rm.ask(key=key, vcore=size)
    rm.schedule()
    found = rm.scheduler.explain("rm", "default", "app")
    assert {key: one.position.first for key, one in found.items()} == {"large": 1, "middle": 2, "small": 3}
    assert str(found["middle"].position).startswith(
        "2nd of 3 pending requests in queue root.a, where sorted orders the requests of an application; "
    )


def test_orders_that_arrival_decides_are_not_mentioned() -> None:
    rm = cluster("fifo", vcore=0)
    rm.app()
    rm.ask(key="a", count=2, vcore=1)
    [found] = rm.scheduler.explain("rm", "default", "app").values()
    assert "orders" not in str(found.position)


# -- all together ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_drawn_history_serves_requests_as_a_sorted_list(seed: int) -> None:
    draw = random.Random(seed)
    Sorted.by = lambda ask: (int(ask.tags.get("stage", "0")), -ask.resource.get("vcore", 0))
    rm = cluster(vcore=0)
    policies: dict[str, Callable[[Any], Any]] = {"sorted": Sorted.by, "fifo": lambda ask: ()}
    policy = "sorted"
    rm.app()
    arrived: list[str] = []
    for _ in range(150):
        what = draw.random()
        if what < 0.6 or not arrived:
            key = f"t{len(rm.responses)}-{len(arrived)}-{draw.random()}"
            arrived.append(key)
            send(rm, draw, key)
        elif what < 0.8:
            send(rm, draw, draw.choice(arrived))
        elif what < 0.9:
            rm.release_ask(key=arrived.pop(draw.randrange(len(arrived))))
        elif what < 0.97:
            rm.schedule()
        else:
            policy = draw.choice(list(policies))
            rm.reload(configuration(leaf(policy)))
    asks = list(rm.find_app().asks.values())
    wanted = sorted(asks, key=lambda ask: (-ask.priority, policies[policy](ask), ask.created, ask.arrival))
    rm.node("n2", vcore=10_000)
    assert served(rm) == [ask.key for ask in wanted]
    assert rm.failures() == []


def send(rm: RM, draw: random.Random, key: str) -> None:
    size, stage = draw.randint(1, 4), str(draw.randint(0, 3))
    rm.ask(key=key, vcore=size, priority=draw.choice((None, None, 1)), tags={"stage": stage})
