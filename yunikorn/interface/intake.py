"""From an RM's update to the partitions, entry by entry; a bad entry is answered and stops no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yunikorn.clock import MILLISECOND
from yunikorn.errors import StateError
from yunikorn.interface.constants import DEFAULT_PARTITION, NODE_PARTITION
from yunikorn.interface.messages import NodeAction
from yunikorn.objects.gang import ATOMIC
from yunikorn.objects.outbox import Refusal
from yunikorn.resources import is_zero
from yunikorn.scheduling.existing import Existing
from yunikorn.scheduling.partition_scheduler import Demand, Submission

if TYPE_CHECKING:
    from yunikorn.interface.messages import (
        AddApplicationRequest,
        Allocation,
        AllocationAsk,
        NewNodeInfo,
        UpdateNodeInfo,
        UpdateRequest,
    )
    from yunikorn.interface.session import Session
    from yunikorn.objects.node import Node
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

NO_SIZE = "an Atomic gang needs a placeholderAsk: what its members take together"
UNKNOWN_ACTION = "the action is not known here: nothing was changed"


class Intake:
    """Takes in the updates of one RM (order of decision 30)."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def take(self, request: UpdateRequest) -> None:
        """Applications, then asks and releases, then nodes; allocations that exist already at the end."""
        for new in request.new_applications:
            self._add_application(new)
        for gone in request.remove_applications:
            found = self._session.partition(gone.partition_name)
            if found is not None:
                found.remove_application(gone.application_id)
        for ask in request.asks:
            self._ask(ask)
        self._release(request)
        recovered: list[tuple[PartitionScheduler, Allocation, str]] = []
        for node in request.new_schedulable_nodes:
            self._add_node(node, recovered)
        for update in request.updated_nodes:
            self._update_node(update)
        for partition, allocation, node_id in recovered:
            self._recover(partition, allocation, node_id)
        for allocation in request.allocations:
            self._place(allocation)

    def _add_application(self, new: AddApplicationRequest) -> None:
        outbox = self._session.stray
        partition = self._session.partition(new.partition_name)
        if partition is None:
            reason = f"failed to find partition {new.partition_name or DEFAULT_PARTITION}"
            outbox.rejected_applications.append(Refusal(new.application_id, reason))
        elif not new.application_id:
            outbox.rejected_applications.append(Refusal("", "an application needs an id"))
        elif new.gang_scheduling_style == ATOMIC and is_zero(new.placeholder_ask):
            outbox.rejected_applications.append(Refusal(new.application_id, NO_SIZE))
        else:
            ugi = new.ugi
            submission = Submission(new.application_id, new.queue_name, ugi.user, tuple(ugi.groups), new.tags)
            submission.run_limit = _time_limit(new.execution_timeout_ms)
            submission.gang, submission.gang_style = new.placeholder_ask, new.gang_scheduling_style
            partition.submit(submission)

    # -- asks and releases --------------------------------------------------------------------------

    def _ask(self, ask: AllocationAsk) -> None:
        partition = self._session.partition(ask.partition_name)
        if partition is None:
            reason = f"failed to find partition {ask.partition_name or DEFAULT_PARTITION}"
            self._session.stray.rejected_asks.append(Refusal(ask.allocation_key, reason, ask.application_id))
            return
        app_id = ask.application_id
        priority, reason = self._priority(ask)
        if not ask.allocation_key:
            reason = "an ask needs an allocation key"
        if reason:
            partition.partition.outbox.rejected_asks.append(Refusal(ask.allocation_key, reason, app_id))
            return
        demand = Demand(
            ask.allocation_key, ask.resource_ask, ask.max_allocations, priority, ask.tags, ask.originator
        )
        demand.run_limit = _time_limit(ask.execution_timeout_ms)
        demand.task_group, demand.placeholder = ask.task_group_name, ask.placeholder
        policy = ask.preemption_policy
        if policy is not None:
            demand.may_preempt, demand.may_be_preempted = (
                policy.allow_preempt_other,
                policy.allow_preempt_self,
            )
        if not app_id:
            app_id, reason = self._implicit_application(partition, ask)
            if reason:
                partition.partition.outbox.rejected_asks.append(Refusal(ask.allocation_key, reason, app_id))
                return
        partition.ask(app_id, demand)

    def _priority(self, ask: AllocationAsk) -> tuple[int, str]:
        name = ask.priority_class_name
        if not name:
            return ask.priority or 0, ""
        classes: Mapping[str, int] = self._session.config.priority_classes
        if name not in classes:
            known = ", ".join(sorted(classes)) or "none"
            return 0, f"unknown priority class '{name}'; known: {known}"
        return classes[name], ""

    @staticmethod
    def _implicit_application(partition: PartitionScheduler, ask: AllocationAsk) -> tuple[str, str]:
        # An independent allocation belongs to an application of its own (decision 27).
        app_id = ask.allocation_key
        if app_id not in partition.partition.applications:
            app = partition.submit(Submission(app_id, user="nobody", groups=("nogroup",), tags=ask.tags))
            return app_id, app.reason
        return app_id, ""

    def _release(self, request: UpdateRequest) -> None:
        for ask in request.releases.allocation_asks_to_release:
            partition = self._session.partition(ask.partition_name)
            if partition is None:
                continue
            if not ask.application_id and not ask.allocation_key:
                reason = "an ask release needs an application id or an allocation key"
                partition.partition.outbox.rejected_asks.append(Refusal("", reason))
                continue
            partition.release_asks(ask.application_id, ask.allocation_key, ask.termination_type)
        for gone in request.releases.allocations_to_release:
            partition = self._session.partition(gone.partition_name)
            if partition is not None:
                partition.release(gone.application_id, gone.uuid, gone.allocation_key, gone.termination_type)

    # -- nodes --------------------------------------------------------------------------------------

    def _add_node(
        self, new: NewNodeInfo, recovered: list[tuple[PartitionScheduler, Allocation, str]]
    ) -> None:
        name = new.attributes.get(NODE_PARTITION, "")
        partition = self._session.partition(name)
        if partition is None:
            reason = f"failed to find partition {name or DEFAULT_PARTITION}"
            self._session.stray.rejected_nodes.append(Refusal(new.node_id, reason))
            return
        node = partition.add_node(
            new.node_id,
            new.schedulable_resource,
            new.attributes,
            new.occupied_resource,
            schedulable=new.schedulable,
        )
        if node is not None:
            recovered.extend((partition, one, node.id) for one in new.existing_allocations)

    def _recover(self, partition: PartitionScheduler, one: Allocation, node_id: str) -> None:
        reason = partition.existing.recover(_existing(one, node_id))
        self._refuse(partition, one, reason)

    def _place(self, one: Allocation) -> None:
        partition = self._session.partition(one.partition_name)
        if partition is None:
            reason = f"failed to find partition {one.partition_name}"
            refusal = Refusal(one.allocation_key, reason, one.application_id)
            self._session.stray.rejected_asks.append(refusal)
            return
        self._refuse(partition, one, partition.existing.place(_existing(one, one.node_id)))

    @staticmethod
    def _refuse(partition: PartitionScheduler, one: Allocation, reason: str) -> None:
        if reason:
            refusal = Refusal(one.allocation_key, reason, one.application_id)
            partition.partition.outbox.rejected_asks.append(refusal)

    def _update_node(self, update: UpdateNodeInfo) -> None:
        found = self._session.node(update.node_id, update.attributes.get(NODE_PARTITION, ""))
        if found is None:
            reason = f"failed to find node {update.node_id}"
            self._session.stray.failed_node_updates.append(Refusal(update.node_id, reason))
            return
        partition, node = found
        reason = self._act(partition, node, update)
        if reason:
            partition.partition.outbox.failed_node_updates.append(Refusal(update.node_id, reason))

    @staticmethod
    def _act(partition: PartitionScheduler, node: Node, update: UpdateNodeInfo) -> str:
        try:
            if update.action == NodeAction.DRAIN_NODE:
                partition.partition.move_node(node, "drain")
            elif update.action == NodeAction.DRAIN_TO_SCHEDULABLE:
                partition.partition.move_node(node, "schedule")
            elif update.action == NodeAction.DECOMMISSION:
                partition.partition.remove_node(node)
            elif update.action == NodeAction.UNKNOWN:
                return UNKNOWN_ACTION
            else:
                return partition.update_node(
                    node, update.schedulable_resource, update.occupied_resource, update.attributes or None
                )
        except StateError as error:
            return str(error)
        return ""


def _time_limit(milliseconds: int) -> int:
    # "0 or negative value means never expire" (interface seed); 0 is never further in, too.
    return max(0, milliseconds) * MILLISECOND


def _existing(one: Allocation, node_id: str) -> Existing:
    return Existing(
        one.allocation_key,
        one.application_id,
        node_id,
        one.uuid,
        one.resource_per_alloc,
        one.priority,
        one.allocation_tags,
        originator=one.originator,
        may_be_preempted=one.preemption_policy is None or one.preemption_policy.allow_preempt_self,
        task_group=one.task_group_name,
        placeholder=one.placeholder,
    )
