"""Rows of applications from their events, and from ids that come again after a restart.

An id that is submitted again may be the same application or another one (`session_recovery`). Until that is
known, its row continues with a *doubt*, from which the rows of several submissions can still be made. The row
has its doubts also in the database, so that a kill meanwhile decides nothing.
"""

from __future__ import annotations

from typing import Any

from yunikorn.accounting.event_batch import Source
from yunikorn.clock import MILLISECOND
from yunikorn.event_types import EventChange, EventDetail
from yunikorn.model.application import Application
from yunikorn.model.gang import GANG_DISRUPTION_TAG, GANG_STEP_TAG
from yunikorn.model.gang_topology import GANG_TOPOLOGY_TAG
from yunikorn.states import APPLICATION, EXPIRED, FINAL_STATES, NEW, REJECTED
from yunikorn_history.changed_rows import NOT_REPORTED, ChangedRows
from yunikorn_history.event_buffer import ReceivedEvents
from yunikorn_history.history_tables import APPLICATIONS
from yunikorn_history.memory_bounds import remember
from yunikorn_history.open_rows import REMOVED, Doubt, OpenAllocation, OpenApplication
from yunikorn_history.session_recovery import SessionRecovery
from yunikorn_plugins.application_template import template_of

Key = tuple[str, str, str]
"""Resource manager, partition and application id."""

UNOBSERVED = "ended while events were lost"
_STATES = {
    EventDetail.APP_REJECT if state == REJECTED else EventDetail[f"APP_{state.upper()}"]: state
    for state in APPLICATION.states
    if state != EXPIRED  # of an application that has ended before
}
_GANG_TAGS = (GANG_TOPOLOGY_TAG, GANG_STEP_TAG, GANG_DISRUPTION_TAG)


class ApplicationRows:
    """Rows of applications that have not ended."""

    def __init__(
        self, changed: ChangedRows, recoveries: dict[str, SessionRecovery], tags: frozenset[str]
    ) -> None:
        """Begin without any; `recoveries` are by resource manager, and change."""
        self.open: dict[Key, OpenApplication] = {}
        """Applications that were reported in this session."""
        self._changed, self._recoveries, self._ids = changed, recoveries, changed.ids
        self._doubtful: dict[OpenApplication, None] = {}
        """Those of them with doubts."""
        self._duplicates: dict[Key, Any] = {}
        """Rejected submissions whose id a running application has."""
        self._tags = (*sorted(tags), *_GANG_TAGS)

    # -- events -----------------------------------------------------------------------------------------

    def event(self, event: Any, received: ReceivedEvents, time: int) -> None:
        """Take an event of an application (ms)."""
        key, detail = (*received.source, event.object_id), event.detail
        app = self.open.get(key)
        if detail == EventDetail.APP_NEW:
            objects = received.applications.get(event.object_id, ())
            if app is None or app.source is None:
                self._submitted(key, objects[0] if objects else None, time)
            else:
                other = next((one for one in objects if one is not app.source), None)
                remember(self._duplicates, key, other)
        elif detail in _STATES:
            if detail == EventDetail.APP_REJECT and key in self._duplicates:
                app = self._new(key, self._duplicates.pop(key), time)
                self._enter(app, time, REJECTED, event.message)
            elif app is not None:
                self._enter(app, time, _STATES[detail], event.message)
        elif event.change == EventChange.REMOVE and detail == EventDetail.DETAILS_NONE and app is not None:
            self.leave(app, time, REMOVED, event.message)

    def of(self, source: Source, one: Application, time: int) -> OpenApplication:
        """Return the row of an application of the core; a new one if it is not known."""
        key = (*source, one.id)
        found = self.open.get(key)
        if found is None:
            return self._submitted(key, one, time)
        if found.source is None:
            self._describe(found, one)
        elif found.source is not one:
            self.leave(found, time, REMOVED, UNOBSERVED)
            return self._submitted(key, one, time)
        return found

    def _new(self, key: Key, one: Application | None, time: int) -> OpenApplication:
        names, (rm, partition, app_id) = self._ids.names, key
        number = self._ids.new(APPLICATIONS.name)
        app = OpenApplication(number, rm, partition, app_id, names.of(rm), names.of(partition))
        app.template = names.of(template_of(app_id))
        app.submitted = time if one is None else min(time, one.submitted // MILLISECOND)
        app.enter(app.submitted, NEW, "")
        app.state = names.of(NEW)
        if one is not None:
            self._describe(app, one)
        return app

    def _describe(self, app: OpenApplication, one: Application) -> None:
        app.describe(one, self._ids.names, self._tags)

    # -- states -----------------------------------------------------------------------------------------

    def _enter(self, app: OpenApplication, time: int, state: str, reason: str) -> None:
        if app.source is not None:
            self._describe(app, app.source)
        if state in FINAL_STATES:
            self.leave(app, time, state, reason)
            return
        if app.doubts:
            app.doubts[-1].states.append([time, state, reason])
            self._changed.applications[app] = None
        if app.is_before(state):
            # A recovered application comes again through states that it had before.
            self._set_state(app, time, state, reason)

    def _set_state(self, app: OpenApplication, time: int, state: str, reason: str) -> None:
        app.enter(time, state, reason)
        app.state, app.reason = self._ids.names.of(state), self._ids.names.of(reason)
        self._changed.applications[app] = None

    def leave(self, app: OpenApplication, time: int, state: str, reason: str) -> None:
        """End an application (ms)."""
        app.forget_waits()
        self.part(app)
        self._set_state(app, time, state, reason)
        app.ended = max(time, app.submitted)
        key = (app.rm, app.partition, app.app_id)
        if self.open.get(key) is app:
            del self.open[key]
            recovery = self._recoveries.get(app.rm)
            if recovery is not None and not recovery.is_over:
                for one in recovery.take_allocations(app):
                    self._changed.estimate_end(one)

    # -- ids that come again ----------------------------------------------------------------------------

    def _submitted(self, key: Key, one: Application | None, time: int) -> OpenApplication:
        rm, partition, app_id = key
        recovery = self._recoveries.get(rm)
        app = None if recovery is None else recovery.take_application(partition, app_id, time)
        if recovery is not None and app is not None:
            user = app.user if one is None else self._ids.names.of(one.user)
            is_same = recovery.is_same(app, one, is_user=user == app.user)
            if is_same is False:
                self.part(app)
                self._give_up(app, app, recovery)
                app = None
            else:
                self._return(app, recovery, time, is_certain=bool(is_same))
        if app is None:
            app = self._new(key, one, time)
        elif one is not None:
            self._describe(app, one)
        self.open[key] = app
        self._changed.applications[app] = None
        return app

    def _return(
        self, app: OpenApplication, recovery: SessionRecovery, time: int, *, is_certain: bool
    ) -> None:
        """Continue a row; unless it is certain, only until more is known."""
        if is_certain:
            recovery.reported(time)
        else:
            app.doubts.append(Doubt(app.copy(), time, [[time, NEW, ""]], is_new=True))
        if app.doubts:
            self._doubtful[app] = None
        if app.ended is not None:
            app.reopen(self._ids.names)

    def confirm(self, app: OpenApplication, known: OpenAllocation | None, placed: int) -> None:
        """Note that an allocation was reported, with its row if it has one, that was placed (ms) before.

        What was submitted since then is the same application.
        """
        if app.doubts:
            app.confirm(known, placed)
            self._changed.applications[app] = None
            if not app.doubts:
                self._doubtful.pop(app, None)

    def decide(self, rm: str, until: int | None = None) -> None:
        """Part the applications of a resource manager that are in doubt.

        With a time (ms), those that were submitted until then; otherwise those with allocations since.
        """
        for app in [one for one in self._doubtful if one.rm == rm]:
            doubt = app.doubts[-1]
            if doubt.placed if until is None else doubt.time <= until:
                self.part(app)

    def give(self, rm: str) -> list[OpenApplication]:
        """Remove and return the applications of a resource manager, which are awaited from now on."""
        given = [self.open.pop(key) for key in [key for key in self.open if key[0] == rm]]
        for app in given:
            self._doubtful.pop(app, None)
            for doubt in app.doubts:
                doubt.is_new = False
        return given

    def part(self, app: OpenApplication) -> None:
        """Give the latest submission of an id in doubt a row of its own, and end the row before."""
        self._doubtful.pop(app, None)
        if not app.doubts:
            return
        for doubt in app.doubts:
            # Earlier submissions have lower ids.
            doubt.number = doubt.number or self._ids.new(APPLICATIONS.name)
        doubt = app.doubts.pop()
        before = doubt.before
        before.tasks, before.doubts, app.doubts = app.tasks, app.doubts, []
        for one in [one for earlier in before.doubts for one in earlier.placed]:
            one.app = before
        app.begin_anew(doubt.number, doubt.states, before)
        app.state, app.reason = (self._ids.names.of(text) for text in app.states[-1][1:])
        for one in doubt.placed:
            one.begin()
            if one.ended is not None:
                one.end(one.ended)
            self._changed.change(one)
        before.tasks -= app.tasks
        self._changed.applications |= {app: None, before: None}
        self._give_up(before, app, self._recoveries[app.rm], kept=doubt.placed)

    def _give_up(
        self,
        app: OpenApplication,
        awaited: OpenApplication,
        recovery: SessionRecovery,
        kept: dict[OpenAllocation, None] | None = None,
    ) -> None:
        """End the row of an application that is not reported again, with the allocations of `awaited`.

        Those that are `kept` end as allocations of `awaited`.
        """
        app.forget_waits()
        for one in recovery.take_allocations(awaited):
            one.app = awaited if kept and one in kept else app
            if one.app.doubts:
                # They belong to one of several submissions, which part when this one leaves.
                recovery.await_allocation(one, one.alive)
            elif one.ended is None:
                self._changed.estimate_end(one)
        if app.ended is None:
            self.leave(app, app.alive, REMOVED, NOT_REPORTED)
