"""The life of tasks: from a pod to a request, from a placement to a binding, and to the end of the pod."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from yunikorn.interface.messages import TerminationType
from yunikorn.text import listed
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.names import TAG_CLAIMS, TAG_DEVICES
from yunikorn_kubernetes.objects import Condition
from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBinder
from yunikorn_kubernetes.shim.binder import Binder
from yunikorn_kubernetes.shim.conditions import Conditions
from yunikorn_kubernetes.shim.deletions import Deletions
from yunikorn_kubernetes.shim.gang_claims import GangClaims
from yunikorn_kubernetes.shim.shim_cluster import ShimCluster
from yunikorn_kubernetes.shim.shim_states import ALLOCATED, BOUND, COMPLETED, NEW, SCHEDULING, TASK, fire
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder

_log = logging.getLogger("yunikorn.kubernetes.tasks")

IN_CORE = (SCHEDULING, ALLOCATED, BOUND)
"""States of tasks of which the core has a request or an allocation."""
PREEMPTED = Condition(
    "DisruptionTarget", "True", "PreemptionByScheduler", "preempted by YuniKorn to make room for other pods"
)
"""Condition of victims of preemption, by which failure policies of Jobs recognise them."""


class TaskFlow:
    """Moves tasks through their states."""

    def __init__(
        self,
        cluster: ShimCluster,
        writes: QueuedWrites,
        volumes: VolumeBinder,
        deletions: Deletions,
        events: PodEvents,
        conditions: Conditions,
        on_bound: Callable[[Task], object],
        claim_binder: ClaimBinder | None = None,
    ) -> None:
        """Create the flow; `on_bound` is called with a task that has become bound."""
        self._cluster, self._deletions, self._events = cluster, deletions, events
        self._conditions, self._on_bound = conditions, on_bound
        self._binder = Binder(writes, volumes, self.bound, self.bind_failed, claim_binder)

    def close(self) -> None:
        """End all bindings."""
        self._binder.close()

    # -- requests -----------------------------------------------------------------------------------

    def submit(self, task: Task) -> None:
        """Send the request of a new task to the core."""
        if not (fire(TASK, task, "InitTask") and fire(TASK, task, "SubmitTask")):
            return
        self._cluster.send(task)
        task.first_batch = task.batch
        self._conditions.submitted(task)
        pod = task.pod
        note = f"{task.namespace}/{task.name} is queued and waiting for allocation"
        self._events.pod(pod, "Scheduling", "Scheduling", note)
        app = self._cluster.applications.get(task.app_id)
        if task.group and app is not None and app.gang is not None:
            names = [group.name for group in app.gang.groups]
            if task.group in names:
                note = f"Pod belongs to the taskGroup {task.group}, it will be scheduled as a gang member"
                self._events.pod(pod, "GangScheduling", "TaskGroupMatch", note)
            else:
                note = (
                    f"the gang of application {app.id} has no task group {task.group}, only {listed(names)}"
                )
                self._events.pod(pod, "GangScheduling", "TaskGroupsError", note, warning=True)

    def refresh(self, task: Task) -> None:
        """Recompute resources and tags of a task, and send a change to the core."""
        translation = self._cluster.translation
        resource = translation.resource(task.pod, task.devices)
        tags = translation.tags(task.pod)
        if task.devices:
            # The devices of an allocation stay the same, whatever becomes of the claims.
            tags = with_devices(tags, task.tags)
        if resource == task.resource and tags == task.tags:
            return
        task.resource, task.tags = resource, tags
        if task.state in IN_CORE:
            self._cluster.send(task)

    def resubmit(self, task: Task) -> None:
        """Send the request of a task again, which the core has dropped."""
        _log.info("%s: the core has no request of it any more; sending it again", task.label)
        task.node = task.uuid = ""
        self._cluster.send(task)

    # -- placements ---------------------------------------------------------------------------------

    def allocate(
        self, task: Task, node: str, uuid: str, devices: str = "", together: GangClaims | None = None
    ) -> None:
        """Bind the pod of a task to the node, with the `devices`, that the core chose.

        Members of a gang are bound `together`.
        """
        if fire(TASK, task, "TaskAllocated", f"node {node}"):
            task.node, task.uuid = node, uuid
            if devices:
                task.tags = {**task.tags, TAG_DEVICES: devices}
            self._cluster.assign(task.uid, node)
            self._binder.begin(task, together)
            if devices:
                # The devices may be fewer than in the worst case, which the request has counted.
                self.refresh(task)

    def bound(self, task: Task) -> None:
        """Note that the API server has bound the pod of a task."""
        if not fire(TASK, task, "TaskBound"):
            return
        pod = task.pod
        note = f"Successfully assigned {task.namespace}/{task.name} to node {task.node}"
        self._events.pod(pod, "Scheduled", "Binding", note)
        note = f"Pod {task.namespace}/{task.name} is successfully bound to node {task.node}"
        self._events.pod(pod, "PodBindSuccessful", "Binding", note)
        self._on_bound(task)

    def bind_failed(self, task: Task, reason: str, note: str) -> None:
        """Return a placement to the core, whose binding has failed."""
        if task.state != ALLOCATED:
            return
        self._events.pod(task.pod, reason, "Binding", note, warning=True)
        _log.warning("%s: %s", task.label, note)
        uuid, had_devices = task.uuid, bool(task.devices)
        self._unplace(task, task.node, note)
        failed = TerminationType.SCHEDULING_FAILED_ON_RM
        task.batch = self._cluster.batches.release(task.app_id, task.uid, failed, note, uuid=uuid)
        if had_devices:
            # The core returns the request with the devices of the allocation.
            self._cluster.send(task)

    def node_lost(self, task: Task) -> None:
        """Return a task that was placed on a node that is gone, and not bound yet, to the pending ones."""
        self._binder.cancel(task)
        self._unplace(task, task.node, f"node {task.node} is gone")
        self._cluster.send(task)

    def withdraw(self, task: Task, reason: str) -> None:
        """Stop the binding of a task whose allocation the core has ended."""
        self._binder.cancel(task)
        self._unplace(task, task.node, reason)

    def _unplace(self, task: Task, node: str, reason: str) -> None:
        if fire(TASK, task, "BindFailed", reason):
            self._cluster.unassign(task.uid, node)
            task.node = task.uuid = ""
            if task.devices:
                translation = self._cluster.translation
                task.resource, task.tags = translation.resource(task.pod), translation.tags(task.pod)

    # -- pods that have a node ----------------------------------------------------------------------

    def found_bound(self, task: Task) -> None:
        """Account for a pod whose node the API server names.

        The binding was ours, or that of an earlier process, or made by another party.
        """
        node = task.pod.spec.node_name
        if task.state == BOUND:
            return
        if task.state == ALLOCATED and task.node == node:
            self._binder.cancel(task)
            self.bound(task)
            return
        before = task.state
        if not fire(TASK, task, "FoundBound", f"node {node}"):
            return
        if before == ALLOCATED:
            self._binder.cancel(task)
            self._cluster.unassign(task.uid, task.node)
        if before != NEW:
            # The core may have placed the request elsewhere meanwhile.
            self._cluster.batches.release(task.app_id, task.uid, message=f"bound to node {node} by others")
        task.node, task.uuid = node, ""
        self._cluster.assign(task.uid, node)
        self._cluster.send(task)
        self._on_bound(task)

    def acknowledge(self, task: Task, node: str, uuid: str) -> None:
        """Note the allocation that the core has booked for a bound pod."""
        if node == task.node:
            task.uuid = uuid
        else:
            # The placement crossed the report of the node that the pod really has.
            self._cluster.batches.release(task.app_id, task.uid, uuid=uuid)

    # -- the end ------------------------------------------------------------------------------------

    def end(self, task: Task, termination: TerminationType) -> None:
        """Delete the pod of a task because the core requests the end of its allocation."""
        task.termination = termination
        if termination == TerminationType.PREEMPTED_BY_SCHEDULER:
            self._cluster.watcher.preempted(task.uid)
        is_victim = termination == TerminationType.PREEMPTED_BY_SCHEDULER and not task.placeholder
        self._deletions.delete(task, PREEMPTED if is_victim else None)

    def reject(self, task: Task, reason: str) -> None:
        """Note that the core refuses the request of a task."""
        if fire(TASK, task, "TaskRejected", reason):
            note = f"Task {task.namespace}/{task.name} is rejected by the scheduler: {reason}"
            self._events.pod(task.pod, "TaskRejected", "TaskRejected", note, warning=True)
            self.fail(task, reason)

    def fail(self, task: Task, reason: str) -> None:
        """Give a task up: nothing is scheduled for its pod any more."""
        self._binder.cancel(task)
        was_placed = task.state == ALLOCATED
        if fire(TASK, task, "TaskFail", reason):
            note = f"Task {task.namespace}/{task.name} is failed: {reason}"
            self._events.pod(task.pod, "TaskFailed", "TaskFailed", note, warning=True)
            if was_placed:
                self._cluster.unassign(task.uid, task.node)
                task.node = task.uuid = ""
            self._cluster.release(task)

    def complete(self, task: Task) -> None:
        """Report the end of a pod to the core, and forget the task."""
        self._binder.cancel(task)
        before = task.state
        if not fire(TASK, task, "CompleteTask"):
            return
        if before in IN_CORE:
            self._cluster.release(task)
        self._cluster.unassign(task.uid, task.node)
        self._cluster.tasks.pop(task.uid, None)
        self._deletions.forget(task.uid)
        note = f"Task {task.namespace}/{task.name} is completed"
        if before != COMPLETED and task.pod.metadata.deletion_timestamp is None:
            self._events.pod(task.pod, "TaskCompleted", "TaskCompleted", note)


def with_devices(tags: dict[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Return tags with the claims and devices of an allocation in place of what the claims are now."""
    found = {name: value for name, value in tags.items() if name not in (TAG_CLAIMS, TAG_DEVICES)}
    return found | {name: known[name] for name in (TAG_CLAIMS, TAG_DEVICES) if name in known}
