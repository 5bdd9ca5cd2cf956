"""The cluster as the shim sees it: pods, nodes and applications, and the changes that the core has to get."""

from __future__ import annotations

import attrs

from yunikorn.interface.messages import Allocation, PreemptionPolicy
from yunikorn.resources import NOTHING, Resource
from yunikorn_kubernetes.names import FOREIGN_DEFAULT, TAG_FOREIGN
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.shim.batches import Batches
from yunikorn_kubernetes.shim.shim_applications import KubernetesApplication
from yunikorn_kubernetes.shim.shim_nodes import ClusterNode
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_kubernetes.shim.translator import Translator
from yunikorn_kubernetes.translation.pod_applications import ApplicationTerms


@attrs.define(eq=False, slots=True)
class ForeignPod:
    """An assigned pod of another scheduler."""

    pod: Pod
    resource: Resource = NOTHING
    tags: dict[str, str] = attrs.Factory(dict)


class AssignmentWatcher:
    """Part of the shim that follows where pods are; this one follows none."""

    def assigned(self, uid: str) -> None:
        """Note that a pod has a node."""

    def unassigned(self, uid: str) -> None:
        """Note that a pod is not on its node any more."""

    def preempted(self, uid: str) -> None:
        """Note that the core ends the pod to make room."""

    def waits(self, app_id: str, message: str, *, lacks_nodes: bool = False) -> None:
        """Note why a pod of an application waits, and whether only nodes with room are lacking."""


class ShimCluster:
    """Pods of ours and of others, nodes, applications; and what the core has been sent of them."""

    def __init__(self, batches: Batches, translation: Translator) -> None:
        self.batches = batches
        self.translation = translation
        self.tasks: dict[str, Task] = {}
        """Tasks by uid of their pod."""
        self.applications: dict[str, KubernetesApplication] = {}
        """Applications by id; one that has failed stays until its last pod is gone."""
        self.terms: dict[str, ApplicationTerms] = {}
        """Terms of the applications that are not described by their first pod, by id."""
        self.watcher: AssignmentWatcher = AssignmentWatcher()
        """Called about every pod that gets a node, loses its node or waits for one."""
        self.nodes: dict[str, ClusterNode] = {}
        self.foreign: dict[str, ForeignPod] = {}
        """Assigned pods of other schedulers by uid, on known nodes and others."""
        self._by_node: dict[str, dict[str, None]] = {}
        """Uids of the assigned pods, of ours and others, by name of their node, also of unknown nodes."""

    def clear(self) -> None:
        """Forget everything, before a new recovery."""
        for known in (self.tasks, self.applications, self.terms, self.nodes, self.foreign, self._by_node):
            known.clear()

    def has(self, task: Task) -> bool:
        """Return True if this object is the task of its pod, and not an earlier one."""
        return self.tasks.get(task.uid) is task

    # -- pods on nodes ------------------------------------------------------------------------------

    def assign(self, uid: str, node: str) -> None:
        """Note that a pod is assigned to a node."""
        self._by_node.setdefault(node, {})[uid] = None
        self.watcher.assigned(uid)

    def unassign(self, uid: str, node: str) -> None:
        """Note that a pod is not on a node any more."""
        there = self._by_node.get(node)
        if there is not None:
            there.pop(uid, None)
            if not there:
                del self._by_node[node]
        self.watcher.unassigned(uid)

    def on_node(self, node: str) -> list[str]:
        """Return the uids of the pods that are assigned to a node."""
        return [*self._by_node.get(node, ())]

    # -- entries for the core -----------------------------------------------------------------------

    def send(self, task: Task) -> None:
        """Send the request of a task, or its allocation if the task has a node that is known."""
        if task.is_bound and task.node not in self.nodes:
            return
        if task.is_foreign:
            self._send_as_foreign(task)
            return
        policy = self.translation.preemption_policy(task.pod)
        task.batch = self.batches.put(
            Allocation(
                task.uid,
                task.app_id,
                node_id=task.node,
                resource_per_alloc=task.resource,
                priority=(task.pod.spec.priority or 0) if task.priority is None else task.priority,
                allocation_tags=task.tags,
                task_group_name=task.group,
                placeholder=task.placeholder,
                originator=task.originator,
                preemption_policy=None if policy == DEFAULT_POLICY else policy,
            )
        )

    def _send_as_foreign(self, task: Task) -> None:
        tags = {**task.tags, TAG_FOREIGN: FOREIGN_DEFAULT}
        task.batch = self.batches.put(
            Allocation(
                task.uid, "", node_id=task.node, resource_per_alloc=task.resource, allocation_tags=tags
            )
        )

    def send_foreign(self, uid: str) -> None:
        """Send a pod of another scheduler if its node is known."""
        one = self.foreign[uid]
        node = one.pod.spec.node_name
        if node in self.nodes:
            self.batches.put(
                Allocation(
                    uid,
                    "",
                    node_id=node,
                    resource_per_alloc=one.resource,
                    priority=one.pod.spec.priority or 0,
                    allocation_tags=one.tags,
                )
            )

    def treat_as_foreign(self, task: Task) -> None:
        """Let a bound pod count without an application, which has ended in the core."""
        if not task.is_foreign:
            task.is_foreign, task.uuid = True, ""
            self.send(task)

    def remove_application(self, app: KubernetesApplication) -> None:
        """Take an application back from the core, of which no pod was placed; its tasks are forgotten."""
        self.batches.remove_application(app.id, app.batch)
        del self.applications[app.id]
        for uid in app.tasks:
            self.tasks.pop(uid, None)

    def release(self, task: Task) -> None:
        """Report the end of a task to the core."""
        app_id = "" if task.is_foreign else task.app_id
        task.batch = self.batches.release(app_id, task.uid, task.termination)


DEFAULT_POLICY = PreemptionPolicy()
"""Policy of a pod that may preempt others and be preempted."""
