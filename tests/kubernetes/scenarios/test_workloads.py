"""Gangs of workloads without annotations, made by the controllers of a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, Obj
from tests.kubernetes.cluster.objects import job, namespace, node, node_of, phase, pod
from tests.kubernetes.scenarios.gangs import bound, unique
from tests.kubernetes.scheduling import Scheduled, scheduling

KINDS = "yunikorn.apache.org/namespace.workloadKinds"
INDEXED = {"completionMode": "Indexed"}
WAYS = pytest.mark.parametrize("way", ["PodGroup", "Job"])
"""Kinds of objects that tell the size of the gang: the controller makes a PodGroup for the Job."""


def place_for(scheduled: Scheduled, way: str) -> str:
    """Return a new namespace in which only this kind is recognised."""
    made = scheduled.kubectl.create(namespace(unique("kinds"), annotations={KINDS: way}))
    return str(made["metadata"]["name"])


def indexed(name: str, place: str, pods: int, **fields: Any) -> Obj:
    """Return an Indexed Job whose pods name no application."""
    return job(name, place, pods=pods, job_fields={**INDEXED, **fields}, application="")


def group_condition(scheduled: Scheduled, place: str, wanted: str) -> Obj:
    """Wait until the only PodGroup of a namespace is scheduled, or not; return the condition."""

    def there(groups: list[Obj]) -> list[Obj] | None:
        assert len(groups) <= 1
        conditions = [one for group in groups for one in group.get("status", {}).get("conditions", ())]
        return [one for one in conditions if (one["type"], one["status"]) == ("PodGroupScheduled", wanted)]

    return scheduled.kubectl.wait("PodGroup", there, place)[0]


def test_a_job_makes_a_pod_group_that_is_scheduled(scheduled: Scheduled) -> None:
    place = place_for(scheduled, "all")
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(indexed("train", place, 3))
    found = group_condition(scheduled, place, "False")
    assert found["reason"] == "Unschedulable"
    assert "no room for its whole gang at once" in found["message"]
    scheduled.make_nodes(node("large", cpu="3"))
    scheduled.running(3, place)
    assert group_condition(scheduled, place, "True")["reason"] == "Scheduled"
    # The finalizer of the group goes when its pods are gone.
    scheduled.kubectl.delete("Job", "train", place)
    scheduled.kubectl.wait("PodGroup", lambda groups: None if groups else [True], place)


@WAYS
def test_pods_of_an_indexed_job_start_together(scheduled: Scheduled, way: str) -> None:
    place = place_for(scheduled, way)
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(indexed("train", place, 3))
    pods = scheduled.wait_pods(lambda pods: len(pods) == 3, place)
    for name in pods:
        text = scheduled.pending(name, "no room for its whole gang at once", place)
        assert text.startswith(f"gang of 3 pods of {way} {place}/train")
    # The room that does not suffice remains free for others.
    scheduled.create(pod("other", cpu="2"))
    assert scheduled.node_of("other") == "small"
    scheduled.make_nodes(node("large", cpu="3"))
    assert {*scheduled.running(3, place).values()} == {"large"}


def test_pods_of_a_plain_job_start_one_by_one(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(job("work", pods=3, application=""))
    scheduled.running(2)


@WAYS
def test_a_member_that_fails_is_replaced_although_another_has_succeeded(
    scheduled: Scheduled, way: str
) -> None:
    place = place_for(scheduled, way)
    scheduled.make_nodes(node("only", cpu="3"))
    scheduled.create(indexed("train", place, 3, backoffLimit=6))
    scheduled.running(3, place)
    pods = sorted(one["metadata"]["name"] for one in scheduled.kubectl.list("Pod", place))
    for name, end in zip(pods, ("Succeeded", "Failed"), strict=False):
        scheduled.kubectl.patch("Pod", name, {"status": {"phase": end}}, place, subresource="status")

    def replaced(found: list[Obj]) -> bool:
        running = {one["metadata"]["name"] for one in found if phase(one) == "Running"}
        return len(running) == 2 and bool(running - {*pods})

    found = scheduled.wait_pods(replaced, place)
    assert bound(found.values()) == 4
    assert {node_of(one) for one in found.values()} == {"only"}


@WAYS
def test_a_gang_that_waits_is_whole_after_a_restart(cluster: Cluster, tmp_path: Path, way: str) -> None:
    with scheduling(cluster, tmp_path) as scheduled:
        place = place_for(scheduled, way)
        scheduled.make_nodes(node("small", cpu="2"))
        scheduled.create(indexed("train", place, 3))
        pods = scheduled.wait_pods(lambda pods: len(pods) == 3, place)
        scheduled.pending(min(pods), "no room for its whole gang at once", place)
        scheduled.scheduler.kill()
    with scheduling(cluster, tmp_path) as scheduled:
        scheduled.make_nodes(node("more", cpu="1"))
        scheduled.running(3, place)
