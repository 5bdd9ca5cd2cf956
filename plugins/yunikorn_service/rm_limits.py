"""Limits on the objects of one resource manager in the core; excess entries are refused one by one.

`AskCount` counts its asks: pending ones, and those with allocations.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
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
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model import allocation as objects
from yunikorn.model.application import Application
from yunikorn.model.ask import Ask
from yunikorn.resources import Resource
from yunikorn.scheduling.ask_admission import asks_of, ended_by
from yunikorn.scheduling.existing_allocations import FOREIGN_TAG
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import RUNNING
from yunikorn_service.service_settings import RMLimits

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
        update.updated_nodes = _kept(update.updated_nodes, self._node_fault, _failing(refused))
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
            there = sum(
                len(at.partition.applications) + len(at.submitted) for at in core.partitions(self._rm_id)
            )
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
        def refuse(node: NewNodeInfo, reason: str) -> None:
            refused.rejected_nodes.append(RejectedNode(node.node_id, reason))

        kept = _kept(new, self._node_fault, refuse)
        for node in kept:
            existing = node.existing_allocations
            node.existing_allocations = _kept(existing, self._allocation_fault, _rejecting(refused))
        return kept

    def _node_fault(self, node: NewNodeInfo | UpdateNodeInfo) -> str:
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


class AskCount:
    """Exact number of asks in the core after the removals and recoveries of an update.

    An allocation without an ask (recovered, placed by the RM, or with a released ask) counts as one. The core
    applies removals of applications before asks and releases after asks: both reduce the number for the asks
    of the update.
    """

    def __init__(self, core: Scheduler, update: UpdateRequest) -> None:
        self._core = core
        self._rm_id = update.rm_id
        self._removed = set(removed_applications(core, update))
        self._ended: set[objects.Allocation] = set()
        self._ended_of: Counter[Ask] = Counter()
        """Number of ending allocations per ask."""
        self._dropped: set[Ask] = set()
        self._owners: dict[tuple[str, str], Iterator[Application]] = {}
        """Applications with an ask of a key, by partition and key; a release advances the iterator."""
        self._open: dict[tuple[str, str, str], int] = {}
        """Number of replicas per ask that the RM may still place itself in this update."""
        self._note_releases(update)
        self._ended_of.update(one.ask for one in self._ended if one.ask is not None)
        self.total = existing_in(update)
        for at in core.partitions(self._rm_id):
            self.total += len(at.existing.awaited) + at.submitted.size + len(at.submitted_asks)
            self.total += sum(map(self._count, at.partition.applications.values()))

    def _note_releases(self, update: UpdateRequest) -> None:
        for gone in update.releases.allocation_asks_to_release:
            at = self._core_partition(gone.partition_name)
            app = self._owner(at, gone.application_id, gone.allocation_key)
            if app is not None:
                self._dropped.update(asks_of(app, gone.allocation_key))
        for end in update.releases.allocations_to_release:
            owner = self._application(end.partition_name, end.application_id)
            # A request that could not be started waits again.
            if owner is not None and end.termination_type != TerminationType.SCHEDULING_FAILED_ON_RM:
                found, asks = ended_by(owner, end.uuid, end.allocation_key, end.termination_type)
                self._ended.update(found)
                self._dropped.update(asks)

    def _owner(self, at: PartitionScheduler | None, app_id: str, key: str) -> Application | None:
        """Return the application whose asks a release drops; without an id, the first with such an ask."""
        if at is None:
            return None
        if app_id:
            return at.partition.applications.get(app_id)
        # No release matches an application that an earlier release passed over, so iterators never restart.
        owners = self._owners.get((at.name, key))
        if owners is None:
            owners = self._owners[at.name, key] = iter(at.asks.index.find_all(key) if key else ())
        left = (app for app in owners if app not in self._removed and app.asks[key] not in self._dropped)
        return next(left, None)

    def _count(self, app: Application) -> int:
        if app in self._removed:
            return 0
        without = sum(self._has_no_ask(app, one) for one in app.allocations.values())
        if not (self._dropped or self._ended):
            return len(app.asks) + without
        return sum(not self._is_gone(ask) for ask in app.asks.values()) + without

    def _has_no_ask(self, app: Application, one: objects.Allocation) -> bool:
        if one in self._ended:
            return False
        ask = one.ask
        return ask is None or ask in self._dropped or app.asks.get(one.key) is not ask

    def _is_gone(self, ask: Ask) -> bool:
        """Return True if the releases end this ask."""
        if ask in self._dropped:
            return True
        return not ask.pending and bool(self._ended) and ask.live == self._ended_of[ask]

    def _core_partition(self, name: str) -> PartitionScheduler | None:
        return self._core.partition(self._rm_id, name)

    def _application(self, partition: str, app_id: str) -> Application | None:
        """Return the application with this id, unless the update removes the application."""
        at = self._core_partition(partition)
        app = None if at is None else at.partition.applications.get(app_id)
        return None if app in self._removed else app

    # -- entries --------------------------------------------------------------------------------------

    def adds(self, one: AllocationAsk | Allocation) -> bool:
        """Return True if this entry adds an ask or an allocation without an ask."""
        if isinstance(one, Allocation):
            if FOREIGN_TAG in one.allocation_tags:
                return False
            if self._resizes(one):
                return False
            if one.node_id:
                return not self._takes_place(one)
        app = self._application(one.partition_name, one.application_id or one.allocation_key)
        ask = None if app is None else app.asks.get(one.allocation_key)
        return ask is None or self._is_gone(ask)

    def add(self, one: AllocationAsk | Allocation) -> None:
        """Count an entry for which `adds` returned True."""
        self.total += 1
        if isinstance(one, AllocationAsk):
            self._open[self._name(one)] = one.max_allocations

    def _resizes(self, one: Allocation) -> bool:
        app = self._application(one.partition_name, one.application_id)
        if app is None:
            return False
        if one.uuid and one.node_id:
            known = app.allocations.get(one.uuid)
            return known is not None and known not in self._ended
        return any(there not in self._ended for there in app.of_key(one.allocation_key))

    def _takes_place(self, one: Allocation) -> bool:
        """Return True if an allocation takes the place of a pending replica; each replica is taken once."""
        name = self._name(one)
        if name not in self._open:
            app = self._application(one.partition_name, one.application_id)
            ask = None if app is None else app.asks.get(one.allocation_key)
            self._open[name] = 0 if ask is None or self._is_gone(ask) else ask.pending
        self._open[name] -= 1
        return self._open[name] >= 0

    def _name(self, one: AllocationAsk | Allocation) -> tuple[str, str, str]:
        return (one.partition_name, one.application_id, one.allocation_key)


def existing_in(update: UpdateRequest) -> int:
    """Return the number of allocations on the new nodes of an update, without foreign ones."""
    existing = (one for node in update.new_schedulable_nodes for one in node.existing_allocations)
    return sum(FOREIGN_TAG not in one.allocation_tags for one in existing)


def removed_applications(core: Scheduler, update: UpdateRequest) -> Iterator[Application]:
    """Yield the applications of the core that an update removes, each once."""
    seen: set[Application] = set()
    for gone in update.remove_applications:
        at = core.partition(update.rm_id, gone.partition_name)
        app = None if at is None else at.partition.applications.get(gone.application_id)
        if app is not None and app not in seen:
            seen.add(app)
            yield app
