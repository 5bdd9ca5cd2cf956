"""Gangs survive the loss of nodes, pods, schedulers and of the API server while they begin."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.objects import QUEUE, daemon_set, job, node, node_of, nodes, phase, pod
from tests.kubernetes.scenarios.gangs import (
    bound,
    gang,
    group,
    members,
    placeholders,
    real,
    unique,
    wait_for_members,
    wait_for_placeholders,
)
from tests.kubernetes.scheduling import Scheduled, scheduling

GUARANTEED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 1s}
        queues: [{name: batch}, {name: gangs, resources: {guaranteed: {vcore: 3}}}]
"""


def test_a_gang_gets_over_the_loss_of_a_node(scheduled: Scheduled) -> None:
    """The placeholders on the node are deleted with it, and are missing."""
    scheduled.make_nodes(*nodes(2, cpu="1"))
    scheduled.create(*members(3, gang(group())))
    held = wait_for_placeholders(scheduled, 3, on_nodes=2)
    lost = next(one for one in held if node_of(one) == "node-0")
    scheduled.kubectl.delete("Node", "node-0")
    # The garbage collector of pods would do this a minute later.
    scheduled.kubectl.delete("Pod", lost["metadata"]["name"], grace=0)
    scheduled.make_nodes(node("new", cpu="2"))
    assert sorted(wait_for_members(scheduled, 3).values()) == ["new", "new", "node-1"]


def test_a_gang_with_preempted_placeholders_waits_for_room_again(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2, cpu="1"))
    scheduled.create(*members(3, gang(group())))
    wait_for_placeholders(scheduled, 3, on_nodes=2)
    scheduled.create(daemon_set("agent", application=unique("agent")))
    scheduled.running(2, labels="app=agent")
    held = wait_for_placeholders(scheduled, 3, on_nodes=0)
    assert not bound(real(scheduled.kubectl.list("Pod", "default", labels="!app")))
    assert len(held) == 3
    scheduled.make_nodes(node("new", cpu="4"))
    scheduled.running(3, labels="!app")
    assert len(wait_for_members(scheduled, 3 + 3)) == 6


def test_an_atomic_gang_that_was_half_bound_is_completed(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path) as running:
        running.make_nodes(*nodes(4, cpu="8"))
        annotations = gang(group(members=30), style="Atomic")
        running.create(job("train", pods=30, application="train", annotations=annotations))
        running.wait_pods(lambda pods: bound(pods) >= 5)
        running.scheduler.kill()
    with scheduling(cluster, tmp_path) as running:
        wait_for_members(running, 30)
        assert max(Counter(map(node_of, running.kubectl.list("Pod", "default"))).values()) <= 8


def test_a_gang_gets_its_guarantee_by_preemption(scheduled: Scheduled) -> None:
    with scheduled.queues(GUARANTEED):
        scheduled.make_nodes(node("only", cpu="4"))
        application = unique("low")
        scheduled.create(
            *(pod(f"low-{number}", application=application, queue="root.batch") for number in range(4))
        )
        scheduled.running(4)
        scheduled.create(*members(3, gang(group()), queue="root.gangs"))
        scheduled.running(3, labels=f"{QUEUE}=root.gangs")
        wait_for_members(scheduled, 4)


def test_members_that_fail_are_replaced_outside_of_the_gang(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="4"))
    fields = {"backoffLimit": 6}
    annotations = gang(group(members=3))
    scheduled.create(
        job("train", pods=3, application=unique("gang"), annotations=annotations, job_fields=fields)
    )
    before = wait_for_members(scheduled, 3)
    failing = {"metadata": {"annotations": {"tests.yunikorn/fails-after": "0s"}}}
    scheduled.kubectl.patch("Pod", sorted(before)[0], failing)
    scheduled.wait_pods(lambda pods: sum(phase(one) == "Failed" for one in pods) == 1)
    after = wait_for_members(scheduled, 3)
    assert len(before.keys() & after.keys()) == 2


def test_gangs_begin_during_a_restart_of_the_api_server(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path) as running:
        running.make_nodes(*nodes(2, cpu="8"))
        for name in ("a", "b"):
            running.create(job(name, pods=8, application=name, annotations=gang(group(members=8))))
        running.wait_pods(lambda pods: bound(placeholders(pods)) >= 2)
        cluster.restart_api_server(kill=True)
        wait_for_members(running, 16)
        # A controller that lost the answer to a creation makes another pod, and removes one later.
        running.wait_pods(lambda pods: Counter(map(node_of, real(pods))) == {"node-0": 8, "node-1": 8})
