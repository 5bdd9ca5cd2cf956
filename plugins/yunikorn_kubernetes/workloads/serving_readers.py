"""Readers of groups of pods that serve or compute together: LeaderWorkerSets and Ray clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.api import hookimpl
from yunikorn_kubernetes.workloads.workload_reader import (
    WorkloadGang,
    WorkloadReader,
    WorkloadRole,
    annotations_of,
    number_in,
)

if TYPE_CHECKING:
    from yunikorn_kubernetes.objects import Json, Pod

GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
"""Annotation: each group has a domain of its own, and workers are made when their leader has a node there."""
LEADER, WORKERS = "leader", "workers"
NODE_TYPE, RAY_GROUP = "ray.io/node-type", "ray.io/group"
HEAD = "head"


class LeaderWorkerSetReader(WorkloadReader):
    """LeaderWorkerSet: a gang for each group, which is a leader and its workers."""

    name = "LeaderWorkerSet"
    group, kind, plural = "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "leaderworkersets"
    name_label = "leaderworkerset.sigs.k8s.io/name"
    index_label = WORKER_INDEX

    def part(self, pod: Pod) -> str:
        """Return the index of the group."""
        return pod.metadata.labels.get(GROUP_INDEX, "")

    def role(self, pod: Pod) -> str:
        """Return `leader` or `workers`."""
        return LEADER if pod.metadata.labels.get(WORKER_INDEX) == "0" else WORKERS

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return the gang of the group; of the workers alone if they are made after the leader starts."""
        spec = owner.get("spec") or {}
        size = number_in(spec.get("leaderWorkerTemplate") or {}, "size", 1)
        workers = WorkloadRole(WORKERS, size - 1)
        if EXCLUSIVE not in annotations_of(owner) and spec.get("startupPolicy") != "LeaderReady":
            return WorkloadGang((WorkloadRole(LEADER, 1), workers), f"size is {size}")
        return WorkloadGang((workers,), f"size is {size}, and the leader starts first")


class RayClusterReader(WorkloadReader):
    """RayCluster: a gang of the head and the least number of workers of each group."""

    name = "RayCluster"
    group, kind, plural = "ray.io", "RayCluster", "rayclusters"

    def recognises(self, pod: Pod) -> bool:
        """Return True for pods with a type of node; others, such as hooks, are not counted in the sizes."""
        return NODE_TYPE in pod.metadata.labels

    def role(self, pod: Pod) -> str:
        """Return `head`, or the name of the group of workers."""
        labels = pod.metadata.labels
        return HEAD if labels.get(NODE_TYPE) == HEAD else f"group {labels.get(RAY_GROUP, '')}"

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return the gang of the cluster."""
        roles = [WorkloadRole(HEAD, 1)]
        for group in (owner.get("spec") or {}).get("workerGroupSpecs") or []:
            if group.get("suspend"):
                continue
            hosts = number_in(group, "numOfHosts", 1)
            least = number_in(group, "minReplicas", 0)
            replicas = max(number_in(group, "replicas", least), least)
            minimum = least * hosts if least else None
            if replicas:
                name = f"group {group.get('groupName', '')}"
                roles.append(WorkloadRole(name, replicas * hosts, minimum, step=hosts))
        text = " and ".join(f"{role.needed} of {role.name}" for role in roles)
        return WorkloadGang(tuple(roles), text)


@hookimpl
def yunikorn_workload_readers() -> list[type[WorkloadReader]]:
    """Return the readers of this module."""
    return [LeaderWorkerSetReader, RayClusterReader]
