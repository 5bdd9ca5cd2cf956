"""One application on its way through a simulation, and the row that is left of it."""

from __future__ import annotations

import attrs

from yunikorn.reporting.slowdown import bounded_slowdown, own_time
from yunikorn.resources import Resource
from yunikorn.simulation.rm_state import Submitted
from yunikorn.simulation.statistics import DIGITS, seconds

RUNNING, WAITING = "running", "waiting"
"""Outcomes of applications that the end of the simulation overtook."""


@attrs.frozen
class ApplicationRow:
    """What became of an application. Times are seconds of simulated time; None is never."""

    application: str
    user: str
    partition: str
    queue: str
    """Empty if it never was in one."""
    size: str
    """Its class, one of `size_classes.NAMES`."""
    tasks: int
    restarts: int
    submitted: float
    started: float | None
    """When its first task started."""
    whole: float | None
    """When the last of its tasks had been started for the first time."""
    ended: float | None
    outcome: str
    """finished, failed, rejected; running or waiting when the simulation ended."""
    wait: float | None
    """From submission to `started`."""
    whole_wait: float | None
    """From submission to `whole`."""
    slowdown: float | None
    """Bounded slowdown; only of those that finished."""
    reason: str


@attrs.define(eq=False)
class ApplicationObservation:
    """An application that was submitted and has not come to its end."""

    record: Submitted
    partition: str
    size: str = ""
    """Its class; empty until the nodes that come with it are known."""
    queue: str = ""
    missing: int = 0
    """Tasks that have not been started yet, not even for the first time."""
    whole: int | None = None
    lacking: dict[Resource, int] = attrs.Factory(dict)
    """Its requests that wait, by size."""
    waiting: int = 0
    """Its tasks that wait."""
    has_run: bool = False

    def first_start(self, ask: str, moment: int) -> bool:
        """A task of this ask started; whether that made the application whole."""
        # A restarted task is asked for under another key.
        if self.missing and any(group.name == ask for group in self.record.plan.tasks):
            self.missing -= 1
            return self._see_whole(moment)
        return False

    def give_up(self, tasks: int, moment: int) -> bool:
        """So many tasks will never start; whether the rest makes it whole."""
        self.missing -= min(tasks, self.missing)
        return self._see_whole(moment)

    def _see_whole(self, moment: int) -> bool:
        if self.missing or self.whole is not None or self.record.first_start is None:
            return False
        self.whole = moment
        return True

    def wants(self) -> dict[Resource, int]:
        """Its requests that wait now, by size."""
        found: dict[Resource, int] = {}
        for asks in (self.record.asks, self.record.places):
            for ask in asks.values():
                if ask.waiting:
                    size = ask.group.resources
                    found[size] = found.get(size, 0) + ask.waiting
        return found

    def slowdown(self, ended: int) -> float | None:
        """Its bounded slowdown, should it have finished at `ended`; None if it never ends by itself."""
        own = own_time(self.record.plan)
        return None if own is None else bounded_slowdown(ended - self.record.plan.submit, own)

    def row(self, ended: int | None, outcome: str, reason: str = "") -> ApplicationRow:
        """What is left of it."""
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
