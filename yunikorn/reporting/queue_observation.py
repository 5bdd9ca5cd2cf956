"""Observation of a queue over time: usage, waiting requests, and fulfilment of its guarantee."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.reporting.intervals import Series, Timeline
from yunikorn.reporting.quota_source import QueueQuota
from yunikorn.resources import Tally, grow
from yunikorn.simulation.statistics import DIGITS, seconds


@attrs.frozen
class QuotaStep:
    """Guarantee and maximum of a queue from `time` (seconds) on."""

    time: float
    guaranteed: dict[str, int]
    max: dict[str, int]


@attrs.frozen
class Guarantee:
    """Fulfilment of a guarantee of one resource type."""

    guaranteed: int
    """Guarantee at the end of the simulation, in the type's base unit."""
    used: float | None
    """Mean usage divided by the mean guarantee; above 1 the queue borrowed more than it lent."""
    kept: float | None
    """Part of the owed amount that the queue used; None if no amount was owed at any time.

    The amount owed at each moment is the guarantee, or the sum of used and waiting amounts if that is less.
    """


class QueueObservation:
    """A queue, leaf or parent, including its descendants."""

    def __init__(self, timeline: Timeline, above: QueueObservation | None) -> None:
        self.above = above
        self.is_leaf = True
        self.held: Tally = {}
        self.lacked: Tally = {}
        """Total amounts of waiting requests."""
        self.waiting = 0
        self.running = 0
        self.steps: list[QuotaStep] = []
        self.quota = QueueQuota()
        self.used: dict[str, Series] = {}
        self.wanted: dict[str, Series] = {}
        self.waits = timeline.series()
        self.runs = timeline.series()
        self._timeline = timeline
        self._guaranteed: dict[str, Series] = {}
        self._owed: dict[str, Series] = {}
        self._kept: dict[str, Series] = {}

    def hold(self, amount: Mapping[str, int], sign: int) -> None:
        """Increase the usage of the queue and its ancestors by `amount` (`sign` 1), or reduce it (-1)."""
        observation: QueueObservation | None = self
        while observation is not None:
            grow(observation.held, amount, sign)
            observation = observation.above

    def run(self, tasks: int) -> None:
        """Increase the number of running tasks of the queue and its ancestors."""
        observation: QueueObservation | None = self
        while observation is not None:
            observation.running += tasks
            observation = observation.above

    def lack(self, amount: Mapping[str, int], requests: int) -> None:
        """Add waiting requests for `amount` to the queue and its ancestors."""
        observation: QueueObservation | None = self
        while observation is not None:
            grow(observation.lacked, amount, requests)
            observation = observation.above

    def wait(self, tasks: int) -> None:
        """Increase the number of waiting tasks of the queue and its ancestors."""
        observation: QueueObservation | None = self
        while observation is not None:
            observation.waiting += tasks
            observation = observation.above

    def take_quota(self, moment: int, quota: QueueQuota) -> None:
        """Set the quota from `moment` on."""
        if self.steps and quota == self.quota:
            return
        self.quota = quota
        self.steps.append(QuotaStep(seconds(moment), dict(quota.guaranteed), dict(quota.max)))
        for name in {**self._guaranteed, **quota.guaranteed}:
            self._series(self._guaranteed, name).set(moment, quota.guaranteed.get(name, 0))
        self.settle(moment)

    def settle(self, moment: int) -> None:
        """Record the current state; called after all changes of `moment`."""
        self.waits.set(moment, self.waiting)
        self.runs.set(moment, self.running)
        for books, series in ((self.held, self.used), (self.lacked, self.wanted)):
            for name in {**series, **books}:
                self._series(series, name).set(moment, books.get(name, 0))
        for name in self._guaranteed:
            held = self.held.get(name, 0)
            owed = min(self.quota.guaranteed.get(name, 0), held + self.lacked.get(name, 0))
            self._series(self._owed, name).set(moment, owed)
            self._series(self._kept, name).set(moment, min(held, owed))

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        self.settle(moment)
        for books in (self.used, self.wanted, self._guaranteed, self._owed, self._kept):
            for series in books.values():
                series.wind(moment)
        self.waits.wind(moment)
        self.runs.wind(moment)

    def guarantees(self) -> dict[str, Guarantee]:
        """Return the fulfilment of the guarantees, by resource type. Call `close` before."""
        found = {}
        for name, series in sorted(self._guaranteed.items()):
            used = self.used[name].total() if name in self.used else 0
            owed = self._owed[name].total() if name in self._owed else 0
            found[name] = Guarantee(
                guaranteed=self.quota.guaranteed.get(name, 0),
                used=_ratio(used, series.total()),
                kept=_ratio(self._kept[name].total(), owed) if owed else None,
            )
        return found

    def _series(self, books: dict[str, Series], name: str) -> Series:
        series = books.get(name)
        if series is None:
            series = books[name] = self._timeline.series()
        return series


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, DIGITS) if whole else None
