"""Changes of pods: ours become tasks, assigned ones of other schedulers use room, all others are ignored."""

from __future__ import annotations

from yunikorn_kubernetes.api_server.pod_binding import PodRef
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.shim.application_flow import ApplicationFlow
from yunikorn_kubernetes.shim.conditions import UNSCHEDULABLE
from yunikorn_kubernetes.shim.shim_cluster import ForeignPod, ShimCluster
from yunikorn_kubernetes.shim.shim_states import BOUND
from yunikorn_kubernetes.shim.task_flow import TaskFlow
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_kubernetes.shim.workload_gangs import WorkloadGangs
from yunikorn_kubernetes.translation.pod_applications import is_ours, is_placeholder, is_terminated


def is_leaving_unplaced(pod: Pod) -> bool:
    """Return True if a pod is deleted before it got a node, and only finalizers keep it."""
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name


class PodFlow:
    """Applies changes of pods. All methods may be called any number of times for the same version."""

    def __init__(
        self,
        cluster: ShimCluster,
        applications: ApplicationFlow,
        tasks: TaskFlow,
        writes: QueuedWrites,
        events: PodEvents,
        workloads: WorkloadGangs,
    ) -> None:
        self._cluster, self._applications, self._tasks = cluster, applications, tasks
        self._writes, self._events, self._workloads = writes, events, workloads
        self._held: dict[str, tuple[Pod, str]] = {}
        """Pods by uid that are not scheduled yet, with the reason, such as gates or missing claims."""

    def clear(self) -> None:
        """Forget everything, before a new recovery."""
        self._held.clear()

    def changed(self, pod: Pod) -> None:
        """Apply a new or changed pod."""
        if is_terminated(pod):
            self._end(pod)
            self._workloads.ended(pod)
        elif is_leaving_unplaced(pod):
            self.removed(pod)
        elif is_ours(pod):
            self._ours(pod)
        elif pod.spec.node_name:
            self._foreign(pod)

    def _ours(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        task = self._cluster.tasks.get(uid)
        if task is None:
            self._new(pod)
            return
        task.pod = pod
        self._workloads.seen(pod)
        self._tasks.refresh(task)
        if pod.spec.node_name and task.state != BOUND:
            self._tasks.found_bound(task)

    def _new(self, pod: Pod) -> None:
        uid, gates = pod.metadata.uid, pod.spec.scheduling_gates
        if gates and not pod.spec.node_name:
            note = f"waiting for scheduling gates: {','.join(gate.name for gate in gates)}"
            if self._hold(pod, note):
                self._events.pod(pod, "Scheduling", "Scheduling", note)
            return
        translation = self._cluster.translation
        if not (pod.spec.node_name or translation.knows_namespace(pod)):
            # Its watch lags behind that of pods: without its annotations the queue would have no quota.
            self._hold(pod, "its namespace is not known yet")
            return
        conflicts = translation.conflicts(pod)
        if conflicts and not pod.spec.node_name:
            note = "; ".join(conflicts)
            if self._hold(pod, note):
                self._events.pod(pod, "FailedScheduling", "Scheduling", note, warning=True)
                self._writes.set_condition(PodRef.of(pod), UNSCHEDULABLE, note)
            return
        gang = self._workloads.membership(pod)
        if isinstance(gang, str):
            self._hold(pod, gang)
            return
        self._held.pop(uid, None)
        task = Task(
            pod,
            gang.app_id or translation.app_id(pod),
            placeholder=is_placeholder(pod),
            group=gang.group if gang.app_id else translation.task_group(pod),
            priority=gang.priority,
            resource=translation.resource(pod),
            tags=translation.tags(pod),
        )
        self._cluster.tasks[uid] = task
        self._applications.add(task)

    def look_at(self, pods: list[Pod]) -> None:
        """Look again at pods that waited for their gangs, as far as they still exist."""
        for pod in pods:
            held = self._held.get(pod.metadata.uid)
            if held is not None:
                self._new(held[0])
            elif self._workloads.has(pod):
                self._ours(pod)

    def _hold(self, pod: Pod, reason: str) -> bool:
        """Keep a pod back; return True if the reason is new."""
        known = self._held.get(pod.metadata.uid)
        self._held[pod.metadata.uid] = pod, reason
        return known is None or known[1] != reason

    def _foreign(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        translation = self._cluster.translation
        resource, tags = translation.resource(pod), translation.foreign_tags(pod)
        known = self._cluster.foreign.get(uid)
        if known is None:
            self._cluster.foreign[uid] = ForeignPod(pod, resource, tags)
            self._cluster.assign(uid, pod.spec.node_name)
        elif (known.resource, known.tags) == (resource, tags):
            known.pod = pod
            return
        else:
            known.pod, known.resource, known.tags = pod, resource, tags
        self._cluster.send_foreign(uid)

    def removed(self, pod: Pod) -> None:
        """Apply the deletion of a pod."""
        self._end(pod)
        self._workloads.gone(pod)

    def _end(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if self._held.pop(uid, None) is not None:
            self._writes.forget(uid)
        task = self._cluster.tasks.get(uid)
        if task is not None:
            task.pod = pod
            self._tasks.complete(task)
            self._applications.task_ended(task)
            return
        foreign = self._cluster.foreign.pop(uid, None)
        if foreign is not None:
            self._cluster.unassign(uid, foreign.pod.spec.node_name)
            self._cluster.batches.release("", uid)

    def refresh_all(self, pods: list[str]) -> None:
        """Recompute the tags of these pods by uid, after a change of what they refer to."""
        for uid in pods:
            task = self._cluster.tasks.get(uid)
            if task is not None:
                self._tasks.refresh(task)
            elif uid in self._held:
                self._new(self._held[uid][0])
            elif uid in self._cluster.foreign:
                self._foreign(self._cluster.foreign[uid].pod)
