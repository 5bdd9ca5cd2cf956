"""Queues get their guarantees back by preemption, DaemonSets their nodes; victims end with their grace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import (
    container,
    daemon_set,
    node,
    node_of,
    nodes,
    phase,
    pod,
    priority_class,
)
from tests.kubernetes.scenarios.gangs import unique
from tests.kubernetes.scheduling import Scheduled

ALLOW = "yunikorn.apache.org/allow-preemption"
FIRST = "first-pod"
POD_GROUPS = "scheduling.k8s.io/v1alpha2"
STOPS_AFTER = "tests.yunikorn/stops-after"
QUEUES = """
partitions:
  - name: default
    preemption: {quotapreemptionenabled: true}
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 1s}
        queues:
          - {name: batch}
          - {name: owner, resources: {guaranteed: {vcore: 2}}}
          - {name: shielded, resources: {guaranteed: {vcore: 4}}}
          - name: fenced
            properties: {preemption.policy: fence}
            queues:
              - {name: batch}
              - {name: owner, resources: {guaranteed: {vcore: 2}}}
          - name: ranked
            queues:
              - {name: low, properties: {priority.offset: "-100"}}
              - {name: high, properties: {priority.offset: "100"}}
              - {name: owner, resources: {guaranteed: {vcore: 1}}}
          - {name: quota, resources: {max: {vcore: 4}}, properties: {quota.preemption.delay: 1s}}
"""


@pytest.fixture
def queues(scheduled: Scheduled) -> Iterator[Scheduled]:
    """A scheduler whose queue `owner` has a guarantee."""
    with scheduled.queues(QUEUES):
        yield scheduled


def fill(queues: Scheduled, count: int, queue: str, *, prefix: str = "low", **arguments: Any) -> None:
    """Start pods of one CPU in an application of their own, and wait until they run.

    The first pod of an application is never ended for others: here one without requests.
    """
    before = len([one for one in queues.kubectl.list("Pod", "default") if phase(one) == "Running"])
    common: dict[str, Any] = {"application": unique(prefix), "queue": queue}
    queues.create(pod(f"{prefix}-{FIRST}", containers=[container()], **common))
    queues.create(*(pod(f"{prefix}-{number}", **common, **arguments) for number in range(count)))
    queues.running(before + 1 + count)


def left(queues: Scheduled) -> set[str]:
    """Return the names of the pods that are not being deleted, without those that `fill` starts first."""
    pods = queues.kubectl.list("Pod", "default")
    names = {one["metadata"]["name"] for one in pods if not one["metadata"].get("deletionTimestamp")}
    return {name for name in names if not name.endswith(FIRST)}


def owner(name: str, queue: str = "root.owner", **arguments: Any) -> Obj:
    """Return a pod of a queue with a guarantee."""
    return pod(name, application=unique("owner"), queue=queue, **arguments)


def test_a_queue_gets_its_guarantee_back(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="4"))
    fill(queues, 4, "root.batch")
    queues.create(owner("first"))
    assert queues.node_of("first") == "only"
    queues.create(owner("second"))
    assert queues.node_of("second") == "only"
    assert len(left(queues)) == 4
    # Beyond the guarantee nothing more is ended.
    queues.create(owner("third"))
    queues.pending("third")
    assert len(left(queues)) == 5


def test_a_victim_has_an_event_that_names_the_reason(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="1"))
    fill(queues, 1, "root.batch")
    queues.create(owner("first"))
    queues.node_of("first")
    notes = queues.events("Informational", regarding="low-0")
    assert any("Preempted by" in note and "root.owner" in note for note in notes)


def test_queues_at_or_below_their_guarantee_lose_nothing(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="4"))
    fill(queues, 4, "root.shielded")
    queues.create(owner("first"))
    queues.pending("first", "no suitable victims")
    assert len(left(queues)) == 5
    # Above its guarantee a queue gives what is above it.
    queues.make_nodes(node("more", cpu="1"))
    assert queues.node_of("first") == "more"
    queues.kubectl.delete("Pod", "first")
    fill(queues, 1, "root.shielded", prefix="above")
    queues.create(owner("second"))
    queues.node_of("second")
    assert len(left(queues)) == 5


def test_requests_of_a_fenced_queue_end_nothing_outside(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="2"))
    fill(queues, 1, "root.batch", prefix="outside")
    fill(queues, 1, "root.fenced.batch", prefix="inside")
    names = ["first", "second"]
    queues.create(*(owner(name, "root.fenced.owner") for name in names))
    queues.kubectl.wait_gone("Pod", "inside-0")
    queues.running(4)
    waiting = next(name for name in names if not node_of(queues.kubectl.get("Pod", name)))
    queues.pending(waiting)
    assert left(queues) == {"outside-0", *names}


def test_queues_of_low_priority_lose_first(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="2"))
    fill(queues, 1, "root.ranked.high", prefix="high")
    fill(queues, 1, "root.ranked.low", prefix="low")
    queues.create(owner("first", "root.ranked.owner"))
    queues.node_of("first")
    assert left(queues) == {"high-0", "first"}


def test_a_queue_of_higher_priority_is_never_a_victim(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="1"))
    fill(queues, 1, "root.ranked.high", prefix="high")
    queues.create(owner("first", "root.ranked.owner"))
    queues.pending("first")
    assert left(queues) == {"high-0", "first"}


def test_pods_of_higher_priority_are_spared(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="2"))
    queues.create(priority_class("urgent", 1000), priority_class("normal", 10))
    fill(queues, 1, "root.batch", prefix="normal", priorityClassName="normal")
    fill(queues, 1, "root.batch", prefix="urgent", priorityClassName="urgent")
    names = ["first", "second"]
    queues.create(*(owner(name, priorityClassName="normal") for name in names))
    queues.kubectl.wait_gone("Pod", "normal-0")
    queues.running(4)
    assert left(queues) == {"urgent-0", *names}


def test_an_annotation_of_a_pod_forbids_its_preemption(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="2"))
    fill(queues, 1, "root.batch", prefix="free", annotations={ALLOW: "true"})
    fill(queues, 1, "root.batch", prefix="kept", annotations={ALLOW: "false"})
    queues.create(owner("first"))
    queues.node_of("first")
    assert left(queues) == {"kept-0", "first"}


def test_an_annotation_of_a_priority_class_forbids_preemption_of_its_pods(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="2"))
    queues.create(priority_class("kept", 0, annotations={ALLOW: "false"}))
    fill(queues, 1, "root.batch", prefix="plain")
    fill(queues, 1, "root.batch", prefix="kept", priorityClassName="kept")
    queues.create(owner("first"))
    queues.node_of("first")
    assert left(queues) == {"kept-0", "first"}


def test_a_pod_that_never_preempts_waits(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="1"))
    fill(queues, 1, "root.batch")
    polite = {**priority_class("polite", 0), "preemptionPolicy": "Never"}
    queues.create(polite, owner("polite", priorityClassName="polite"))
    queues.pending("polite")
    queues.create(owner("other"))
    queues.node_of("other")
    assert left(queues) == {"polite", "other"}


def test_the_successor_waits_for_the_grace_of_its_victim(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="1"))
    slow: dict[str, Any] = {"annotations": {STOPS_AFTER: "2s"}, "terminationGracePeriodSeconds": 25}
    fill(queues, 1, "root.batch", **slow)
    version = queues.kubectl.request("GET", "/api/v1/pods", limit="1")["metadata"]["resourceVersion"]
    queues.create(owner("first"))
    story: list[str] = []
    for change, one in queues.kubectl.watch("Pod", "default", version):
        told = tell(change, one)
        if told and told not in story:
            story.append(told)
        if told == "first is bound":
            break
    assert story == ["low-0 ends within 25 s", "low-0 is gone", "first is bound"]


@pytest.mark.parametrize(("mode", "least", "ends"), [("Pod", 2, 1), ("Pod", 3, 3), ("PodGroup", 2, 3)])
def test_members_of_a_pod_group_end_by_its_disruption_mode_and_say_so(
    queues: Scheduled, mode: str, least: int, ends: int
) -> None:
    queues.make_nodes(node("only", cpu="3"))
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}, "disruptionMode": mode}
    meta = {"name": "ring", "namespace": "default"}
    queues.create({"apiVersion": POD_GROUPS, "kind": "PodGroup", "metadata": meta, "spec": spec})
    ring: dict[str, Any] = {"schedulingGroup": {"podGroupName": "ring"}, "queue": "root.batch"}
    pods = [pod(f"ring-{number}", **ring) for number in range(3)]
    for one in pods:
        # A finalizer keeps the pods, so that their last conditions can be read.
        one["metadata"]["finalizers"] = ["tests.yunikorn/kept"]
    queues.create(*pods)
    queues.running(3)
    queues.create(owner("first"))

    def preempted(found: list[Obj]) -> list[Obj]:
        wanted = ("DisruptionTarget", "True", "PreemptionByScheduler")
        conditions = [(one, each) for one in found for each in one.get("status", {}).get("conditions") or ()]
        return [
            one for one, each in conditions if (each["type"], each["status"], each.get("reason")) == wanted
        ]

    victims = queues.kubectl.wait("Pod", lambda found: (them := preempted(found))[ends - 1 :] and them)
    assert len(victims) == ends
    if ends == 3:
        queues.kubectl.wait("PodGroup", preempted)
    for one in pods:
        queues.kubectl.patch("Pod", one["metadata"]["name"], {"metadata": {"finalizers": None}})
    assert queues.node_of("first") == "only"
    assert len(left(queues) - {"first"}) == 3 - ends
    # A group that does without the pod is no target.
    assert bool(preempted(queues.kubectl.list("PodGroup"))) == (ends == 3)


def tell(change: str, one: Obj) -> str:
    """Return what a change of a pod means for preemption."""
    name, meta = one["metadata"]["name"], one["metadata"]
    if name == "first":
        return "first is bound" if node_of(one) else ""
    if change == "DELETED":
        return f"{name} is gone"
    grace = meta.get("deletionGracePeriodSeconds", 0)
    return f"{name} ends within {grace} s" if grace else ""


def test_a_daemon_pod_makes_room_on_its_node(queues: Scheduled) -> None:
    queues.make_nodes(*nodes(2, cpu="2"))
    fill(queues, 4, "root.shielded")
    queues.create(daemon_set("agent", queue="root.batch", application=unique("agent")))
    agents = queues.running(2, labels="app=agent")
    assert sorted(agents.values()) == ["node-0", "node-1"]
    assert len(left(queues)) == 2 + 2


def test_a_lowered_quota_ends_what_is_above_it(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="8"))
    fill(queues, 4, "root.quota", prefix="quota")
    fill(queues, 4, "root.batch", prefix="other")
    queues.configure({"queues.yaml": QUEUES.replace("max: {vcore: 4}", "max: {vcore: 1}")})
    # Each application has its first pod, without requests, and the pods of one CPU each that may remain.
    queues.running(1 + 1 + 1 + 4)
    assert sorted(name for name in left(queues) if name.startswith("other")) == [
        f"other-{number}" for number in range(4)
    ]


def test_a_lowered_quota_without_preemption_ends_nothing(queues: Scheduled) -> None:
    queues.make_nodes(node("only", cpu="8"))
    text = QUEUES.replace("quotapreemptionenabled: true", "quotapreemptionenabled: false")
    queues.configure({"queues.yaml": text})
    fill(queues, 4, "root.quota", prefix="quota")
    queues.configure({"queues.yaml": text.replace("max: {vcore: 4}", "max: {vcore: 1}")})
    queues.create(pod("more", application=unique("quota"), queue="root.quota"))
    queues.pending("more")
    assert len(left(queues)) == 5
