"""What preemption and lost nodes cost, and how long gangs take to come together."""

from __future__ import annotations

import attrs

from yunikorn.simulation.statistics import Waits, WaitSummary, seconds

PREEMPTED = "preempted"


@attrs.frozen
class LostWork:
    """Tasks that lost their place for one reason, and the seconds they had run, all in vain."""

    reason: str
    tasks: int
    seconds: float


class LostWorkTotals:
    """The work that was thrown away, by reason."""

    def __init__(self) -> None:
        self.preempted_places = 0
        """Placeholders that were preempted; they had done no work."""
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, reason: str, ran: int) -> None:
        """A task that had run for `ran` nanoseconds lost its place."""
        tasks, time = self._found.get(reason, (0, 0))
        self._found[reason] = tasks + 1, time + ran

    def tasks(self, reason: str) -> int:
        """How many lost their place for this reason."""
        return self._found.get(reason, (0, 0))[0]

    def listed(self) -> list[LostWork]:
        """By reason, in the order of the alphabet."""
        return [
            LostWork(reason, tasks, seconds(time)) for reason, (tasks, time) in sorted(self._found.items())
        ]


@attrs.frozen
class GangReport:
    """`submitted` is the sum of whole, given up and waiting."""

    submitted: int
    whole: int
    """All their tasks had a place at once, placeholders included."""
    given_up: int
    """Resumed without, failed, were rejected, or are over without ever having been whole."""
    waiting: int
    wait: WaitSummary | None
    """From the first ask to the moment at which the gang was whole."""


class GangFigures:
    """How gangs fared."""

    def __init__(self) -> None:
        self.submitted = 0
        self.given_up = 0
        self.waits = Waits()

    def report(self) -> GangReport | None:
        """The figures, or None when there were no gangs."""
        if not self.submitted:
            return None
        wait = self.waits.summary()
        whole = wait.count if wait is not None else 0
        waiting = self.submitted - whole - self.given_up
        return GangReport(self.submitted, whole, self.given_up, waiting, wait)
