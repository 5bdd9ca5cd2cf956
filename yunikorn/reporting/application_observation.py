"""Observation of one application during a simulation, and its row of results."""

from __future__ import annotations

import attrs

from yunikorn.reporting.slowdown import bounded_slowdown, own_time
from yunikorn.resources import Resource
from yunikorn.simulation.rm_state import Submitted
from yunikorn.simulation.statistics import DIGITS, seconds

RUNNING, WAITING = "running", "waiting"
"""Outcomes of applications that have not ended at the end of the simulation."""


@attrs.frozen
class ApplicationRow:
    """Result of an application. Times are seconds of simulated time; None for events that did not occur."""

    application: str
    user: str
    partition: str
    queue: str
    """Queue of the application; empty if no queue was assigned."""
    size: str
    """Size class, one of `size_classes.NAMES`."""
    tasks: int
    restarts: int
    submitted: float
    started: float | None
    """Start of the first task."""
    whole: float | None
    """Time at which all tasks had been started at least once."""
    ended: float | None
    outcome: str
    """finished, failed or rejected; running or waiting at the end of the simulation."""
    wait: float | None
    """Time from submission to `started`."""
    whole_wait: float | None
    """Time from submission to `whole`."""
    slowdown: float | None
    """Bounded slowdown; only of finished applications."""
    reason: str


@attrs.define(eq=False)
class ApplicationObservation:
    """A submitted application that has not ended."""

    record: Submitted
    partition: str
    size: str = ""
    """Size class; empty until the nodes of the same instant are registered."""
    queue: str = ""
    missing: int = 0
    """Number of tasks that have never been started."""
    whole: int | None = None
    lacking: dict[Resource, int] = attrs.Factory(dict)
    """Number of waiting requests by resource amounts."""
    waiting: int = 0
    """Number of waiting tasks."""
    has_run: bool = False

    def first_start(self, ask: str, moment: int) -> bool:
        """Note the start of a task of this ask; returns True if now all tasks have been started."""
        # A restarted task has an ask with another key.
        if self.missing and any(group.name == ask for group in self.record.plan.tasks):
            self.missing -= 1
            return self._see_whole(moment)
        return False

    def give_up(self, tasks: int, moment: int) -> bool:
        """Note tasks that will never start; returns True if now all remaining tasks have been started."""
        self.missing -= min(tasks, self.missing)
        return self._see_whole(moment)

    def _see_whole(self, moment: int) -> bool:
        if self.missing or self.whole is not None or self.record.first_start is None:
            return False
        self.whole = moment
        return True

    def wants(self) -> dict[Resource, int]:
        """Return the current number of waiting requests by resource amounts."""
        found: dict[Resource, int] = {}
        for asks in (self.record.asks, self.record.places):
            for ask in asks.values():
                if ask.waiting:
                    size = ask.group.resources
                    found[size] = found.get(size, 0) + ask.waiting
        return found

    def slowdown(self, ended: int) -> float | None:
        """Return the bounded slowdown for an end at `ended`; None if a task has no end of its own."""
        own = own_time(self.record.plan)
        return None if own is None else bounded_slowdown(ended - self.record.plan.submit, own)

    def row(self, ended: int | None, outcome: str, reason: str = "") -> ApplicationRow:
        """Make the row of results."""
        record, plan = self.record, self.record.plan
        start = record.first_start
        slowdown = self.slowdown(ended) if outcome == "finished" and ended is not None else None
        return ApplicationRow(
            application=plan.id,
            user=plan.user,
            partition=self.partition,
            queue=self.queue,
            size=self.size,
            tasks=plan.size,
            restarts=record.restarts,
            submitted=seconds(plan.submit),
            started=_seconds(start),
            whole=_seconds(self.whole),
            ended=_seconds(ended),
            outcome=outcome,
            wait=None if start is None else seconds(start - plan.submit),
            whole_wait=None if self.whole is None else seconds(self.whole - plan.submit),
            slowdown=None if slowdown is None else round(slowdown, DIGITS),
            reason=reason,
        )


def _seconds(moment: int | None) -> float | None:
    return None if moment is None else seconds(moment)
