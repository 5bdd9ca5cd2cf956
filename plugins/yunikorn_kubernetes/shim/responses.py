"""Responses of the core, entry by entry."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from yunikorn.interface.messages import (
    Allocation,
    AllocationAskRelease,
    AllocationRelease,
    RejectedAllocationAsk,
    SchedulerAction,
    TerminationType,
    UpdateResponse,
)
from yunikorn_kubernetes.names import TAG_DEVICES
from yunikorn_kubernetes.shim.application_flow import ApplicationFlow
from yunikorn_kubernetes.shim.deletions import Deletions
from yunikorn_kubernetes.shim.gang_claims import GangClaims
from yunikorn_kubernetes.shim.node_flow import NodeFlow
from yunikorn_kubernetes.shim.shim_cluster import ShimCluster
from yunikorn_kubernetes.shim.shim_states import ALLOCATED, COMPLETED, SCHEDULING
from yunikorn_kubernetes.shim.task_flow import TaskFlow
from yunikorn_kubernetes.shim.tasks import Task

_log = logging.getLogger("yunikorn.kubernetes.core")


class Responses:
    """Applies responses of the core to the cluster."""

    def __init__(
        self,
        cluster: ShimCluster,
        applications: ApplicationFlow,
        tasks: TaskFlow,
        nodes: NodeFlow,
        deletions: Deletions,
        resync: Callable[[], object],
    ) -> None:
        """Create the handler; `resync` is called when the core wants everything reported again."""
        self._cluster, self._deletions = cluster, deletions
        self._applications, self._tasks, self._nodes = applications, tasks, nodes
        self._resync = resync

    def apply(self, response: UpdateResponse) -> None:
        """Apply a response.

        States of applications come first, because the releases that follow depend on them. Allocations come
        before releases, which may end them.
        """
        if response.action == SchedulerAction.RESYNC:
            self._resync()
            return
        for accepted in response.accepted_applications:
            self._applications.accepted(accepted.application_id)
        for rejected in response.rejected_applications:
            self._applications.rejected(rejected.application_id, rejected.reason)
        for updated in response.updated_applications:
            self._applications.updated(updated.application_id, updated.state, updated.message)
        for accepted_node in response.accepted_nodes:
            self._nodes.accepted(accepted_node.node_id)
        for rejected_node in response.rejected_nodes:
            self._nodes.rejected(rejected_node.node_id, rejected_node.reason)
        for failed in response.failed_node_updates:
            _log.warning("the update of node %s failed: %s", failed.node_id, failed.reason)
        together = self._gangs_with_claims(response.new_allocations)
        for placed in response.new_allocations:
            self._placed(placed, together)
        for refused in response.rejected_allocations:
            self._refused(refused)
        for released in response.released_allocations:
            self._released(released)
        for dropped in response.released_allocation_asks:
            self._dropped(dropped)

    def _gangs_with_claims(self, placed: Sequence[Allocation]) -> dict[str, GangClaims]:
        """Return the gangs, by application, whose members were placed together and have claims to devices."""
        members: dict[str, list[Task]] = {}
        claiming = {one.application_id for one in placed if TAG_DEVICES in one.allocation_tags}
        for one in placed:
            task = self._cluster.tasks.get(one.allocation_key)
            if task is not None and task.state == SCHEDULING and task.group and not task.placeholder:
                members.setdefault(task.app_id, []).append(task)
        return {
            app_id: GangClaims(tasks)
            for app_id, tasks in members.items()
            if len(tasks) > 1 and app_id in claiming
        }

    def _placed(self, placed: Allocation, together: Mapping[str, GangClaims]) -> None:
        task = self._cluster.tasks.get(placed.allocation_key)
        if task is None:
            if placed.application_id:
                # The pod has ended while the core placed its request.
                self._cluster.batches.release(placed.application_id, placed.allocation_key, uuid=placed.uuid)
        elif task.is_bound:
            self._tasks.acknowledge(task, placed.node_id, placed.uuid)
        elif not self._cluster.batches.is_stale(task.first_batch):
            devices = placed.allocation_tags.get(TAG_DEVICES, "")
            gang = together.get(task.app_id) if task.group else None
            self._tasks.allocate(task, placed.node_id, placed.uuid, devices, gang)

    def _refused(self, refused: RejectedAllocationAsk) -> None:
        task = self._cluster.tasks.get(refused.allocation_key)
        if task is None or self._cluster.batches.is_stale(task.batch):
            if task is None and refused.allocation_key in self._cluster.foreign:
                _log.warning("foreign pod %s is not counted: %s", refused.allocation_key, refused.reason)
            return
        app = self._cluster.applications.get(task.app_id)
        if task.is_bound:
            _log.warning("%s is not counted for %s: %s", task.label, task.app_id, refused.reason)
            if not task.is_foreign:
                self._cluster.treat_as_foreign(task)
        elif app is None or not app.is_failing:
            self._tasks.reject(task, refused.reason)

    def _released(self, released: AllocationRelease) -> None:
        task = self._cluster.tasks.get(released.allocation_key)
        termination = released.termination_type
        if termination == TerminationType.SCHEDULING_FAILED_ON_RM:
            return
        if task is None or task.state == COMPLETED:
            if termination != TerminationType.STOPPED_BY_RM:
                # The pod has ended already, and the core waits for the confirmation.
                self._cluster.batches.release(
                    released.application_id, released.allocation_key, termination, uuid=released.uuid
                )
        elif _is_earlier(released, task):
            return
        elif termination != TerminationType.STOPPED_BY_RM:
            self._applications.release(task, termination)
        elif not self._cluster.batches.is_stale(task.batch):
            self._lost(task, released)

    def _lost(self, task: Task, released: AllocationRelease) -> None:
        """Restore what the core has dropped without a request of ours, as long as the pod exists."""
        app = self._cluster.applications.get(task.app_id)
        failing = app is None or app.is_failing
        if task.state == ALLOCATED:
            self._tasks.withdraw(task, released.message)
        if task.state == SCHEDULING and not failing:
            self._tasks.resubmit(task)
        elif task.state == SCHEDULING and app is not None:
            self._applications.fail_task(app, task)
        elif task.is_bound and released.uuid and released.uuid == task.uuid:
            if not failing:
                self._cluster.send(task)
                return
            # The room of the pod stays in use until the pod is gone.
            self._cluster.treat_as_foreign(task)
            self._deletions.delete(task)

    def _dropped(self, dropped: AllocationAskRelease) -> None:
        task = self._cluster.tasks.get(dropped.allocation_key)
        if task is None or task.state != SCHEDULING or self._cluster.batches.is_stale(task.batch):
            return
        app = self._cluster.applications.get(task.app_id)
        if task.placeholder:
            self._applications.release(task, dropped.termination_type)
        elif app is not None and not app.is_failing:
            self._tasks.resubmit(task)


def _is_earlier(released: AllocationRelease, task: Task) -> bool:
    """Return True for the end of an earlier allocation of a task."""
    return bool(released.uuid and task.uuid and released.uuid != task.uuid)
