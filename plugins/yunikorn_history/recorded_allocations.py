"""Rows of allocations, which follow from placements, reports, resizes and ends."""

from __future__ import annotations

from typing import Any

from yunikorn.accounting.event_batch import Source
from yunikorn.clock import MILLISECOND
from yunikorn.event_types import EventDetail
from yunikorn.model.allocation import Allocation, TerminationType
from yunikorn.resources import Resource
from yunikorn.states import ALLOCATED as IS_ALLOCATED
from yunikorn_history.changed_rows import ChangedRows
from yunikorn_history.event_buffer import LostEvents
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    ESTIMATED_END,
    ORIGINATOR,
    PLACEHOLDER,
    PREEMPTED,
    RECOVERED,
)
from yunikorn_history.memory_bounds import remember
from yunikorn_history.open_rows import OpenAllocation, OpenApplication, json_text
from yunikorn_history.recorded_applications import UNOBSERVED, ApplicationRows
from yunikorn_history.session_recovery import SessionRecovery

_EXITS = {
    EventDetail.ALLOC_CANCEL: TerminationType.STOPPED_BY_RM,
    EventDetail.ALLOC_NODEREMOVED: TerminationType.UNKNOWN,
    EventDetail.ALLOC_TIMEOUT: TerminationType.TIMEOUT,
    EventDetail.ALLOC_PREEMPT: TerminationType.PREEMPTED_BY_SCHEDULER,
    EventDetail.ALLOC_REPLACED: TerminationType.PLACEHOLDER_REPLACED,
}


class AllocationRows:
    """Rows of allocations that have not ended."""

    def __init__(
        self, changed: ChangedRows, recoveries: dict[str, SessionRecovery], applications: ApplicationRows
    ) -> None:
        """Begin without any; `recoveries` are by resource manager, and change."""
        self.open: dict[Allocation, OpenAllocation] = {}
        """Allocations that were placed or reported in this session."""
        self._changed, self._recoveries, self._applications = changed, recoveries, applications
        self._ids = changed.ids
        self._causes: dict[tuple[Source, str, str], str] = {}
        """Reasons of preemptions in progress, by partition, application and key."""
        self._preempted: dict[OpenApplication, Source] = {}
        """Applications with new victims of preemptions, and their partitions."""
        self._swept: dict[Allocation, OpenAllocation] = {}
        """Allocations that ended while events were lost, whose end may still be reported."""

    # -- begins and changes -----------------------------------------------------------------------------

    def placed(self, source: Source, now: int, allocation: Allocation, resource: Resource) -> None:
        """Take a placement, or the report of an allocation that exists (ns)."""
        if allocation in self.open:
            # The comparison after lost events has found it already.
            return
        time = now // MILLISECOND
        app = self._applications.of(source, allocation.app, time)
        recovery = self._recoveries.get(source[0])
        if allocation.ask is not None:
            unseen = None if recovery is None else recovery.take_unseen(app, allocation.key)
            if unseen is not None:
                self._place_again(unseen, allocation, resource, time)
            else:
                self._begin(app, allocation, resource, time)
            return
        placed, known = allocation.placed // MILLISECOND, None
        if recovery is not None:
            recovery.reported(time)
            node = self._ids.names.of(allocation.node.id)
            known = recovery.take_allocation(app, allocation.key, node, placed)
        self._applications.confirm(app, known, placed)
        if known is None:
            self._begin(app, allocation, resource, placed)
            return
        self._continue(known, allocation)
        if self._ids.shape(resource) != known.shape:
            self._changed.resize(known, time, resource)

    def _begin(
        self, app: OpenApplication, allocation: Allocation, resource: Resource, placed: int
    ) -> OpenAllocation:
        names, ask, spec = self._ids.names, allocation.ask, allocation.spec
        requested = (allocation.created if ask is None else ask.created) // MILLISECOND
        flags = RECOVERED if ask is None else 0
        flags |= (PLACEHOLDER if spec.placeholder else 0) | (ORIGINATOR if spec.originator else 0)
        one = OpenAllocation(
            self._ids.new(ALLOCATIONS.name),
            app,
            allocation.key,
            names.of(allocation.node.id),
            self._ids.shape(resource),
            names.of(spec.task_group),
            allocation.priority,
            min(requested, placed),
            placed,
            resource,
            flags,
        )
        one.begin()
        self._open(one, allocation)
        return one

    def _place_again(
        self, one: OpenAllocation, allocation: Allocation, resource: Resource, time: int
    ) -> None:
        """Use the row of a placement that never reached the resource manager for the next one."""
        # Its usage is taken back when the row is written, as a checkpoint may be before that.
        one.unseen = one.unseen or (one.placed, one.resource)
        one.node, one.placed = self._ids.names.of(allocation.node.id), max(time, one.placed)
        one.resource, one.shape, one.sizes = resource, self._ids.shape(resource), []
        self._open(one, allocation)

    def _open(self, one: OpenAllocation, allocation: Allocation) -> None:
        self.open[allocation] = one
        if one.app.doubts:
            one.app.doubts[-1].placed[one] = None
        self._changed.change(one)

    def _continue(self, one: OpenAllocation, allocation: Allocation) -> None:
        """Continue the row of an allocation that was reported again."""
        if one.ended is not None:
            one.reopen()
            self._changed.change(one)
        self.open[allocation] = one

    def resized(self, allocation: Allocation, now: int, resource: Resource) -> None:
        """Take another size of an allocation (ns)."""
        one = self.open.get(allocation)
        if one is not None:
            self._changed.resize(one, now // MILLISECOND, resource)

    # -- ends -------------------------------------------------------------------------------------------

    def released(
        self,
        source: Source,
        now: int,
        allocation: Allocation,
        resource: Resource,
        detail: EventDetail,
        message: str,
    ) -> None:
        """Take the end of an allocation (ns)."""
        one = self.open.pop(allocation, None)
        if one is None:
            one = self._unknown_end(source, allocation, resource)
        if one.resource != resource:
            self._changed.resize(one, now // MILLISECOND, resource)
        exit_type = _EXITS[detail]
        one.preemptor = 0
        if TerminationType.PREEMPTED_BY_SCHEDULER in (allocation.releasing, exit_type):
            one.flags |= PREEMPTED
            one.preemptor = self._preemptor(source, allocation)
        self._causes.pop((source, allocation.app.id, allocation.key), None)
        self._changed.end(one, now // MILLISECOND, exit_type, message)

    def _unknown_end(self, source: Source, allocation: Allocation, resource: Resource) -> OpenAllocation:
        """Return the row of an allocation whose begin, or whose end, was among lost events."""
        one = self._swept.pop(allocation, None)
        if one is None:
            placed = allocation.placed // MILLISECOND
            app = self._applications.of(source, allocation.app, placed)
            one = self._begin(app, allocation, resource, placed)
        else:
            self._continue(one, allocation)
        del self.open[allocation]
        return one

    def failed(self, app_id: str, key: str) -> None:
        """Note that the resource manager could not start the allocation that ended last."""
        one = self._changed.latest
        if one is not None and (one.app.app_id, one.key) == (app_id, key):
            one.leave(TerminationType.SCHEDULING_FAILED_ON_RM.name, self._ids.names)
            self._changed.allocations[one] = None

    # -- preemption -------------------------------------------------------------------------------------

    def preempts(self, source: Source, app_id: str, key: str, cause: str) -> None:
        """Note why an allocation is to end."""
        remember(self._causes, (source, app_id, key), cause)
        app = self._applications.open.get((*source, app_id))
        if app is not None and app.source is not None:
            self._preempted[app] = source

    def _preemptor(self, source: Source, allocation: Allocation) -> int:
        cause = self._causes.get((source, allocation.app.id, allocation.key), "")
        ask = None if allocation.eviction is None else allocation.eviction.ask
        return self._ids.names.of(cause if ask is None else json_text([ask.app.id, ask.key]))

    def note_victims(self) -> None:
        """Note for which requests allocations are to end, so that a kill does not make it forgotten."""
        while self._preempted:
            app, source = self._preempted.popitem()
            for allocation in [*app.source.allocations.values()]:
                one = self.open.get(allocation)
                if one is not None and allocation.eviction is not None and not one.preemptor:
                    one.preemptor = self._preemptor(source, allocation)
                    self._changed.allocations[one] = None

    # -- lost events ------------------------------------------------------------------------------------

    def compare(self, gap: LostEvents) -> None:
        """Compare the rows with the objects of the core, of which events were lost."""
        self._swept = {}
        for allocation, one in [*self.open.items()]:
            if allocation.state != IS_ALLOCATED:
                del self.open[allocation]
                self._swept[allocation] = one
                one.flags |= ESTIMATED_END
                self._changed.end(one, gap.until, TerminationType.UNKNOWN, UNOBSERVED)
            elif allocation.resource != one.resource:
                self._changed.resize(one, gap.until, allocation.resource)
        for key, app in [*self._applications.open.items()]:
            source: Any = app.source
            for allocation in () if source is None else [*source.allocations.values()]:
                if allocation.hold is None:
                    self.placed(key[:2], allocation.placed, allocation, allocation.resource)
