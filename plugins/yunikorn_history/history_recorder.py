"""From the events of a core to the rows of applications and allocations, over restarts and lost events.

Entries of event batches hold references to applications and allocations of the core, of which only what never
changes is read here, in another thread (`yunikorn.accounting.event_batch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yunikorn.accounting.event_batch import ALLOCATED, ASKED, RELEASED, RESIZED, Entry
from yunikorn.clock import MILLISECOND
from yunikorn.event_types import EventChange, EventType
from yunikorn.model.allocation import TerminationType
from yunikorn.states import FINAL_STATES
from yunikorn_history.changed_rows import NOT_REPORTED, ChangedRows
from yunikorn_history.event_buffer import LostEvents, ReceivedEvents, SessionChange
from yunikorn_history.history_tables import ALLOCATIONS, APPLICATIONS, ESTIMATED_END
from yunikorn_history.open_rows import REMOVED, Doubt, OpenAllocation, OpenApplication
from yunikorn_history.recorded_allocations import AllocationRows
from yunikorn_history.recorded_applications import UNOBSERVED, ApplicationRows
from yunikorn_history.recorded_parts import RecordedPart, RecordingContext
from yunikorn_history.row_ids import RowIds
from yunikorn_history.row_writer import OpenRows
from yunikorn_history.session_recovery import ABSENT, QUIET, SessionRecovery

_PLACED, _ENDED = ([*ALLOCATIONS.c.keys()].index(name) for name in ("placed", "ended"))


class HistoryRecorder:
    """Rows of applications and allocations, which follow from events."""

    def __init__(self, loaded: OpenRows, alive: int, ids: RowIds, tags: frozenset[str], now: int) -> None:
        """Continue from the rows of a database, where the latest run was seen at `alive`."""
        self.ids = ids
        self.changed = ChangedRows(ids)
        self._recoveries: dict[str, SessionRecovery] = {}
        """Recoveries by resource manager."""
        self._applications = ApplicationRows(self.changed, self._recoveries, tags)
        self._allocations = AllocationRows(self.changed, self._recoveries, self._applications)
        self.context = RecordingContext(
            self.ids.names,
            self.ids.shapes,
            self.ids.new,
            lambda rm, partition, app_id: self._applications.open.get((rm, partition, app_id)),
            lambda app: self.changed.applications.setdefault(app),
            tags,
        )
        self.parts: Sequence[RecordedPart] = ()
        self._absent: dict[str, int] = {}
        """Ends of sessions, by the resource manager that has no session now (ms)."""
        self._gap: LostEvents | None = None
        """The latest lost events, after which the open rows are not compared yet."""
        self._load(loaded, alive, now)

    # -- earlier runs -----------------------------------------------------------------------------------

    def _load(self, loaded: OpenRows, alive: int, now: int) -> None:
        texts = {number: text for text, number in loaded.names.items()}
        shapes = {number: text for text, number in loaded.shapes.items()}
        names, apps = self.ids.names, dict[Any, OpenApplication]()
        for row in loaded.open[APPLICATIONS.name]:
            app = apps[row[0]] = OpenApplication.of_row(row, texts)
            self._recovery(app.rm, now).await_application(app, alive)
        found: list[Any] = [*loaded.open[ALLOCATIONS.name]]
        of_doubts: dict[int, OpenAllocation] = {}
        for values in found:
            if values[1] in apps:
                one = OpenAllocation.of_row(values, apps[values[1]], shapes)
                self.changed.has_counted(one)
                if one.ended is None:
                    self._recovery(one.app.rm, now).await_allocation(one, alive)
                if one.app.doubts:
                    of_doubts[one.id] = one
            else:
                # The rows of its application, which has ended, and its own were not written together.
                *before, _, _, _, preemptor, flags = values
                end = max(alive, values[_PLACED]), names.of(TerminationType.UNKNOWN.name)
                row = (*before, *end, names.of(NOT_REPORTED), preemptor, flags | ESTIMATED_END)
                self.changed.orphans.append(row)
        for app in [app for app in apps.values() if app.doubts]:
            app.doubts = [Doubt.of_values(values, texts, of_doubts) for values in app.doubts]
            begun = dict.fromkeys(one for one in of_doubts.values() if one.app is app)
            for doubt in reversed(app.doubts):
                begun = {one: None for one in begun if one not in doubt.placed}
                for one in begun:
                    one.alive = doubt.before.alive

    def _recovery(self, rm: str, now: int) -> SessionRecovery:
        return self._recoveries.setdefault(rm, SessionRecovery(now + ABSENT))

    def session(self, change: SessionChange) -> None:
        """Note the begin or end of a session; at its begin, what the one before left is awaited."""
        rm, time = change.rm_id, change.time
        if not change.begins:
            # The last events of the session follow.
            self._absent[rm] = time
            self._applications.decide(rm)
            return
        before = self._absent.pop(rm, None)
        recovery = self._recoveries.get(rm)
        if recovery is None or recovery.is_over:
            recovery = self._recoveries[rm] = SessionRecovery(time)
        self._await(rm, recovery, time if before is None else before)
        recovery.begin(time)

    def _await(self, rm: str, recovery: SessionRecovery, alive: int) -> None:
        for app in self._applications.give(rm):
            recovery.await_application(app, alive)
        for allocation, one in [(a, one) for a, one in self._allocations.open.items() if one.app.rm == rm]:
            del self._allocations.open[allocation]
            recovery.await_allocation(one, alive)

    def tick(self, now: int) -> None:
        """End the recoveries whose time is over."""
        for rm, time in [*self._absent.items()]:
            if now >= time + ABSENT:
                del self._absent[rm]
                recovery = self._recoveries[rm] = SessionRecovery(now)
                self._await(rm, recovery, time)
        for rm, recovery in self._recoveries.items():
            is_over = recovery.ends(now)
            if recovery.is_over:
                self._applications.decide(rm, now if is_over else now - QUIET)
            if is_over:
                for app in recovery.applications:
                    self._applications.leave(app, app.alive, REMOVED, NOT_REPORTED)
                for one in recovery.allocations:
                    self.changed.estimate_end(one)

    # -- events -----------------------------------------------------------------------------------------

    def events(self, entries: Sequence[Entry], received: ReceivedEvents) -> None:
        """Take some of the entries of a batch, oldest first."""
        source = received.source
        for entry in entries:
            if not isinstance(entry, tuple):
                self._event(entry, received)
            elif entry[0] is ALLOCATED:
                self._allocations.placed(source, *entry[1:])
            elif entry[0] is RELEASED:
                self._allocations.released(source, *entry[1:])
            elif entry[0] is ASKED:
                self._applications.of(source, entry[2][0].app, entry[1] // MILLISECOND)
            elif entry[0] is RESIZED:
                self._allocations.resized(entry[2], entry[1], entry[4])
        self._allocations.note_victims()
        for part in self.parts:
            part.observe(entries, source)

    def _event(self, event: Any, received: ReceivedEvents) -> None:
        kind, time, source = event.type, event.timestamp // MILLISECOND, received.source
        if kind == EventType.APP:
            self._applications.event(event, received, time)
        elif kind == EventType.NODE:
            recovery = self._recoveries.get(source[0])
            if (
                recovery is not None
                and event.change == EventChange.ADD
                and not event.detail.endswith("ALLOC")
            ):
                recovery.reported(time, node=True)
        elif kind == EventType.REQUEST and event.reason == "Preempted":
            self._allocations.preempts(source, event.application_id, event.object_id, event.message)
        elif kind == EventType.REQUEST and event.reason == "SchedulingFailedOnRM":
            self._allocations.failed(event.application_id, event.object_id)

    # -- lost events and lost databases -----------------------------------------------------------------

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
        self._allocations.compare(gap)
        for app in [*self._applications.open.values()]:
            ended = 0 if app.source is None else app.source.finished // MILLISECOND
            if 0 < ended <= gap.until:
                state = app.source.state
                self._applications.leave(app, ended, state if state in FINAL_STATES else REMOVED, UNOBSERVED)

    def change_all(self) -> None:
        """Mark all open rows as changed, because another database has none of them."""
        recoveries = self._recoveries.values()
        self.changed.applications |= dict.fromkeys(self._applications.open.values())
        self.changed.allocations |= dict.fromkeys(self._allocations.open.values())
        for recovery in recoveries:
            self.changed.applications |= dict.fromkeys(recovery.applications)
            self.changed.allocations |= dict.fromkeys(recovery.allocations)
