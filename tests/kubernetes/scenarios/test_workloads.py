"""Gangs of workloads without annotations, made by the controllers of a real cluster."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import job, node, node_of, phase, pod
from tests.kubernetes.scenarios.gangs import bound
from tests.kubernetes.scheduling import Scheduled

INDEXED = {"completionMode": "Indexed"}


def indexed(name: str, pods: int, **arguments: Any) -> Obj:
    """Return an Indexed Job whose pods name no application."""
    fields = {**INDEXED, **arguments.pop("job_fields", {})}
    return job(name, pods=pods, job_fields=fields, application="", **arguments)


def test_pods_of_an_indexed_job_start_together(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(indexed("train", 3))
    pods = scheduled.wait_pods(lambda pods: len(pods) == 3)
    for name in pods:
        text = scheduled.pending(name, "no room for its whole gang at once")
        assert text.startswith("gang of 3 pods of Job default/train")
    # The room that does not suffice remains free for others.
    scheduled.create(pod("other", cpu="2"))
    assert scheduled.node_of("other") == "small"
    scheduled.make_nodes(node("large", cpu="3"))
    placed = scheduled.running(4)
    assert sorted(placed.values()) == ["large", "large", "large", "small"]


def test_pods_of_a_plain_job_start_one_by_one(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(job("work", pods=3, application=""))
    scheduled.running(2)


def test_a_member_that_fails_is_replaced_although_another_has_succeeded(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="3"))
    fields = {"backoffLimit": 6}
    scheduled.create(indexed("train", 3, job_fields=fields))
    scheduled.running(3)
    pods = {one["metadata"]["name"]: one for one in scheduled.kubectl.list("Pod", "default")}
    first, second = sorted(pods)[:2]
    for name, end in ((first, "Succeeded"), (second, "Failed")):
        scheduled.kubectl.patch("Pod", name, {"status": {"phase": end}}, subresource="status")

    def replaced(found: list[Obj]) -> bool:
        running = [one for one in found if phase(one) == "Running"]
        return len(running) == 2 and bool({one["metadata"]["name"] for one in running} - {*pods})

    found = scheduled.wait_pods(replaced)
    assert bound(found.values()) == 4
    assert {node_of(one) for one in found.values()} == {"only"}
