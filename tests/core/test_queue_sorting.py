"""The order of queues (docs/decisions/0019)."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.clock import ManualClock
from yunikorn.model.queue import ClusterSize, Queue
from yunikorn.resources import Resource
from yunikorn_policies import shares


def root(*queues: dict[str, Any], **properties: str) -> str:
    text = configuration(*queues)
    if not properties:
        return text
    config = json.loads(text)
    config["partitions"][0]["queues"][0]["properties"] = properties
    return json.dumps(config)


def guaranteed(name: str, **amounts: str) -> dict[str, Any]:
    return queue(name, resources={"guaranteed": amounts})


def in_order(rm: RM) -> list[str]:
    return [app_id for app_id, _, _ in rm.schedule()]


# -- the share of a queue ---------------------------------------------------------------------------------


def fair_share(
    allocated: dict[str, int],
    due: dict[str, int] | None = None,
    quota: dict[str, int] | None = None,
    total: dict[str, int] | None = None,
) -> float:
    cluster = ClusterSize(ManualClock().now)
    cluster.set(Resource(total or {}))
    top = Queue("root", None, cluster, is_leaf=False, managed=True)
    leaf = Queue("a", top, cluster, is_leaf=True, managed=True)
    leaf.set_quota(None if due is None else Resource(due), None if quota is None else Resource(quota))
    leaf.allocated, leaf.demand = dict(allocated), dict(allocated)
    return shares.fair_share_key(leaf)[0]


def test_fair_share_is_the_largest_ratio_to_the_guarantee() -> None:
    assert fair_share({"vcore": 100, "memory": 2500}, {"vcore": 1000, "memory": 5000}) == 0.5


def test_usage_of_a_zero_guarantee_is_a_full_share() -> None:
    assert fair_share({"vcore": 1}, {"vcore": 0, "memory": 1}) == 1.0


def test_negative_usage_is_ignored() -> None:
    assert fair_share({"vcore": -5}, {"vcore": 10}) == 0.0


def test_share_is_relative_to_the_quota_without_a_guarantee() -> None:
    assert fair_share({"vcore": 5}, None, {"vcore": 20}, {"vcore": 10}) == 0.25


def test_share_is_relative_to_the_cluster_without_guarantee_and_quota() -> None:
    assert fair_share({"vcore": 5}, None, None, {"vcore": 10}) == 0.5


def test_a_type_that_no_node_has_is_ignored() -> None:
    assert fair_share({"gpu": 5, "vcore": 1}, None, None, {"vcore": 10}) == 0.1


def test_usage_of_a_zero_quota_is_a_full_share() -> None:
    assert fair_share({"vcore": 5}, None, {"vcore": 0, "memory": 3}, {"vcore": 10}) == 1.0


# -- fair -------------------------------------------------------------------------------------------------


def test_queues_are_served_by_their_share_of_the_guarantee() -> None:
    rm = RM(root(guaranteed("a", vcore="1m"), guaranteed("b", vcore="2m")))
    for name in ("a", "b"):
        rm.app(name, f"root.{name}")
        rm.ask(name, count=6, vcore=1)
    rm.node(vcore=6)
    assert in_order(rm) == ["a", "b", "b", "a", "b", "b"]


def test_equal_shares_are_ordered_by_pending_then_name() -> None:
    rm = RM(root(queue("a"), queue("b"), queue("c")))
    for name, count in (("c", 2), ("b", 3), ("a", 2)):
        rm.app(name, f"root.{name}")
        rm.ask(name, count=count, vcore=1)
    rm.node(vcore=30)
    assert in_order(rm)[:3] == ["b", "a", "c"]


@pytest.mark.parametrize("order", [*itertools.permutations(["memory", "vcore", "gpu"])], ids="-".join)
def test_pending_amounts_are_independent_of_submission_order(order: tuple[str, ...]) -> None:
    """A tenth, two tenths and three tenths: a sum of floats depends on the order of its terms."""
    amounts = {"memory": 1, "vcore": 2, "gpu": 3}
    rm = RM(root(queue("a"), queue("b")))
    for name, types in (("a", order), ("b", ("memory", "vcore", "gpu"))):
        rm.app(name, f"root.{name}")
        for kind in types:
            rm.ask(name, kind, resource={kind: amounts[kind]})
    rm.node(memory=10, vcore=10, gpu=10)
    assert rm.schedule(1)[0][0] == "a"


@pytest.mark.parametrize(
    ("priorities", "expected"),
    # YuniKorn 1.9 breaks the tie of q2 and q3 by priority in both.
    [("enabled", ["q3", "q2", "q0", "q1"]), ("disabled", ["q2", "q3", "q0", "q1"])],
)
def test_documented_example_of_fair_order(priorities: str, expected: list[str]) -> None:
    """Guaranteed 500, 300, 200, 200; allocated 300, 200, 100, 100; priorities 1, 1, 1, 3."""
    due = {"q0": 500, "q1": 300, "q2": 200, "q3": 200}
    used = {"q0": 300, "q1": 200, "q2": 100, "q3": 100}
    urgency = {"q0": 1, "q1": 1, "q2": 1, "q3": 3}
    rm = RM(
        root(
            *[guaranteed(name, vcore=f"{amount}m", memory=str(amount)) for name, amount in due.items()],
            **{"application.sort.priority": priorities},
        )
    )
    rm.node(vcore=10_000, memory=10_000)
    for name, amount in used.items():
        rm.app(name, f"root.{name}")
        rm.ask(name, "used", vcore=amount, memory=amount)
    rm.schedule()
    # Asks too small to change the order.
    for name, priority in urgency.items():
        rm.ask(name, "next", priority=priority, gpu=1)
    rm.node("gpus", gpu=4)
    assert in_order(rm) == expected


def test_fairness_comes_first_if_priorities_are_disabled() -> None:
    rm = RM(root(queue("a"), queue("b"), **{"application.sort.priority": "disabled"}))
    rm.node(vcore=10)
    for name, priority in (("a", 9), ("b", 0)):
        rm.app(name, f"root.{name}")
        rm.ask(name, count=2, priority=priority, vcore=1)
    assert in_order(rm) == ["a", "b", "a", "b"]


def test_fairness_applies_at_every_level() -> None:
    rm = RM(root(queue("p", queue("a"), queue("b")), queue("q", queue("c"))))
    for name, path in (("a", "root.p.a"), ("b", "root.p.b"), ("c", "root.q.c")):
        rm.app(name, path)
        rm.ask(name, count=4, vcore=1)
    rm.node(vcore=8)
    assert in_order(rm) == ["a", "c", "b", "c", "a", "c", "b", "c"]


def test_quotas_apply_at_every_level() -> None:
    limited = queue("p", queue("a", resources={"max": {"vcore": "1m"}}), queue("b"))
    limited["resources"] = {"max": {"vcore": "3m"}}
    rm = RM(root(limited))
    for name in ("a", "b"):
        rm.app(name, f"root.p.{name}")
        rm.ask(name, count=4, vcore=1)
    rm.node(vcore=8)
    assert sorted(in_order(rm)) == ["a", "b", "b"]
    rm.release("b", uuid=next(uuid for uuid, one in rm.running.items() if one.application_id == "b"))
    assert in_order(rm) == ["b"], "a has its own quota full"


def test_raised_quota_places_pending_asks() -> None:
    def config(most: str) -> str:
        return root(queue("a", resources={"max": {"vcore": most}}))

    rm = RM(config("2m"))
    rm.app()
    rm.ask(count=4, vcore=1)
    rm.node(vcore=8)
    assert len(rm.schedule()) == 2
    rm.reload(config("3m"))
    assert len(rm.schedule()) == 1
    rm.reload(config("1m"))
    assert len(rm.running) == 3, "what runs is left alone"
    for uuid in list(rm.running)[:2]:
        rm.release(uuid=uuid)
    assert rm.schedule() == []
    rm.release(uuid=next(iter(rm.running)))
    assert len(rm.schedule()) == 1


# -- third-party policies ----------------------------------------------------------------------------------


class ByName(api.QueueSortPolicy):
    """Orders queues by name, backwards, and reads every attribute that a policy can see."""

    name = "by-name"

    def key(self, queue: api.Queue) -> list[int]:
        assert queue.parent is not None
        assert queue.parent.path == "root"
        assert queue.max is None
        assert queue.guaranteed == {}
        assert queue.total == queue.fair_max
        assert queue.pending["vcore"] > 0
        return [-ord(letter) for letter in queue.path]


def test_a_policy_of_a_third_party() -> None:
    registry = with_plugins(queue_sort_policies=[ByName])
    rm = RM(root(queue("a"), queue("b"), queue("c"), **{"queue.sort.policy": "by-name"}), registry)
    for name in ("a", "b", "c"):
        rm.app(name, f"root.{name}")
        rm.ask(name, vcore=1)
    rm.node(vcore=8)
    assert in_order(rm) == ["c", "b", "a"]
    assert rm.failures() == []


class Aging(api.QueueSortPolicy):
    """Prefers one queue in even minutes, the other in odd ones."""

    name = "aging"
    refresh_every = 60
    clock: Any = None

    def key(self, queue: api.Queue) -> int:
        minute = Aging.clock.now() // (60 * 10**9)
        return int((minute + ord(queue.path[-1])) % 2)


def test_queue_keys_may_be_time_dependent() -> None:
    registry = with_plugins(queue_sort_policies=[Aging])
    rm = RM(root(queue("a"), queue("b"), **{"queue.sort.policy": "aging"}), registry)
    Aging.clock = rm.clock
    for name in ("a", "b"):
        rm.app(name, f"root.{name}")
        rm.ask(name, count=9, vcore=1)
    rm.node(vcore=18)
    assert [app_id for app_id, _, _ in rm.schedule(2)] == ["b", "b"]
    rm.pass_time(60)
    assert [app_id for app_id, _, _ in rm.schedule(2)] == ["a", "a"]
