"""From the events of a core to the rows of applications and allocations.

Entries of event batches hold references to applications and allocations of the core, of which only what never
changes is read here, in another thread (`yunikorn.accounting.event_batch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

from yunikorn.accounting.event_batch import ALLOCATED, ASKED, RELEASED, RESIZED, Entry, Source
from yunikorn.clock import MILLISECOND
from yunikorn.event_types import EventChange, EventDetail, EventType
from yunikorn.model.allocation import Allocation, TerminationType
from yunikorn.model.application import Application
from yunikorn.model.gang import GANG_DISRUPTION_TAG, GANG_STEP_TAG
from yunikorn.model.gang_topology import GANG_TOPOLOGY_TAG
from yunikorn.resources import Resource
from yunikorn.states import ALLOCATED as IS_ALLOCATED
from yunikorn.states import APPLICATION, EXPIRED, FINAL_STATES, NEW, REJECTED
from yunikorn_history.application_template import template_of
from yunikorn_history.event_buffer import LostEvents, ReceivedEvents, SessionChange
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    ESTIMATED_END,
    ORIGINATOR,
    PLACEHOLDER,
    PREEMPTED,
    RECOVERED,
)
from yunikorn_history.memory_bounds import remember
from yunikorn_history.open_rows import REMOVED, OpenAllocation, OpenApplication, json_text
from yunikorn_history.recorded_parts import RecordedPart, RecordingContext
from yunikorn_history.row_ids import RowIds
from yunikorn_history.row_writer import OpenRows
from yunikorn_history.rows import Row, RowBatch
from yunikorn_history.service_usage import ServiceUsage, UsageKey, periods_of
from yunikorn_history.session_recovery import ABSENT, QUIET, ReturnedApplication, SessionRecovery

Key = tuple[str, str, str]
"""Resource manager, partition and application id."""

NOT_REPORTED = "not reported again after a restart"
UNOBSERVED = "ended while events were lost"
_STATES = {
    EventDetail.APP_REJECT if state == REJECTED else EventDetail[f"APP_{state.upper()}"]: state
    for state in APPLICATION.states
    if state != EXPIRED  # of an application that has ended before
}
_EXITS = {
    EventDetail.ALLOC_CANCEL: TerminationType.STOPPED_BY_RM,
    EventDetail.ALLOC_NODEREMOVED: TerminationType.UNKNOWN,
    EventDetail.ALLOC_TIMEOUT: TerminationType.TIMEOUT,
    EventDetail.ALLOC_PREEMPT: TerminationType.PREEMPTED_BY_SCHEDULER,
    EventDetail.ALLOC_REPLACED: TerminationType.PLACEHOLDER_REPLACED,
}
_PLACED = [*ALLOCATIONS.c.keys()].index("placed")
_GANG_TAGS = (GANG_TOPOLOGY_TAG, GANG_STEP_TAG, GANG_DISRUPTION_TAG)


class HistoryRecorder:
    """Rows of applications and allocations, which follow from events."""

    def __init__(self, loaded: OpenRows, alive: int, ids: RowIds, tags: frozenset[str], now: int) -> None:
        """Continue from the rows of a database, where the latest run was seen at `alive`."""
        self.ids = ids
        self.context = RecordingContext(
            self.ids.names,
            self.ids.shapes,
            self.ids.new,
            lambda rm, partition, app_id: self._applications.get((rm, partition, app_id)),
            lambda app: self.changed_applications.setdefault(app),
            tags,
        )
        self.parts: Sequence[RecordedPart] = ()
        self.usage: ServiceUsage | None = None
        self.changed_applications: dict[OpenApplication, None] = {}
        self.changed_allocations: dict[OpenAllocation, None] = {}
        self._applications: dict[Key, OpenApplication] = {}
        self._allocations: dict[Allocation, OpenAllocation] = {}
        self._recoveries: dict[str, SessionRecovery] = {}
        """Recoveries by resource manager."""
        self._returned: dict[OpenApplication, ReturnedApplication] = {}
        """Applications of which it is not certain whether they are those of their rows."""
        self._absent: dict[str, int] = {}
        """Ends of sessions, by the resource manager that has no session now (ms)."""
        self._duplicates: dict[Key, Any] = {}
        """Rejected submissions whose id a running application has."""
        self._causes: dict[tuple[Source, str, str], str] = {}
        """Reasons of preemptions in progress, by partition, application and key."""
        self._preempted: dict[OpenApplication, Source] = {}
        """Applications with new victims of preemptions, and their partitions."""
        self._latest: OpenAllocation | None = None
        """The allocation that ended last."""
        self._orphans: list[Row] = []
        """Ended rows of allocations whose application is not open any more."""
        self._swept: dict[Allocation, OpenAllocation] = {}
        """Allocations that ended while events were lost, whose end may still be reported."""
        self._gap: LostEvents | None = None
        """The latest lost events, after which the open rows are not compared yet."""
        self._tags = (*sorted(tags), *_GANG_TAGS)
        self._load(loaded, alive, now)

    # -- earlier runs -----------------------------------------------------------------------------------

    def _load(self, loaded: OpenRows, alive: int, now: int) -> None:
        texts = {number: text for text, number in loaded.names.items()}
        shapes = {number: text for text, number in loaded.shapes.items()}
        names, apps = self.ids.names, dict[Any, OpenApplication]()
        for row in loaded.open[APPLICATIONS.name]:
            app = apps[row[0]] = OpenApplication.of_row(row, texts)
            self._recovery(app.rm, now).await_application(app, alive)
        open_allocations: list[Any] = [*loaded.open[ALLOCATIONS.name]]
        for values in open_allocations:
            if values[1] in apps:
                one = OpenAllocation.of_row(values, apps[values[1]], shapes)
                # It has been counted, up to the latest checkpoint.
                one.usage_key = self._usage_key(one.app)
                self._recovery(one.app.rm, now).await_allocation(one, alive)
            else:
                # The rows of its application, which has ended, and its own were not written together.
                *before, _, _, _, preemptor, flags = values
                end = max(alive, values[_PLACED]), names.of(TerminationType.UNKNOWN.name)
                self._orphans.append(
                    (*before, *end, names.of(NOT_REPORTED), preemptor, flags | ESTIMATED_END)
                )

    def _recovery(self, rm: str, now: int) -> SessionRecovery:
        return self._recoveries.setdefault(rm, SessionRecovery(now + ABSENT))

    def session(self, change: SessionChange) -> None:
        """Note the begin or end of a session; at its begin, what the one before left is awaited."""
        rm, time = change.rm_id, change.time
        if not change.begins:
            # The last events of the session follow.
            self._absent[rm] = time
            for app in [one for one, returned in self._returned.items() if one.rm == rm and returned.placed]:
                self._part(app)
            return
        before = self._absent.pop(rm, None)
        recovery = self._recoveries.get(rm)
        if recovery is None or recovery.is_over:
            recovery = self._recoveries[rm] = SessionRecovery(time)
        self._await(rm, recovery, time if before is None else before)
        recovery.begin(time)

    def _await(self, rm: str, recovery: SessionRecovery, alive: int) -> None:
        for key in [key for key in self._applications if key[0] == rm]:
            app = self._applications.pop(key)
            self._returned.pop(app, None)
            recovery.await_application(app, alive)
        for allocation, one in [(a, one) for a, one in self._allocations.items() if one.app.rm == rm]:
            del self._allocations[allocation]
            recovery.await_allocation(one, alive)

    def tick(self, now: int) -> None:
        """End the recoveries whose time is over."""
        for rm, time in [*self._absent.items()]:
            if now >= time + ABSENT:
                del self._absent[rm]
                recovery = self._recoveries[rm] = SessionRecovery(now)
                self._await(rm, recovery, time)
        is_over = {rm for rm, recovery in self._recoveries.items() if recovery.ends(now)}
        for app, returned in [*self._returned.items()]:
            recovery = self._recoveries[app.rm]
            if app.rm in is_over or (recovery.is_over and now >= returned.time + QUIET):
                self._part(app)
        for rm, recovery in self._recoveries.items():
            if rm in is_over:
                for one in recovery.allocations:
                    self._estimate_end(one)
                for app in recovery.applications:
                    self._leave(app, app.alive, REMOVED, NOT_REPORTED)

    def _estimate_end(self, one: OpenAllocation) -> None:
        one.flags |= ESTIMATED_END | (PREEMPTED if one.preemptor else 0)
        exit_type = TerminationType.PREEMPTED_BY_SCHEDULER if one.preemptor else TerminationType.UNKNOWN
        self._end(one, one.alive, exit_type, NOT_REPORTED)

    # -- events -----------------------------------------------------------------------------------------

    def events(self, entries: Sequence[Entry], received: ReceivedEvents) -> None:
        """Take some of the entries of a batch, oldest first."""
        source = received.source
        for entry in entries:
            if not isinstance(entry, tuple):
                self._event(entry, received)
            elif entry[0] is ALLOCATED:
                self._allocated(source, *entry[1:])
            elif entry[0] is RELEASED:
                self._released(source, *entry[1:])
            elif entry[0] is ASKED:
                self._application(source, entry[2][0].app, entry[1] // MILLISECOND)
            elif entry[0] is RESIZED and (one := self._allocations.get(entry[2])) is not None:
                self._resize(one, entry[1] // MILLISECOND, entry[4])
        self._note_victims()
        for part in self.parts:
            part.observe(entries, source)

    def _event(self, event: Any, received: ReceivedEvents) -> None:
        kind, time = event.type, event.timestamp // MILLISECOND
        if kind == EventType.APP:
            self._application_event(event, received, time)
        elif kind == EventType.NODE:
            if event.change == EventChange.ADD and not event.detail.endswith("ALLOC"):
                self._reported(received.source[0], time, node=True)
        elif kind == EventType.REQUEST:
            where = received.source, event.application_id, event.object_id
            if event.reason == "Preempted":
                remember(self._causes, where, event.message)
                app = self._applications.get((*received.source, event.application_id))
                if app is not None and app.source is not None:
                    self._preempted[app] = received.source
            elif event.reason == "SchedulingFailedOnRM":
                one = self._latest
                if one is not None and (one.app.app_id, one.key) == where[1:]:
                    one.leave(TerminationType.SCHEDULING_FAILED_ON_RM.name, self.ids.names)
                    self.changed_allocations[one] = None

    def _reported(self, rm: str, time: int, *, node: bool = False) -> None:
        recovery = self._recoveries.get(rm)
        if recovery is not None and not recovery.is_over:
            recovery.reported(time, node=node)

    # -- applications -----------------------------------------------------------------------------------

    def _application_event(self, event: Any, received: ReceivedEvents, time: int) -> None:
        key, detail = (*received.source, event.object_id), event.detail
        app = self._applications.get(key)
        if detail == EventDetail.APP_NEW:
            objects = received.applications.get(event.object_id, ())
            if app is None or app.source is None:
                self._submitted(key, objects[0] if objects else None, time)
            else:
                other = next((one for one in objects if one is not app.source), None)
                remember(self._duplicates, key, other)
        elif detail in _STATES:
            if detail == EventDetail.APP_REJECT and key in self._duplicates:
                app = self._new_application(key, self._duplicates.pop(key), time)
                self._enter(app, time, REJECTED, event.message)
            elif app is not None:
                self._enter(app, time, _STATES[detail], event.message)
        elif event.change == EventChange.REMOVE and detail == EventDetail.DETAILS_NONE and app is not None:
            self._leave(app, time, REMOVED, event.message)

    def _application(self, source: Source, one: Application, time: int) -> OpenApplication:
        """Return the row of an application of the core; a new one if it is not known."""
        key = (*source, one.id)
        found = self._applications.get(key)
        if found is None:
            return self._submitted(key, one, time)
        if found.source is None:
            self._describe(found, one)
        elif found.source is not one:
            self._leave(found, time, REMOVED, UNOBSERVED)
            return self._submitted(key, one, time)
        return found

    def _submitted(self, key: Key, one: Application | None, time: int) -> OpenApplication:
        rm, partition, app_id = key
        recovery = self._recoveries.get(rm)
        app = None if recovery is None else recovery.take_application(partition, app_id, time)
        if recovery is not None and app is not None:
            user = app.user if one is None else self.ids.names.of(one.user)
            is_same = recovery.is_same(app, one, is_user=user == app.user)
            if is_same is False:
                self._give_up(app, app, recovery)
                app = None
            else:
                self._return(app, time, is_certain=bool(is_same))
        if app is None:
            app = self._new_application(key, one, time)
        elif one is not None:
            self._describe(app, one)
        self._applications[key] = app
        self.changed_applications[app] = None
        return app

    def _return(self, app: OpenApplication, time: int, *, is_certain: bool) -> None:
        """Continue a row; unless it is certain, only until more is known."""
        if is_certain:
            self._reported(app.rm, time)
        else:
            self._returned[app] = ReturnedApplication(app.copy(), time, [[time, NEW, ""]])
        if app.ended is not None:
            app.reopen(self.ids.names)

    def _part(self, app: OpenApplication) -> None:
        """End the row of an application whose allocations were not reported, and give it another one."""
        returned = self._returned.pop(app)
        before = returned.before
        before.tasks = app.tasks
        app.begin_anew(self.ids.new(APPLICATIONS.name), returned.states, before)
        app.state, app.reason = (self.ids.names.of(text) for text in app.states[-1][1:])
        for one in returned.placed:
            one.begin()
            if one.ended is not None:
                one.end(one.ended)
            self.changed_allocations[one] = None
        before.tasks -= app.tasks
        self.changed_applications |= {app: None, before: None}
        self._give_up(before, app, self._recoveries[app.rm])

    def _give_up(self, app: OpenApplication, awaited: OpenApplication, recovery: SessionRecovery) -> None:
        """End the row of an application that is not reported again, with the allocations of `awaited`."""
        for one in recovery.take_allocations(awaited):
            one.app = app
            if one.ended is None:
                self._estimate_end(one)
        if app.ended is None:
            self._leave(app, app.alive, REMOVED, NOT_REPORTED)

    def _new_application(self, key: Key, one: Application | None, time: int) -> OpenApplication:
        names, (rm, partition, app_id) = self.ids.names, key
        app = OpenApplication(
            self.ids.new(APPLICATIONS.name), rm, partition, app_id, names.of(rm), names.of(partition)
        )
        app.template = names.of(template_of(app_id))
        app.submitted = time if one is None else min(time, one.submitted // MILLISECOND)
        app.enter(app.submitted, NEW, "")
        app.state = names.of(NEW)
        if one is not None:
            self._describe(app, one)
        return app

    def _describe(self, app: OpenApplication, one: Application) -> None:
        app.describe(one, self.ids.names, self._tags)

    def _enter(self, app: OpenApplication, time: int, state: str, reason: str) -> None:
        """Enter a state."""
        if app.source is not None:
            self._describe(app, app.source)
        if state in FINAL_STATES:
            self._leave(app, time, state, reason)
            return
        if app in self._returned:
            self._returned[app].states.append([time, state, reason])
        if app.is_before(state):
            # A recovered application comes again through states that it had before.
            self._set_state(app, time, state, reason)

    def _set_state(self, app: OpenApplication, time: int, state: str, reason: str) -> None:
        app.enter(time, state, reason)
        app.state, app.reason = self.ids.names.of(state), self.ids.names.of(reason)
        self.changed_applications[app] = None

    def _leave(self, app: OpenApplication, time: int, state: str, reason: str) -> None:
        returned = self._returned.get(app)
        if returned is not None and (returned.placed or app.user != returned.before.user):
            self._part(app)
        self._returned.pop(app, None)
        self._set_state(app, time, state, reason)
        app.ended = max(time, app.submitted)
        key = (app.rm, app.partition, app.app_id)
        if self._applications.get(key) is app:
            del self._applications[key]
            recovery = self._recoveries.get(app.rm)
            if recovery is not None and not recovery.is_over:
                for one in recovery.take_allocations(app):
                    self._estimate_end(one)

    # -- allocations ------------------------------------------------------------------------------------

    def _allocated(self, source: Source, now: int, allocation: Allocation, resource: Resource) -> None:
        if allocation in self._allocations:
            # The comparison after lost events has found it already.
            return
        time = now // MILLISECOND
        app = self._application(source, allocation.app, time)
        recovery = self._recoveries.get(source[0])
        if allocation.ask is not None:
            if recovery is not None:
                unseen = recovery.take_unseen(app, allocation.key)
                if unseen is not None:
                    self._place_again(unseen, allocation, resource, time)
                    return
        else:
            self._reported(source[0], time)
            self._returned.pop(app, None)
            if recovery is not None:
                node = self.ids.names.of(allocation.node.id)
                known = recovery.take_allocation(app, allocation.key, node)
                if known is not None:
                    self._continue(known, allocation)
                    if self.ids.shape(resource) != known.shape:
                        self._resize(known, time, resource)
                    return
            time = allocation.placed // MILLISECOND
        self._new_allocation(app, allocation, resource, time)

    def _new_allocation(
        self, app: OpenApplication, allocation: Allocation, resource: Resource, placed: int
    ) -> OpenAllocation:
        names, ask, spec = self.ids.names, allocation.ask, allocation.spec
        requested = (allocation.created if ask is None else ask.created) // MILLISECOND
        flags = RECOVERED if ask is None else 0
        if spec.placeholder:
            flags |= PLACEHOLDER
        if spec.originator:
            flags |= ORIGINATOR
        one = OpenAllocation(
            self.ids.new(ALLOCATIONS.name),
            app,
            allocation.key,
            names.of(allocation.node.id),
            self.ids.shape(resource),
            names.of(spec.task_group),
            allocation.priority,
            min(requested, placed),
            placed,
            resource,
            flags,
        )
        self._allocations[allocation] = one
        self.changed_allocations[one] = None
        one.begin()
        if app in self._returned:
            self._returned[app].placed.append(one)
        self.changed_applications[app] = None
        return one

    def _place_again(
        self, one: OpenAllocation, allocation: Allocation, resource: Resource, time: int
    ) -> None:
        """Use the row of a placement that never reached the resource manager for the next one."""
        if one.usage_key is not None and self.usage is not None:
            self.usage.withdrawn(one.usage_key, one.placed, one.resource, placeholder=one.is_placeholder)
            one.usage_key = None
        one.node, one.placed = self.ids.names.of(allocation.node.id), max(time, one.placed)
        one.resource, one.shape, one.sizes = resource, self.ids.shape(resource), []
        if one.app in self._returned:
            self._returned[one.app].placed.append(one)
        self._allocations[allocation] = one
        self.changed_allocations[one] = None

    def _continue(self, one: OpenAllocation, allocation: Allocation) -> None:
        """Continue the row of an allocation that was reported again."""
        if one.ended is not None:
            one.reopen()
            self.changed_allocations[one] = None
            self.changed_applications[one.app] = None
        self._allocations[allocation] = one

    def _released(
        self,
        source: Source,
        now: int,
        allocation: Allocation,
        resource: Resource,
        detail: EventDetail,
        message: str,
    ) -> None:
        one = self._allocations.pop(allocation, None)
        if one is None:
            one = self._unknown_end(source, allocation, resource)
        if one.resource != resource:
            self._resize(one, now // MILLISECOND, resource)
        exit_type = _EXITS[detail]
        one.preemptor = 0
        if TerminationType.PREEMPTED_BY_SCHEDULER in (allocation.releasing, exit_type):
            one.flags |= PREEMPTED
            one.preemptor = self._preemptor(source, allocation)
        self._causes.pop((source, allocation.app.id, allocation.key), None)
        self._end(one, now // MILLISECOND, exit_type, message)

    def _preemptor(self, source: Source, allocation: Allocation) -> int:
        cause = self._causes.get((source, allocation.app.id, allocation.key), "")
        ask = None if allocation.eviction is None else allocation.eviction.ask
        return self.ids.names.of(cause if ask is None else json_text([ask.app.id, ask.key]))

    def _note_victims(self) -> None:
        """Note for which requests allocations are to end, so that a kill does not make it forgotten."""
        while self._preempted:
            app, source = self._preempted.popitem()
            for allocation in [*app.source.allocations.values()]:
                one = self._allocations.get(allocation)
                if one is not None and allocation.eviction is not None and not one.preemptor:
                    one.preemptor = self._preemptor(source, allocation)
                    self.changed_allocations[one] = None

    def _unknown_end(self, source: Source, allocation: Allocation, resource: Resource) -> OpenAllocation:
        """Return the row of an allocation whose begin, or whose end, was among lost events."""
        one = self._swept.pop(allocation, None)
        if one is None:
            placed = allocation.placed // MILLISECOND
            app = self._application(source, allocation.app, placed)
            one = self._new_allocation(app, allocation, resource, placed)
        else:
            self._continue(one, allocation)
        del self._allocations[allocation]
        return one

    def _end(self, one: OpenAllocation, time: int, exit_type: TerminationType, message: str) -> None:
        one.ended = max(time, one.placed)
        one.leave(exit_type.name, self.ids.names)
        one.reason = self.ids.names.of(message)
        one.end(one.ended)
        self._latest = one
        self.changed_allocations[one] = None
        self.changed_applications[one.app] = None

    def _resize(self, one: OpenAllocation, time: int, resource: Resource) -> None:
        one.resize(time, resource, self.ids.shape(resource))
        self.changed_allocations[one] = None

    # -- lost events ------------------------------------------------------------------------------------

    def lost(self, gap: LostEvents) -> None:
        """Note that events were lost."""
        self._gap = gap

    def caught_up(self) -> None:
        """If events were lost, compare the open rows with the objects of the core.

        Called when all events are recorded, because the core is ahead of those that wait.
        """
        gap, self._gap = self._gap, None
        if gap is None:
            return
        self._swept = {}
        for allocation, one in [*self._allocations.items()]:
            if allocation.state != IS_ALLOCATED:
                del self._allocations[allocation]
                self._swept[allocation] = one
                one.flags |= ESTIMATED_END
                self._end(one, gap.until, TerminationType.UNKNOWN, UNOBSERVED)
            elif allocation.resource != one.resource:
                self._resize(one, gap.until, allocation.resource)
        for key, app in [*self._applications.items()]:
            source: Application | None = app.source
            if source is None:
                continue
            for allocation in [*source.allocations.values()]:
                if allocation.hold is None:
                    self._allocated(key[:2], allocation.placed, allocation, allocation.resource)
            if 0 < (time := source.finished // MILLISECOND) <= gap.until:
                self._leave(app, time, source.state if source.state in FINAL_STATES else REMOVED, UNOBSERVED)

    # -- rows -------------------------------------------------------------------------------------------

    def fill(self, batch: RowBatch, most: int) -> None:
        """Add up to `most` changed rows of allocations, and likewise of applications, oldest first."""
        changed = self.changed_applications
        for one in [*islice(self.changed_allocations, most)]:
            row, app = one.row(), one.app
            # After a kill, no row of an allocation may be without that of its application.
            of_app = app.row() if app in changed or not app.is_written else None
            self._count(one)
            if of_app is not None:
                changed.pop(app, None)
                app.is_written = True
                batch.add(APPLICATIONS.name, of_app)
            del self.changed_allocations[one]
            one.is_written = True
            batch.add(ALLOCATIONS.name, row)
        for app in [] if self.changed_allocations else [*islice(changed, most)]:
            batch.add(APPLICATIONS.name, app.row())
            del changed[app]
            app.is_written = True
        while self._orphans:
            batch.add(ALLOCATIONS.name, self._orphans.pop())
        self.ids.move_to(batch)

    def _count(self, one: OpenAllocation) -> None:
        """Count the service of an allocation whose row is written."""
        usage, placeholder = self.usage, one.is_placeholder
        if usage is None:
            return
        sizes = [*one.sizes, [0, one.resource]]
        if one.usage_key is None:
            one.usage_key, one.counted_sizes = self._usage_key(one.app), 0
            usage.placed(one.usage_key, one.placed, sizes[0][1], placeholder=placeholder)
        elif one.counted_end is not None and one.counted_end != one.ended:
            # The end that was counted was estimated.
            counted = sizes[one.counted_sizes][1]
            usage.resized(one.usage_key, one.counted_end, {}, counted, placeholder=placeholder)
            one.counted_end = None
        for (time, before), (_, after) in pairwise(sizes[one.counted_sizes :]):
            usage.resized(one.usage_key, time, before, after, placeholder=placeholder)
        one.counted_sizes = len(one.sizes)
        if one.ended is not None and one.counted_end is None:
            periods = periods_of(one.placed, one.ended, one.resource, json_text(one.sizes))
            preempted = bool(one.flags & PREEMPTED)
            usage.ended(one.usage_key, periods, placeholder=placeholder, preempted=preempted)
            one.counted_end = one.ended

    def _usage_key(self, app: OpenApplication) -> UsageKey:
        return app.rm_name, app.partition_name, app.queue, app.user, app.groups, app.tags

    def change_all(self) -> None:
        """Mark all open rows as changed, because another database has none of them."""
        recoveries = self._recoveries.values()
        self.changed_applications |= dict.fromkeys(self._applications.values())
        self.changed_allocations |= dict.fromkeys(self._allocations.values())
        for recovery in recoveries:
            self.changed_applications |= dict.fromkeys(recovery.applications)
            self.changed_allocations |= dict.fromkeys(recovery.allocations)
