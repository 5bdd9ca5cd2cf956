"""Limits on the objects of one resource manager in the core; excess entries are refused one by one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from yunikorn.errors import printable
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    FailedNodeUpdate,
    NewNodeInfo,
    RejectedAllocationAsk,
    RejectedApplication,
    RejectedNode,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn.service.ask_count import AskCount, existing_in, removed_applications
from yunikorn.service.settings import RMLimits
from yunikorn.states import RUNNING

_log = logging.getLogger("yunikorn.grpc")

E = TypeVar("E")


class RMAdmission:
    """Enforcement of the limits of one registration. Used in the core's thread only."""

    def __init__(self, rm_id: str, limits: RMLimits) -> None:
        self._rm_id = rm_id
        self._limits = limits
        self._asks = 0
        """Upper bound of the number of asks in the core; counted exactly by `AskCount` beyond the limit."""
        self._types: set[str] = set()
        self._logged: set[str] = set()

    def apply_limits(self, core: Scheduler, update: UpdateRequest) -> UpdateResponse | None:
        """Remove the entries beyond the limits from an update; returns their refusal, or None."""
        if core.session_state(self._rm_id) != RUNNING:
            return None  # the core ignores the update, and sends RESYNC
        refused = UpdateResponse()
        update.new_applications = self._applications(core, update, refused)
        self._limit_asks(core, update, refused)
        update.new_schedulable_nodes = self._nodes(update.new_schedulable_nodes, refused)
        update.updated_nodes = _kept(update.updated_nodes, self._update_fault, _failing(refused))
        return None if refused == UpdateResponse() else refused

    # -- entries ------------------------------------------------------------------------------------------

    def _applications(
        self, core: Scheduler, update: UpdateRequest, refused: UpdateResponse
    ) -> list[AddApplicationRequest]:
        limit, new = self._limits.applications, update.new_applications
        if not new:
            return new
        there = 0
        if limit is not None:
            there = sum(len(at.partition.applications) for at in core.partitions(self._rm_id))
            there -= sum(1 for _ in removed_applications(core, update))

        def fault(app: AddApplicationRequest) -> str:
            nonlocal there
            reason = ""
            if limit is not None and there >= limit:
                reason = self._full("applications", limit)
            reason = reason or self._tags_fault(app.tags) or self._types_fault(app.placeholder_ask)
            there += not reason
            return reason

        def refuse(app: AddApplicationRequest, reason: str) -> None:
            refused.rejected_applications.append(RejectedApplication(app.application_id, reason))

        return _kept(new, fault, refuse)

    def _limit_asks(self, core: Scheduler, update: UpdateRequest, refused: UpdateResponse) -> None:
        room = self._room(core, update)

        def ask_fault(ask: AllocationAsk) -> str:
            return self._tags_fault(ask.tags) or self._types_fault(ask.resource_ask) or room(ask)

        def allocation_fault(one: Allocation) -> str:
            return self._allocation_fault(one) or room(one)

        update.asks = _kept(update.asks, ask_fault, _rejecting(refused))
        update.allocations = _kept(update.allocations, allocation_fault, _rejecting(refused))

    def _room(self, core: Scheduler, update: UpdateRequest) -> Callable[[AllocationAsk | Allocation], str]:
        """Return a function that returns the reason to refuse an ask or allocation, or "".

        Existing allocations of a new node are never refused, and count before the asks.
        """
        limit = self._limits.asks
        new = len(update.asks) + len(update.allocations)
        self._asks += new + existing_in(update)
        if limit is None or not new or self._asks <= limit:
            return lambda _: ""
        count = AskCount(core, update)
        self._asks = count.total

        def fault(one: AllocationAsk | Allocation) -> str:
            if not count.adds(one):
                return ""
            if count.total >= limit:
                return self._full("asks", limit)
            count.add(one)
            self._asks = count.total
            return ""

        return fault

    def _nodes(self, new: list[NewNodeInfo], refused: UpdateResponse) -> list[NewNodeInfo]:
        def fault(node: NewNodeInfo) -> str:
            return self._types_fault(node.schedulable_resource) or self._types_fault(node.occupied_resource)

        def refuse(node: NewNodeInfo, reason: str) -> None:
            refused.rejected_nodes.append(RejectedNode(node.node_id, reason))

        kept = _kept(new, fault, refuse)
        for node in kept:
            existing = node.existing_allocations
            node.existing_allocations = _kept(existing, self._allocation_fault, _rejecting(refused))
        return kept

    def _update_fault(self, node: UpdateNodeInfo) -> str:
        return self._types_fault(node.schedulable_resource) or self._types_fault(node.occupied_resource)

    # -- limits -------------------------------------------------------------------------------------------

    def _full(self, what: str, limit: int) -> str:
        reason = f"the resource manager has {limit} {what}, which is the limit"
        return self._reason(what, reason)

    def _allocation_fault(self, one: Allocation) -> str:
        return self._tags_fault(one.allocation_tags) or self._types_fault(one.resource_per_alloc)

    def _tags_fault(self, tags: dict[str, str]) -> str:
        limit = self._limits.tags
        if limit is None or len(tags) <= limit:
            return ""
        return self._reason("tags", f"it has {len(tags)} tags, the limit is {limit}")

    def _types_fault(self, resource: Resource | None) -> str:
        limit = self._limits.resource_types
        if limit is None or resource is None or resource.keys() <= self._types:
            return ""
        if len(self._types | resource.keys()) > limit:
            reason = (
                f"it names another resource type, and {len(self._types)} are in use: the limit is {limit}"
            )
            return self._reason("resource-types", reason)
        self._types |= resource.keys()
        return ""

    def _reason(self, name: str, reason: str) -> str:
        if name not in self._logged:
            self._logged.add(name)
            text = (
                "resource manager %s exceeds a limit, and some of its entries are rejected: %s (--limit %s)"
            )
            _log.warning(text, printable(self._rm_id), reason, name)
        return f"{reason} (--limit {name})"


def _kept(entries: list[E], fault: Callable[[E], str], refuse: Callable[[E, str], None]) -> list[E]:
    """Return the entries without a fault; `refuse` is called with each other entry and the reason."""
    kept: list[E] = []
    for entry in entries:
        reason = fault(entry)
        if reason:
            refuse(entry, reason)
        else:
            kept.append(entry)
    return kept


def _rejecting(refused: UpdateResponse) -> Callable[[AllocationAsk | Allocation, str], None]:
    def refuse(one: AllocationAsk | Allocation, reason: str) -> None:
        rejected = RejectedAllocationAsk(one.allocation_key, one.application_id, reason)
        refused.rejected_allocations.append(rejected)

    return refuse


def _failing(refused: UpdateResponse) -> Callable[[UpdateNodeInfo, str], None]:
    def refuse(node: UpdateNodeInfo, reason: str) -> None:
        refused.failed_node_updates.append(FailedNodeUpdate(node.node_id, reason))

    return refuse
