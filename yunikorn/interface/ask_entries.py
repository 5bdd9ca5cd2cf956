"""Asks of an update, from their messages to the admission of their partition.

The newer layout has no asks: an allocation without a node is one, unless its request is allocated already.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from yunikorn.clock import MILLISECOND
from yunikorn.interface.checks import LONGEST_NAME, allocation_fault, amount_fault, ask_fault, shown_id
from yunikorn.interface.constants import DEFAULT_PARTITION
from yunikorn.interface.messages import AllocationAsk
from yunikorn.model.ask import DEFAULT_SPEC, AskSpec
from yunikorn.resources import INT32_MAX, INT32_MIN
from yunikorn.scheduling.application_spec import ApplicationSpec
from yunikorn.scheduling.existing_allocations import FOREIGN_TAG, ExistingAllocation
from yunikorn.scheduling.user_groups import NO_GROUP, NOBODY
from yunikorn.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yunikorn.interface.messages import Allocation, AllocationAskRelease, AllocationRelease
    from yunikorn.interface.rm_partitions import RMPartitions
    from yunikorn.resources import Resource
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

NO_PLACE = "the ask names no application, and no queue accepts an application created for it"


class AskEntries:
    """Handler of the asks and of the allocations in the updates of one RM, in their order."""

    def __init__(self, partitions: RMPartitions) -> None:
        self._partitions = partitions
        self._at: PartitionScheduler | None = None
        """Partition of the previous ask, whose admission may have a batch."""

    def take(self, asks: Iterable[AllocationAsk]) -> None:
        """Apply asks; a bad one is rejected on its own."""
        sound: dict[int, Resource] = {}
        previous: object = sound
        at: PartitionScheduler | None = None
        partition_name = app_id = ""
        try:
            for ask in asks:
                resource = ask.resource_ask
                plain = is_plain(ask) and (resource is previous or _is_sound(resource, sound))
                if at is None or ask.application_id != app_id or ask.partition_name != partition_name:
                    partition_name, app_id = ask.partition_name, ask.application_id
                    at = self._begin(partition_name, app_id) if plain else None
                if plain and at is not None:
                    previous = resource
                    at.asks.add(app_id, ask.allocation_key, resource, ask.max_allocations, ask.priority or 0)
                else:
                    at = self._take(ask)
        finally:
            self._flush()

    def take_allocations(self, allocations: Iterable[Allocation]) -> None:
        """Apply the allocations of the newer layout, some of which are asks."""
        sound: dict[int, Resource] = {}
        at: PartitionScheduler | None = None
        partition_name = app_id = ""
        try:
            for one in allocations:
                plain = is_plain_request(one) and _is_sound(one.resource_per_alloc, sound)
                if at is None or one.application_id != app_id or one.partition_name != partition_name:
                    partition_name, app_id = one.partition_name, one.application_id
                    at = self._begin(partition_name, app_id) if plain else None
                if plain and at is not None and not at.asks.is_allocated(app_id, one.allocation_key):
                    at.asks.add(app_id, one.allocation_key, one.resource_per_alloc, 1, one.priority)
                else:
                    at = self._take_allocation(one)
        finally:
            self._flush()

    def _begin(self, partition_name: object, app_id: object) -> PartitionScheduler | None:
        """Return the partition of a plain ask whose application is named; None leaves the ask to `_take`."""
        if not _is_plain_key(app_id) or type(partition_name) is not str:
            return None
        at = self._partitions.find(partition_name)
        if at is not None and at.submitted_asks.policies:
            return None
        if at is not None and at is not self._at:
            if self._at is not None:
                self._flush()
            self._at = at
        return at

    def _flush(self) -> None:
        if self._at is not None:
            self._at.asks.flush()
            self._at = None

    def partition(self, name: str, fault: str) -> tuple[PartitionScheduler | None, str]:
        """Return the partition of an entry, and the reason why the entry is rejected, if it is."""
        if fault:
            return None, fault
        partition = self._partitions.find(name)
        if partition is None:
            return None, f"failed to find partition {name or DEFAULT_PARTITION}"
        return partition, ""

    def refuse(
        self,
        entry: AllocationAsk | Allocation | AllocationRelease | AllocationAskRelease,
        reason: str,
        partition: PartitionScheduler | None = None,
    ) -> None:
        """Reject an entry about an allocation; without a partition, as a message that concerns none."""
        changes = self._partitions.unrouted if partition is None else partition.partition.changes
        changes.ask_rejected(shown_id(entry.allocation_key), reason, shown_id(entry.application_id))

    def priority(self, entry: AllocationAsk | Allocation) -> tuple[int, str]:
        """Return the priority of an entry, and the reason why it has none."""
        name = entry.priority_class_name
        if not name:
            return entry.priority or 0, ""
        classes = self._partitions.priority_classes
        if name not in classes:
            return 0, f"unknown priority class '{name}'; known: {listed(sorted(classes))}"
        return classes[name], ""

    def _take(self, ask: AllocationAsk) -> PartitionScheduler | None:
        """Apply an ask; return its partition if the ask was not rejected here."""
        at, reason = self.partition(ask.partition_name, ask_fault(ask))
        if at is None:
            self.refuse(ask, reason)
            return None
        return self._admit(at, ask)

    def _admit(self, at: PartitionScheduler, ask: AllocationAsk) -> PartitionScheduler | None:
        """Pass a checked ask to the admission of its partition."""
        priority, reason = self.priority(ask)
        if not ask.allocation_key:
            reason = "an ask needs an allocation key"
        if reason:
            self.refuse(ask, reason, at)
            return None
        if at is not self._at or not ask.application_id:
            if self._at is not None:
                self._flush()
            self._at = at
        app_id = ask.application_id
        if not app_id:
            app_id, reason = _implicit_application(at, ask)
            if reason:
                at.partition.changes.ask_rejected(ask.allocation_key, reason, app_id)
                return None
            if app_id in at.submitted:
                at.submitted.defer(app_id, partial(self.take_implicit, ask), [app_id])
                return None
        checked = bool(at.submitted_asks.policies)
        add = at.submitted_asks.add if checked else at.asks.add
        add(app_id, ask.allocation_key, ask.resource_ask, ask.max_allocations, priority, spec_of(ask))
        return at if ask.application_id and not checked else None

    def take_implicit(self, ask: AllocationAsk, reason: str) -> None:
        """Apply an ask whose implicit application was rejected with this reason, or accepted without one."""
        if reason:
            at, fault = self.partition(ask.partition_name, ask_fault(ask))
            self.refuse(ask, fault or f"{NO_PLACE}: {reason}", at)
        else:
            self.take([ask])

    def occupy(self, at: PartitionScheduler, one: Allocation) -> str:
        """Occupy the room of an allocation that is applied later; see `ExistingAllocations.occupy`."""
        return at.existing.occupy(existing_of(one, one.node_id, one.priority))

    def _take_allocation(self, one: Allocation) -> PartitionScheduler | None:
        """Apply an allocation; return its partition if the allocation was an ask."""
        at, reason = self.partition(one.partition_name, allocation_fault(one))
        if at is None:
            self.refuse(one, reason)
            return None
        node_id = one.node_id
        if not node_id and FOREIGN_TAG not in one.allocation_tags:
            node_id = _node_of(at, one)
            if not node_id:
                return self._admit(at, ask_of(one))
        self._flush()
        priority, reason = self.priority(one)
        reason = reason or at.existing.place(existing_of(one, node_id, priority))
        if reason:
            self.refuse(one, reason, at)
        return None


def _is_sound(amount: Resource, sound: dict[int, Resource]) -> bool:
    """Return True if the types and quantities are valid.

    `sound` has the valid amounts of an update by identity, which it keeps alive: tasks of an application
    mostly share one object.
    """
    if id(amount) not in sound:
        if amount_fault("", amount):
            return False
        sound[id(amount)] = amount
    return True


def _implicit_application(at: PartitionScheduler, ask: AllocationAsk) -> tuple[str, str]:
    # An ask without an application gets an application of its own (docs/decisions/archive/0027).
    app_id = ask.allocation_key
    if app_id not in at.partition.applications and app_id not in at.submitted:
        submission = ApplicationSpec(app_id, user=NOBODY, groups=(NO_GROUP,), tags=ask.tags, implicit=True)
        reason = at.submitted.submit(submission).reason
        return app_id, f"{NO_PLACE}: {reason}" if reason else ""
    return app_id, ""


def _node_of(at: PartitionScheduler, one: Allocation) -> str:
    """Return the node of the allocation with this key that the RM knows, or an empty text."""
    app = at.partition.applications.get(one.application_id)
    placed = app.of_key(one.allocation_key) if app is not None else ()
    # A placement that permit policies hold is still a request for the RM.
    return next((known.node.id for known in placed if known.hold is None), "")


def ask_of(one: Allocation) -> AllocationAsk:
    """Return the ask that an allocation without a node is, in the newer layout."""
    return AllocationAsk(
        one.allocation_key,
        one.application_id,
        one.partition_name,
        one.resource_per_alloc,
        priority=one.priority,
        priority_class_name=one.priority_class_name,
        tags=one.allocation_tags,
        task_group_name=one.task_group_name,
        placeholder=one.placeholder,
        originator=one.originator,
        preemption_policy=one.preemption_policy,
    )


def spec_of(ask: AllocationAsk) -> AskSpec:
    """Return the options of a checked ask."""
    policy = ask.preemption_policy
    if (
        policy is None
        and not ask.tags
        and not (ask.task_group_name or ask.placeholder or ask.originator)
        and ask.execution_timeout_ms <= 0
    ):
        return DEFAULT_SPEC
    return AskSpec(
        ask.tags,
        may_preempt=policy is None or policy.allow_preempt_other,
        may_be_preempted=policy is None or policy.allow_preempt_self,
        originator=ask.originator,
        execution_timeout=time_limit(ask.execution_timeout_ms),
        task_group=ask.task_group_name,
        placeholder=ask.placeholder,
    )


def time_limit(milliseconds: int) -> int:
    """Return a time limit in ns; 0 and negative values mean no limit in the scheduler interface."""
    return max(0, milliseconds) * MILLISECOND


def existing_of(one: Allocation, node_id: str, priority: int) -> ExistingAllocation:
    """Return the existing allocation that a checked message reports."""
    return ExistingAllocation(
        one.allocation_key,
        one.application_id,
        node_id,
        one.uuid,
        one.resource_per_alloc,
        priority,
        one.allocation_tags,
        originator=one.originator,
        may_be_preempted=one.preemption_policy is None or one.preemption_policy.allow_preempt_self,
        task_group=one.task_group_name,
        placeholder=one.placeholder,
        queue=one.queue_name,
    )


def is_plain(ask: AllocationAsk) -> bool:
    """Return True if `ask_fault` finds nothing, beside names and amount, and `spec_of` is the default.

    Most asks are plain, and this check is several times as fast as these functions.
    """
    key: object = ask.allocation_key
    count: object = ask.max_allocations
    priority: object = ask.priority
    tags: object = ask.tags
    timeout: object = ask.execution_timeout_ms
    return (
        type(key) is str
        and key != ""
        and len(key) <= LONGEST_NAME
        and key.isascii()
        and key.isprintable()
        and type(tags) is dict
        and not tags
        and type(count) is int
        and (count == 1 or 0 < count <= INT32_MAX)
        and (priority is None or (type(priority) is int and INT32_MIN < priority <= INT32_MAX))
        and type(timeout) is int
        and not timeout
        and ask.priority_class_name == ""
        and ask.task_group_name == ""
        and ask.placeholder is False
        and ask.originator is False
        and ask.preemption_policy is None
    )


def is_plain_request(one: Allocation) -> bool:
    """Return True if an allocation is an ask for which `is_plain` would be True, unless it is allocated."""
    priority: object = one.priority
    tags: object = one.allocation_tags
    return (
        _is_plain_key(one.allocation_key)
        and one.node_id == ""
        and one.uuid == ""
        and one.queue_name == ""
        and type(tags) is dict
        and not tags
        and type(priority) is int
        and INT32_MIN < priority <= INT32_MAX
        and one.priority_class_name == ""
        and one.task_group_name == ""
        and one.placeholder is False
        and one.originator is False
        and one.preemption_policy is None
    )


def _is_plain_key(key: object) -> bool:
    return type(key) is str and 0 < len(key) <= LONGEST_NAME and key.isascii() and key.isprintable()
