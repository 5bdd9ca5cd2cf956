"""Conversion of the outboxes of partitions to one response for a resource manager."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING

from yunikorn.interface.messages import (
    AcceptedApplication,
    AcceptedNode,
    Allocation,
    AllocationAskRelease,
    AllocationRelease,
    FailedNodeUpdate,
    PreemptionPolicy,
    RejectedAllocationAsk,
    RejectedApplication,
    RejectedNode,
    UpdatedApplication,
    UpdateResponse,
)

if TYPE_CHECKING:
    from yunikorn.accounting.changes import Changes
    from yunikorn.accounting.outbox import Outbox, Release
    from yunikorn.model.allocation import Allocation as Placed
    from yunikorn.model.ask import AskSpec


def response_of(unsent: Iterable[tuple[str, Changes]]) -> UpdateResponse | None:
    """Return one response with all messages of these changes, which are cleared; None for no changes.

    Each comes with the partition's name as the RM spells it, and has messages.
    """
    response: UpdateResponse | None = None
    for name, changes in unsent:
        response = response or UpdateResponse()
        _deliver(changes.outbox, name, response)
        changes.clear_outbox()
    return response


def _deliver(outbox: Outbox, name: str, response: UpdateResponse) -> None:
    # Most outboxes have entries of one or two kinds only.
    if outbox.allocations:
        response.new_allocations += map(_allocation, outbox.allocations, repeat(name))
    if outbox.releases:
        response.released_allocations += [_release(release, name) for release in outbox.releases]
    if outbox.updated_applications:
        for app_id, entry in outbox.updated_applications:
            change = UpdatedApplication(app_id, entry.state, entry.time, entry.reason)
            response.updated_applications.append(change)
    if outbox.accepted_applications or outbox.rejected_applications:
        response.accepted_applications += map(AcceptedApplication, outbox.accepted_applications)
        response.rejected_applications += [
            RejectedApplication(refusal.object_id, refusal.reason) for refusal in outbox.rejected_applications
        ]
    if outbox.unknown_releases:
        response.released_allocations += [
            AllocationRelease(
                unrouted.application_id,
                unrouted.uuid,
                name,
                message=unrouted.message,
                allocation_key=unrouted.key,
            )
            for unrouted in outbox.unknown_releases
        ]
    if outbox.ask_releases or outbox.rejected_asks:
        _deliver_asks(outbox, name, response)
    if outbox.accepted_nodes or outbox.rejected_nodes or outbox.failed_node_updates:
        _deliver_nodes(outbox, response)


def _deliver_asks(outbox: Outbox, name: str, response: UpdateResponse) -> None:
    response.released_allocation_asks += [
        AllocationAskRelease(ask.application_id, ask.key, name, ask.termination, ask.message)
        for ask in outbox.ask_releases
    ]
    response.rejected_allocations += [
        RejectedAllocationAsk(refusal.object_id, refusal.application_id, refusal.reason)
        for refusal in outbox.rejected_asks
    ]


def _deliver_nodes(outbox: Outbox, response: UpdateResponse) -> None:
    response.accepted_nodes += map(AcceptedNode, outbox.accepted_nodes)
    response.rejected_nodes += [
        RejectedNode(refusal.object_id, refusal.reason) for refusal in outbox.rejected_nodes
    ]
    response.failed_node_updates += [
        FailedNodeUpdate(refusal.object_id, refusal.reason) for refusal in outbox.failed_node_updates
    ]


def _allocation(placed: Placed, name: str) -> Allocation:
    spec = placed.spec
    # Positional arguments are faster, and there is one call per decision.
    return Allocation(
        placed.key,
        placed.app.id,
        placed.uuid,
        placed.node.id,
        placed.resource,
        placed.queue_name,
        name,
        placed.priority,
        dict(spec.tags) if spec.tags else {},
        spec.task_group,
        spec.placeholder,
        spec.originator,
        None if spec.may_be_preempted and spec.may_preempt else _policy(spec),
    )


def _policy(spec: AskSpec) -> PreemptionPolicy:
    """Return the preemption policy of an allocation."""
    return PreemptionPolicy(spec.may_be_preempted, spec.may_preempt)


def _release(release: Release, name: str) -> AllocationRelease:
    placed = release.allocation
    return AllocationRelease(
        placed.app.id, placed.uuid, name, release.termination, release.message, placed.key, release.mode
    )
