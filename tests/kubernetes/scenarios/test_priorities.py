"""Waiting pods run in the order of priorities, of queues' shares, and of their creation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import node, phase, pod, priority_class
from tests.kubernetes.scenarios.gangs import unique
from tests.kubernetes.scheduling import Scheduled

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: equal, properties: {application.sort.policy: fifo}}
          - name: ranked
            queues:
              - {name: low, properties: {priority.offset: "5"}}
              - {name: high, properties: {priority.offset: "50"}}
              - {name: hidden, properties: {priority.policy: fence}}
          - name: shared
            properties: {application.sort.policy: fair}
            queues:
              - {name: a}
              - {name: b}
              - {name: c, resources: {guaranteed: {vcore: 16}}}
          - {name: apps, properties: {application.sort.policy: fair}}
"""
OURS = "yunikorn.apache.org/queue"


@pytest.fixture
def queues(scheduled: Scheduled) -> Iterator[Scheduled]:
    """A scheduler with queues of different priorities, and three PriorityClasses."""
    with scheduled.queues(QUEUES):
        for name, value in (("low", -10), ("normal", 10), ("high", 100)):
            scheduled.create(priority_class(name, value))
        yield scheduled


def pods(count: int, prefix: str, queue: str) -> list[Obj]:
    """Return pods `PREFIX-0` and so on of one application."""
    application = unique(prefix)
    return [pod(f"{prefix}-{number}", application=application, queue=queue) for number in range(count)]


def wait_all(queues: Scheduled, *waiting: Obj) -> None:
    """Create pods without a node for them, and wait until each is reported as waiting."""
    queues.create(*waiting)
    for one in waiting:
        queues.pending(one["metadata"]["name"])


def runs_next(queues: Scheduled, count: int, cpu: int) -> set[str]:
    """Make a node with this number of CPUs; return the names of the pods that run then."""
    queues.make_nodes(node(f"cpus-{cpu}-{count}", cpu=str(cpu)))
    return set(queues.running(count))


def test_requests_of_one_application_run_by_priority(queues: Scheduled) -> None:
    common: dict[str, Any] = {"application": unique("app"), "queue": "root.equal"}
    wait_all(
        queues,
        pod("low", priorityClassName="low", **common),
        pod("normal", priorityClassName="normal", **common),
        pod("high", priorityClassName="high", **common),
    )
    assert runs_next(queues, 1, 1) == {"high"}
    assert runs_next(queues, 2, 1) == {"high", "normal"}


def test_applications_of_one_queue_run_by_priority(queues: Scheduled) -> None:
    wait_all(
        queues,
        pod("first", application=unique("app-1"), queue="root.equal", priorityClassName="low"),
        pod("second", application=unique("app-2"), queue="root.equal", priorityClassName="high"),
        pod("third", application=unique("app-3"), queue="root.equal", priorityClassName="normal"),
    )
    assert runs_next(queues, 2, 2) == {"second", "third"}


def test_queues_run_by_priority_and_offset(queues: Scheduled) -> None:
    wait_all(
        queues,
        pod("low", application=unique("app-1"), queue="root.ranked.low", priorityClassName="normal"),
        pod("high", application=unique("app-2"), queue="root.ranked.high"),
        pod("hidden", application=unique("app-3"), queue="root.ranked.hidden", priorityClassName="high"),
    )
    assert runs_next(queues, 1, 1) == {"high"}
    assert runs_next(queues, 2, 1) == {"high", "low"}


def test_applications_of_equal_priority_run_in_the_order_of_creation(queues: Scheduled) -> None:
    queues.create(*pods(2, "first", "root.equal"))
    # Times of creation are whole seconds: the other application begins in a later one.
    made = queues.kubectl.get("Pod", "first-0")["metadata"]["creationTimestamp"]
    while queues.kubectl.create(pod("clock", scheduler="none"))["metadata"]["creationTimestamp"] == made:
        queues.kubectl.delete("Pod", "clock", grace=0)
    wait_all(queues, *pods(2, "second", "root.equal"))
    assert runs_next(queues, 2, 2) == {"first-0", "first-1"}


def shares(queues: Scheduled, label: str) -> Counter[str]:
    """Return the number of running pods for each value of a label."""
    running = [one for one in queues.kubectl.list("Pod", "default") if phase(one) == "Running"]
    return Counter(one["metadata"]["labels"][label] for one in running)


def test_queues_share_room_equally(queues: Scheduled) -> None:
    for queue in ("root.shared.a", "root.shared.b"):
        queues.create(*pods(6, queue[-1], queue))
    queues.pending("b-5")
    queues.make_nodes(node("only", cpu="8"))
    queues.running(8)
    assert shares(queues, OURS) == {"root.shared.a": 4, "root.shared.b": 4}


def test_a_guarantee_weighs_in_the_shares_of_queues(queues: Scheduled) -> None:
    """The guarantee is twice the cluster, with which a queue without one is compared."""
    for queue in ("root.shared.a", "root.shared.c"):
        queues.create(*pods(6, queue[-1], queue))
    queues.pending("c-5")
    queues.make_nodes(node("only", cpu="8"))
    queues.running(8)
    assert shares(queues, OURS) == {"root.shared.a": 3, "root.shared.c": 5}


def test_applications_of_a_fair_queue_share_room_equally(queues: Scheduled) -> None:
    for name in ("first", "second"):
        queues.create(*pods(4, name, "root.apps"))
    queues.pending("second-3")
    queues.make_nodes(node("only", cpu="4"))
    queues.running(4)
    assert sorted(shares(queues, "yunikorn.apache.org/app-id").values()) == [2, 2]
