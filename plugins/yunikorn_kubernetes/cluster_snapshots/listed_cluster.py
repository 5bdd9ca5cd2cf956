"""A cluster that another scheduler runs, from the lists of its API server, as messages of a resource manager.

Objects are translated as the shim translates them when it recovers. In contrast to the shim, pods of all
schedulers are those of applications, because the question is what the scheduler would do with them.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator

import attrs

from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation, NewNodeInfo, PreemptionPolicy
from yunikorn_kubernetes.cluster_snapshots.namespace_queues import ResourceQuota, queues_of_namespaces
from yunikorn_kubernetes.names import APP_TAG_FORCE
from yunikorn_kubernetes.objects import (
    Namespace,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    PriorityClass,
)
from yunikorn_kubernetes.shim.pod_flow import is_leaving_unplaced
from yunikorn_kubernetes.shim.shim import PREDICATES
from yunikorn_kubernetes.shim.translator import References, Translator
from yunikorn_kubernetes.translation.pod_applications import (
    DEFAULT_NAMESPACE,
    ApplicationTerms,
    application_id,
    id_of_namespace,
    is_terminated,
)
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes
from yunikorn_kubernetes.volumes.stores import VolumeObject
from yunikorn_snapshots.other_clusters import OtherCluster, Report

RM = "kubernetes"
TEMPLATE = "pod-template-hash"
"""Label with the end of the name of a ReplicaSet that belongs to a Deployment."""
OF_NODES = frozenset({"DaemonSet", "Node"})
"""Kinds of owners whose pods belong to a node: they occupy it."""
ALWAYS_LACKING = (
    "run times: a cluster does not say how long a pod runs",
    "users and their groups, unless pods have the annotation yunikorn.apache.org/user.info",
    "times of placements: a pod is as old as its creation",
    "gangs: each pod is a request of its own",
)
"""Parts that no list of objects has."""


@attrs.frozen
class ListedObjects:
    """Objects of a cluster."""

    nodes: list[Node]
    pods: list[Pod]
    namespaces: list[Namespace] = attrs.field(factory=list)
    priority_classes: list[PriorityClass] = attrs.field(factory=list)
    quotas: list[ResourceQuota] = attrs.field(factory=list)
    storage: list[VolumeObject] = attrs.field(factory=list)
    unreadable: int = 0
    """Number of objects that could not be decoded."""


def cluster_of_objects(
    listed: ListedObjects, time: int, config: str = "", scheduler: str = ""
) -> OtherCluster:
    """Return a cluster at a time (ns), by default with a queue for each namespace.

    With the name of a `scheduler`, pods of others only occupy their nodes.
    """
    left_out: list[str] = []
    if not config:
        names = [one.metadata.name for one in listed.namespaces]
        config, left_out = queues_of_namespaces(names, listed.quotas)
    reading = PodReading(listed, scheduler)
    reports = list(reading.reports(time))
    lacks = [*ALWAYS_LACKING, *reading.lacks(), *left_out]
    return OtherCluster(RM, time, config, reports, lacks, predicates=PREDICATES)


class PodReading:
    """Translation of all pods and nodes of a cluster."""

    def __init__(self, listed: ListedObjects, scheduler: str) -> None:
        """Prepare everything that pods and nodes refer to."""
        self._listed, self._scheduler = listed, scheduler
        volumes = ClusterVolumes()
        for thing in listed.storage:
            volumes.update(thing)
        for node in listed.nodes:
            volumes.add_node(node)
        self._pods = [pod for pod in listed.pods if not (is_terminated(pod) or is_leaving_unplaced(pod))]
        self._pods.sort(
            key=lambda pod: (_created(pod.metadata, 0), pod.metadata.namespace, pod.metadata.name)
        )
        for pod in self._pods:
            volumes.add_pod(pod)
        references = References(
            {one.metadata.name: one for one in listed.namespaces},
            {one.metadata.name: one for one in listed.priority_classes},
        )
        self._translator = Translator(references, volumes, lambda below: 0)
        self._left_out: Counter[str] = Counter()

    def reports(self, time: int) -> Iterator[tuple[int, Report]]:
        """Yield nodes and pods, as messages with their times."""
        earliest = min((_created(pod.metadata, time) for pod in self._pods), default=time)
        for node in self._listed.nodes:
            yield earliest, self._node(node)
        known = {node.metadata.name for node in self._listed.nodes}
        applications: set[str] = set()
        for pod in self._pods:
            at = _created(pod.metadata, time)
            if pod.spec.node_name and pod.spec.node_name not in known:
                self._left_out["on a node that is not there"] += 1
            elif self._is_foreign(pod):
                if pod.spec.node_name:
                    yield at, self._allocation(pod, "", self._translator.foreign_tags(pod))
                else:
                    self._left_out["that belongs to a node or another scheduler, and waits"] += 1
            elif reason := self._obstacle(pod):
                self._left_out[reason] += 1
            else:
                app_id = application_of(pod)
                if app_id not in applications:
                    applications.add(app_id)
                    submission = self._translator.submission(pod, ApplicationTerms(app_id))
                    # The rules decide, also about what runs.
                    submission.request.tags[APP_TAG_FORCE] = "false"
                    yield at, submission.request
                yield at, self._allocation(pod, app_id, self._translator.tags(pod))

    def lacks(self) -> Iterator[str]:
        """Yield what the cluster has, and the messages do not."""
        for reason, count in self._left_out.items():
            yield f"{count} pod{'s, each' if count > 1 else ''} {reason}"
        if claims := sum(bool(pod.spec.resource_claims) for pod in self._pods):
            yield f"devices of the resource claims of {claims} pods"
        if self._listed.unreadable:
            yield f"{self._listed.unreadable} objects that cannot be read"

    def _node(self, node: Node) -> NewNodeInfo:
        return NewNodeInfo(
            node.metadata.name,
            self._translator.node_attributes(node),
            self._translator.node_resource(node),
            schedulable=not node.spec.unschedulable,
        )

    def _is_foreign(self, pod: Pod) -> bool:
        if self._scheduler:
            return pod.spec.scheduler_name != self._scheduler
        return any(owner.kind in OF_NODES for owner in pod.metadata.owner_references)

    def _obstacle(self, pod: Pod) -> str:
        """Return why the shim would not make a request of a pod that waits."""
        if pod.spec.node_name:
            return ""
        if pod.spec.scheduling_gates:
            return "that waits for scheduling gates"
        return "that cannot be scheduled as it is written" if self._translator.conflicts(pod) else ""

    def _allocation(self, pod: Pod, app_id: str, tags: dict[str, str]) -> Allocation:
        policy = self._translator.preemption_policy(pod)
        return Allocation(
            pod.metadata.uid,
            app_id,
            node_id=pod.spec.node_name,
            resource_per_alloc=self._translator.resource(pod),
            priority=pod.spec.priority or 0,
            allocation_tags=tags,
            preemption_policy=None if not app_id or policy == PreemptionPolicy() else policy,
        )


def application_of(pod: Pod) -> str:
    """Return the application of a pod: the one that it names, else that of its owner, else one of its own."""
    meta = pod.metadata
    named = application_id(pod)
    if named != id_of_namespace(meta.namespace):
        return named
    namespace = meta.namespace or DEFAULT_NAMESPACE
    owner = next((one for one in meta.owner_references if one.controller), None)
    if owner is None:
        return f"{namespace}.pod.{meta.name}"
    kind, name = _work_of(owner, meta)
    return f"{namespace}.{kind.lower()}.{name}"


def _work_of(owner: OwnerReference, meta: ObjectMeta) -> tuple[str, str]:
    """Return kind and name of a controller, of its Deployment for a ReplicaSet."""
    end = f"-{meta.labels.get(TEMPLATE, '')}"
    if owner.kind == "ReplicaSet" and len(end) > 1 and owner.name.endswith(end):
        return "Deployment", owner.name.removesuffix(end)
    return owner.kind, owner.name


def _created(meta: ObjectMeta, default: int) -> int:
    """Return the time of an object's creation (ns)."""
    created: datetime.datetime | None = meta.creation_timestamp
    return default if created is None else int(created.timestamp()) * SECOND
