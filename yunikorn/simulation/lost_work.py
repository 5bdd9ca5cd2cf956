"""Figures on work lost by preemption and node failures, and on the waits of gangs."""

from __future__ import annotations

import attrs

from yunikorn.simulation.statistics import Waits, WaitSummary, seconds

PREEMPTED = "preempted"


@attrs.frozen
class LostWork:
    """Tasks that lost their allocation for one reason, and the total time they had run (seconds)."""

    reason: str
    tasks: int
    seconds: float


class LostWorkTotals:
    """Lost work by reason."""

    def __init__(self) -> None:
        self.preempted_places = 0
        """Number of preempted placeholders, which had done no work."""
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, reason: str, ran: int) -> None:
        """Count a task that lost its allocation after running for `ran` nanoseconds."""
        tasks, time = self._found.get(reason, (0, 0))
        self._found[reason] = tasks + 1, time + ran

    def tasks(self, reason: str) -> int:
        """Return the number of tasks lost for this reason."""
        return self._found.get(reason, (0, 0))[0]

    def listed(self) -> list[LostWork]:
        """Return the totals in alphabetical order of the reasons."""
        return [
            LostWork(reason, tasks, seconds(time)) for reason, (tasks, time) in sorted(self._found.items())
        ]


@attrs.frozen
class GangReport:
    """Figures on gangs; `submitted` is the sum of `whole`, `given_up` and `waiting`."""

    submitted: int
    whole: int
    """Gangs of which all tasks were allocated at one time, placeholders included."""
    given_up: int
    """Gangs that were resumed without their members, failed, were rejected, or ended before being whole."""
    waiting: int
    wait: WaitSummary | None
    """Time from the first ask to the moment at which the gang was whole."""


class GangFigures:
    """Counters of gangs."""

    def __init__(self) -> None:
        self.submitted = 0
        self.given_up = 0
        self.waits = Waits()

    def report(self) -> GangReport | None:
        """Return the figures, or None if there were no gangs."""
        if not self.submitted:
            return None
        wait = self.waits.summary()
        whole = wait.count if wait is not None else 0
        waiting = self.submitted - whole - self.given_up
        return GangReport(self.submitted, whole, self.given_up, waiting, wait)
