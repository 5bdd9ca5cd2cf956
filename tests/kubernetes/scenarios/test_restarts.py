"""A scheduler that was killed at any moment is followed by one that continues, from the objects alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import Cluster, Kubectl, Obj
from tests.kubernetes.cluster.objects import deployment, job, node, node_of, nodes, phase, pod
from tests.kubernetes.deployment import NAMESPACE
from tests.kubernetes.scenarios.gangs import (
    bound,
    gang,
    group,
    members,
    placeholders,
    real,
    wait_for_members,
    wait_for_placeholders,
)
from tests.kubernetes.scheduling import CONFIGS, QUEUES, Scheduled, scheduling

TEAM = QUEUES.replace("name: provided, create: true", "name: provided, create: false").replace(
    '"*"}', '"*", queues: [{name: team}, {name: other}]}'
)
"""Queues that are used only by name; without the name, a queue of the namespace."""
ONLY_NAMED = """
partitions:
  - name: default
    placementrules: [{name: provided, create: false}]
    queues: [{name: root, submitacl: "*", queues: [{name: other}]}]
"""
GUARANTEED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 1s}
        queues: [{name: batch}, {name: owner, resources: {guaranteed: {vcore: 1}}}]
"""


def placed(kubectl: Kubectl) -> dict[str, str]:
    """Return the nodes of all bound pods by name."""
    return {one["metadata"]["name"]: node_of(one) for one in kubectl.list("Pod", "default") if node_of(one)}


def used(kubectl: Kubectl) -> Counter[str]:
    """Return the number of pods that use each node; the pods of these tests request one CPU each."""
    pods = kubectl.list("Pod", "default")
    return Counter(node_of(one) for one in pods if phase(one) in ("Pending", "Running") and node_of(one))


def owners(found: list[Obj]) -> set[str]:
    """Return the uids of the owners of placeholders."""
    return {owner["uid"] for one in found for owner in one["metadata"]["ownerReferences"]}


def test_running_and_waiting_pods_and_a_half_placed_gang_continue(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path) as first:
        first.make_nodes(node("only", cpu="4"))
        first.create(deployment("web", replicas=2))
        first.running(2)
        first.create(*members(3, gang(group())))
        held = wait_for_placeholders(first, 3, on_nodes=2)
        first.create(pod("waiting"))
        first.pending("waiting")
        before = placed(first.kubectl)
        first.scheduler.kill()
        # The third placeholder is lost while no scheduler runs.
        [lost] = [one for one in held if not node_of(one)]
        first.kubectl.delete("Pod", lost["metadata"]["name"])
        originator = first.kubectl.get("Pod", "gang-0")["metadata"]["uid"]
    with scheduling(cluster, tmp_path) as second:
        again = wait_for_placeholders(second, 3, on_nodes=2)
        assert owners(again) == owners(held) == {originator}
        assert placed(second.kubectl) == before
        second.make_nodes(node("more", cpu="2"))
        after = wait_for_members(second, 6)
        assert {name: after[name] for name in before if name.startswith("web")}.items() <= before.items()
        assert used(second.kubectl) == {"only": 4, "more": 2}


def wait_until_bound(running: Scheduled, least: int) -> None:
    """Wait until at least this number of real pods is bound."""
    running.wait_pods(lambda pods: bound(real(pods)) >= least)


def test_kills_while_gangs_start_lose_and_double_nothing(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path) as running:
        for name in ("a", "b", "c"):
            running.create(job(name, pods=4, application=name, annotations=gang(group(members=4))))
        # With nodes, the first gang might have replaced its placeholders before the last one has any.
        wait_for_placeholders(running, 12)
        running.make_nodes(*nodes(3, cpu="4"))
        running.wait_pods(lambda pods: bound(pods) > 0)
        running.scheduler.kill()
    for least in (4, 8):
        with scheduling(cluster, tmp_path) as running:
            wait_until_bound(running, least)
            running.scheduler.kill()
    with scheduling(cluster, tmp_path) as running:
        wait_for_members(running, 12)
        assert used(running.kubectl) == {"node-0": 4, "node-1": 4, "node-2": 4}


def test_what_ended_while_no_scheduler_ran_is_not_counted(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path) as first:
        first.make_nodes(*nodes(2, cpu="2"))
        first.create(*(pod(f"p{number}", application="app-1") for number in range(4)))
        before = first.running(4)
        first.scheduler.kill()
        kubectl = first.kubectl
    gone = [name for name, where in before.items() if where == "node-1"]
    kubectl.delete("Node", "node-1")
    for name in gone:
        kubectl.delete("Pod", name, grace=0)
    ended = next(name for name, where in before.items() if where == "node-0")
    kubectl.patch("Pod", ended, {"metadata": {"annotations": {"tests.yunikorn/succeeds-after": "0s"}}})
    kubectl.wait_for("Pod", ended, lambda one: phase(one) == "Succeeded")
    kubectl.create(pod("next", application="app-2"))
    with scheduling(cluster, tmp_path) as second:
        assert second.node_of("next") == "node-0"
        second.create(pod("last", application="app-2"))
        second.pending("last")
        [shown] = second.rest("/ws/v1/partition/default/nodes")
        assert shown["allocated"]["vcore"] == 2000


def test_a_preemption_continues_after_a_kill(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path, queues=GUARANTEED) as first:
        first.make_nodes(node("only", cpu="3"))
        slow: dict[str, Any] = {
            "annotations": {"tests.yunikorn/stops-after": "1h"},
            "terminationGracePeriodSeconds": 3600,
        }
        names = [f"low-{number}" for number in range(3)]
        first.create(*(pod(name, application="low", queue="root.batch", **slow) for name in names))
        first.running(3)
        first.create(pod("first", application="owner", queue="root.owner"))
        first.wait_pods(lambda pods: bool(ending(pods)))
        first.scheduler.kill()
        [victim] = ending(first.kubectl.list("Pod", "default"))
    with scheduling(cluster, tmp_path) as second:
        # The victim has not ended yet.
        assert not node_of(second.kubectl.get("Pod", "first"))
        second.kubectl.delete("Pod", victim, grace=0)
        assert second.node_of("first") == "only"
        assert ending(second.kubectl.list("Pod", "default")) == []
        assert set(placed(second.kubectl)) == {"first", *names} - {victim}


def ending(pods: list[Obj]) -> list[str]:
    """Return the names of the pods that are being deleted."""
    return [one["metadata"]["name"] for one in pods if "deletionTimestamp" in one["metadata"]]


def test_pods_of_a_removed_queue_continue_in_the_recovery_queue(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path, queues=TEAM) as first:
        first.make_nodes(node("only", cpu="4"))
        first.create(*(pod(f"p{number}", application="app-1", queue="root.team") for number in range(2)))
        before = first.running(2)
        first.scheduler.kill()
        first.kubectl.patch("ConfigMap", CONFIGS, {"data": {"queues.yaml": ONLY_NAMED}}, NAMESPACE)
    with scheduling(cluster, tmp_path) as second:
        assert second.running(2) == before
        recovered = second.rest("/ws/v1/partition/default/queue/root.@recovery@/applications")
        assert [(one["applicationID"], len(one["allocations"])) for one in recovered] == [("app-1", 2)]
        # Room that such pods use is not given away, and new applications cannot use that queue.
        second.create(pod("large", application="app-2", queue="root.other", cpu="3"))
        second.pending("large")
        second.create(pod("new", application="app-3", queue="root.team"))
        second.kubectl.wait_for("Pod", "new", lambda one: phase(one) == "Failed")
        second.kubectl.delete("Pod", "p0")
        assert second.node_of("large") == "only"


def test_a_gang_whose_time_was_over_during_a_restart_gets_no_placeholders(
    cluster: Cluster, tmp_path: Path
) -> None:
    with scheduling(cluster, tmp_path) as first:
        first.make_nodes(node("only", cpu="1"))
        first.create(*members(2, gang(group(members=2), style="Hard", timeout=3)))
        wait_for_placeholders(first, 2, on_nodes=1)
        first.scheduler.kill()
        for one in placeholders(first.kubectl.list("Pod", "default")):
            first.kubectl.delete("Pod", one["metadata"]["name"], grace=0)
        made = first.kubectl.get("Pod", "gang-1")["metadata"]["creationTimestamp"]
        passed = 0
        while passed < 4:
            clock = first.kubectl.create(pod("clock", scheduler="none"))
            passed += clock["metadata"]["creationTimestamp"] != made
            made = clock["metadata"]["creationTimestamp"]
            first.kubectl.delete("Pod", "clock", grace=0)
    with scheduling(cluster, tmp_path) as second:
        pods = second.wait_pods(lambda pods: [phase(one) for one in pods] == ["Failed", "Failed"])
        assert {one["status"]["reason"] for one in pods.values()} == {"ResourceReservationTimeout"}
