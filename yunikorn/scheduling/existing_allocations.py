"""Allocations that an RM reports as existing: recovered, placed by the RM, resized, or foreign.

Quotas and limits do not apply to these allocations, since they already run (as in YuniKorn 1.9).

Recovered allocations whose application has not been reported yet. A restarting RM may report its nodes, with
the allocations on them, before its applications. An allocation marked for recovery (tag
`application.create.force`, as for an application) is then not rejected. It occupies its node without an
owner, and is added to its application when that is submitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from yunikorn.model.allocation import TerminationType
from yunikorn.model.ask import DEFAULT_SPEC, TERMINATING_TAG, AskSpec
from yunikorn.model.creation_times import created_at
from yunikorn.model.foreign_allocation import ForeignAllocation
from yunikorn.model.queue import RECOVERY
from yunikorn.resources import Resource, has_negative, is_zero
from yunikorn.scheduling.user_groups import is_forced
from yunikorn.states import FAILING

if TYPE_CHECKING:
    from yunikorn.accounting.allocation_accounting import AllocationAccounting
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.node import Node
    from yunikorn.scheduling.admission.submitted_asks import SubmittedAsks
    from yunikorn.scheduling.preemption.preemption import Preemption


MARK = "\0awaited "
"""Prefix of the keys of such allocations among the foreign ones; RMs cannot use control characters."""


class AwaitedAllocations:
    """Awaited allocations of one partition, by application and uuid."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._waiting: dict[str, dict[str, ExistingAllocation]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __contains__(self, app_id: str) -> bool:
        return app_id in self._waiting

    def put(self, one: ExistingAllocation, node: Node) -> str:
        """Occupy the resources of `one` on `node` until its application is there; return the uuid."""
        named = attrs.evolve(one, uuid=one.uuid or self._partition.accounting.new_uuid(one.key))
        self._waiting.setdefault(one.app_id, {})[named.uuid] = named
        self._partition.accounting.awaited.add(named.uuid)
        room = ForeignAllocation(self._key(named), node, one.resource, fixed=False, awaited=True)
        self._partition.foreign.put(room)
        return named.uuid

    def take(self, app_id: str) -> list[ExistingAllocation]:
        """Remove and return an application's awaited allocations in report order; their room is freed."""
        found = list(self._waiting.pop(app_id, {}).values())
        for one in found:
            self._end(one)
        return found

    def release(self, app_id: str, uuid: str, key: str, message: str) -> bool:
        """End awaited allocations by uuid, by key, or all of an application; returns True if there were any.

        `message` confirms the release to the RM; it is empty if the RM itself confirmed the release.
        """
        waiting = self._waiting.get(app_id, {})
        ended = [one for one in waiting.values() if (one.uuid == uuid if uuid else not key or one.key == key)]
        for one in ended:
            del waiting[one.uuid]
            self._end(one)
            if message:
                self._report_release(one, message)
        if not waiting:
            self._waiting.pop(app_id, None)
        return bool(ended)

    def forget(self, node: Node) -> None:
        """End the awaited allocations on a node that is being removed."""
        for app_id, waiting in list(self._waiting.items()):
            for one in [one for one in waiting.values() if one.node_id == node.id]:
                del waiting[one.uuid]
                self._end(one)
                self._report_release(one, f"Node {node.id} Removed")
            if not waiting:
                del self._waiting[app_id]

    def _report_release(self, one: ExistingAllocation, message: str) -> None:
        self._partition.changes.release_unknown(one.app_id, one.uuid, one.key, message)

    def _end(self, one: ExistingAllocation) -> None:
        self._partition.accounting.awaited.discard(one.uuid)
        self._partition.foreign.release(self._key(one))

    @staticmethod
    def _key(one: ExistingAllocation) -> str:
        return f"{MARK}{one.app_id} {one.uuid}"


FOREIGN_TAG = "foreign"
FIXED, ORDINARY = "static", "default"
"""Values of the foreign tag: the allocation belongs to the node itself, or is an ordinary foreign one."""


@attrs.define
class ExistingAllocation:
    """An allocation as reported by an RM."""

    key: str
    app_id: str
    node_id: str
    uuid: str
    resource: Resource
    priority: int = 0
    tags: Mapping[str, str] = attrs.field(factory=dict)
    originator: bool = False
    may_be_preempted: bool = True
    task_group: str = ""
    placeholder: bool = False
    queue: str = ""
    """Queue named by the allocation; may be empty."""

    @property
    def name(self) -> str:
        """UUID of the allocation, or its key if it has no UUID."""
        return self.uuid or self.key


class ExistingAllocations:
    """Adds reported allocations to the accounting of one partition."""

    def __init__(
        self,
        partition: Partition,
        preemption: Preemption,
        is_submitted: Callable[[str], bool],
        submitted_asks: SubmittedAsks,
    ) -> None:
        self._partition = partition
        self._preemption = preemption
        self._is_submitted = is_submitted
        self._submitted_asks = submitted_asks
        self.awaited = AwaitedAllocations(partition)
        self.occupied = AwaitedAllocations(partition)
        """Allocations placed by the RM that are added as soon as the checks of their application end."""

    def recover(self, one: ExistingAllocation) -> str:
        """Add an allocation found on a registering node; returns the reason for a rejection, or "".

        An allocation marked for recovery may be reported before its application.
        """
        return self._foreign(one) if _is_foreign(one) else self._take(one, answer=False)

    def occupy(self, one: ExistingAllocation) -> str:
        """Occupy the room of an allocation that is placed later; return its uuid there, or "" for none."""
        partition = self._partition
        node = partition.nodes.get(one.node_id)
        known = one.uuid in partition.accounting.awaited or one.uuid in partition.accounting.allocations
        if node is None or known or has_negative(one.resource) or partition.closed_to("allocations"):
            return ""
        return self.occupied.put(one, node)

    def arrived(self, app: Application) -> None:
        """Add the allocations that awaited this application; invalid ones are rejected."""
        for one in self.awaited.take(app.id):
            reason = self._take(one, answer=False)
            if reason:
                self._partition.changes.ask_rejected(one.key, reason, app.id)

    def place(self, one: ExistingAllocation) -> str:
        """Add or resize an allocation placed by the RM; returns the reason for a rejection, or "".

        An allocation with the key of a pending ask satisfies that ask, also one that is not checked yet; a
        new allocation is acknowledged.
        """
        if reason := self._partition.closed_to("allocations"):
            return reason
        return self._foreign(one) if _is_foreign(one) else self._take(one, answer=True)

    def _take(self, one: ExistingAllocation, *, answer: bool) -> str:
        partition = self._partition
        app, node = partition.applications.get(one.app_id), partition.nodes.get(one.node_id)
        awaited = app is None and not answer and (is_forced(one.tags) or self._is_submitted(one.app_id))
        if app is None and not awaited:
            return f"failed to find application {one.app_id}"
        if node is None:
            return f"failed to find node {one.node_id}" if one.node_id else "an allocation needs a node"
        if has_negative(one.resource) or is_zero(one.resource):
            return "allocation contains no resources or negative resources"
        if not one.key:
            return "an allocation needs an allocation key"
        known = partition.accounting.allocations.get(one.uuid) if one.uuid else None
        if known is not None and known.hold is not None:
            # The RM is not informed of this allocation, and uses the uuid for another one.
            partition.held_placements.take_back(known.hold)
            known = None
        if (not answer and known is not None) or one.uuid in partition.accounting.awaited:
            return f"allocation {one.uuid} exists already"
        if app is None:
            self.awaited.put(one, node)
            return ""
        # The RM counts a request that permit policies hold as pending.
        partition.held_placements.take_back_of(app, one.key)
        if one.queue and (reason := _queue_fault(app, one)):
            return reason
        if known is None and answer and not one.uuid:
            same = app.of_key(one.key)
            if len(same) > 1:
                return f"ask {one.key} has {len(same)} allocations: identify one by its uuid"
            known = same[0] if same else None
        if known is not None:
            return self._change(known, app, node, one)
        if app.state == FAILING:
            return f"application {one.app_id} is failing and accepts no new allocations"
        ask = app.asks.get(one.key)
        if not answer:
            self._book(one, app, node)
        elif ask is not None and ask.pending:
            partition.place_sized(ask, node, one.uuid, one.resource)
            self._preemption.booked(app)
        else:
            partition.changes.acknowledged(self._book(one, app, node))
        if answer:
            self._submitted_asks.placed(app, one.key)
        return ""

    def _book(self, one: ExistingAllocation, app: Application, node: Node) -> Allocation:
        now = self._partition.clock.now()
        # A clock that is ahead of ours must not make times of use negative.
        started = min(created_at(one.tags, now), now)
        accounting = self._partition.accounting
        uuid = one.uuid or accounting.new_uuid(one.key)
        spec = _spec(one, app)
        priority = one.priority if app.ask_priority is None else app.ask_priority
        booked = accounting.recover(app, node, uuid, one.key, one.resource, priority, spec, started)
        _note_end(accounting, booked)
        self._preemption.booked(app)
        return booked

    def _change(self, known: Allocation, app: Application, node: Node, one: ExistingAllocation) -> str:
        """Apply a new size and new tags to an allocation; empty tags leave those that it has."""
        if known.app is not app:
            return f"allocation {known.uuid} belongs to application {known.app.id}"
        if known.node is not node:
            return f"allocation {known.uuid} is on node {known.node.id} and cannot move to {node.id}"
        if one.tags and known.tags != one.tags:
            _change_tags(self._partition.accounting, known, dict(one.tags))
        if known.resource != one.resource:
            self._partition.accounting.resize(known, one.resource)
            self._preemption.booked(app)
        return ""

    def _foreign(self, one: ExistingAllocation) -> str:
        partition = self._partition
        if not one.key:
            return "a foreign allocation needs a key"
        if not one.node_id:
            return f"node ID is empty for foreign allocation {one.key}"
        node = partition.nodes.get(one.node_id)
        if node is None:
            return f"failed to find node {one.node_id}"
        if has_negative(one.resource):
            return "allocation contains negative resources"
        kind = one.tags[FOREIGN_TAG]
        if kind not in (FIXED, ORDINARY):
            message = f"foreign allocation of unknown kind '{kind}'; treated as '{ORDINARY}'"
            partition.changes.node_noted(node, one.key, "UnknownForeignKind", message)
        tags, now = MappingProxyType(dict(one.tags)), partition.clock.now()
        foreign = ForeignAllocation(one.key, node, one.resource, kind == FIXED, tags, one.priority, now)
        partition.foreign.put(foreign)
        return ""


def _queue_fault(app: Application, one: ExistingAllocation) -> str:
    """Return an error if the queue named by an allocation is not the queue of its application.

    The queue name under which the application was submitted is accepted as well. In the recovery queue any
    name is accepted, because the original queue no longer exists.
    """
    queue, named = app.queue, one.queue.lower()
    if queue is None or queue.path == RECOVERY:
        return ""
    if named in (queue.path, queue.path.removeprefix("root."), app.queue_name.lower()):
        return ""
    return f"{app.label} is in queue {queue.path}, but its allocation {one.name} names queue {one.queue}"


def _is_foreign(one: ExistingAllocation) -> bool:
    return FOREIGN_TAG in one.tags


def _spec(one: ExistingAllocation, app: Application) -> AskSpec:
    if not (one.tags or one.originator or one.task_group) and one.may_be_preempted:
        return DEFAULT_SPEC
    return AskSpec(
        one.tags,
        may_be_preempted=one.may_be_preempted,
        originator=one.originator,
        task_group=one.task_group,
        # An atomic gang has no placeholders: each of its recovered allocations is a real one.
        placeholder=one.placeholder and bool(one.task_group) and app.atomic is None,
    )


def _change_tags(accounting: AllocationAccounting, allocation: Allocation, tags: Mapping[str, str]) -> None:
    """Change the tags of an allocation, and of its ask if no other replica exists.

    See docs/decisions/archive/0121.

    The allocation leaves the books with its previous tags, and enters them again. Refusals of its node may
    have ended, as after a change of the node.
    """
    node, ask = allocation.node, allocation.ask
    is_counted = allocation.releasing != TerminationType.PLACEHOLDER_REPLACED
    books = accounting.books if is_counted else None
    if books is not None:
        books.released(allocation, node)
    allocation.spec = allocation.spec.with_tags(tags)
    if ask is not None and ask.live == 1 and not ask.pending:
        ask.spec = allocation.spec
    if books is not None:
        books.placed(allocation, node)
    # Predicates may read the allocations of the node.
    node.mark_changed()
    node.unfit = 0
    accounting.node_changed(node, gained=True)
    _note_end(accounting, allocation)


def _note_end(accounting: AllocationAccounting, allocation: Allocation) -> None:
    """Count an allocation as one that ends if its tags say so (docs/decisions/archive/0146)."""
    ends = allocation.spec.tags.get(TERMINATING_TAG) == "true"
    if ends and allocation.eviction is None and allocation.releasing is None:
        accounting.ends.add([allocation])
