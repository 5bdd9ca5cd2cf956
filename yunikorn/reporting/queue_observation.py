"""What a queue held, lacked and was owed, over time."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.reporting.intervals import Series, Timeline
from yunikorn.reporting.quota_source import QueueQuota
from yunikorn.resources import Tally, grow
from yunikorn.simulation.statistics import DIGITS, seconds


@attrs.frozen
class QuotaStep:
    """From `time` (seconds) on a queue had this guarantee and this maximum."""

    time: float
    guaranteed: dict[str, int]
    max: dict[str, int]


@attrs.frozen
class Guarantee:
    """How a guarantee of one resource type was kept."""

    guaranteed: int
    """At the end, in the type's own units."""
    used: float | None
    """Mean use over the mean guarantee; above 1 it borrowed more than it lent."""
    kept: float | None
    """Of what it was owed, the part that it had; None if it was never owed anything.

    At each moment it is owed the guarantee, or what it uses and waits for together if that is less.
    """


class QueueObservation:
    """One queue, leaf or parent, with all that is below it."""

    def __init__(self, timeline: Timeline, above: QueueObservation | None) -> None:
        self.above = above
        self.is_leaf = True
        self.held: Tally = {}
        self.lacked: Tally = {}
        """What waits, as much as asks for a place of its own."""
        self.waiting = 0
        """Tasks that wait."""
        self.running = 0
        """Tasks that run."""
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
        """It holds `amount` more (`sign` 1) or less (-1), and so do those above."""
        observation: QueueObservation | None = self
        while observation is not None:
            grow(observation.held, amount, sign)
            observation = observation.above

    def run(self, tasks: int) -> None:
        """So many more tasks run."""
        observation: QueueObservation | None = self
        while observation is not None:
            observation.running += tasks
            observation = observation.above

    def lack(self, amount: Mapping[str, int], requests: int) -> None:
        """So many more requests for `amount` wait."""
        observation: QueueObservation | None = self
        while observation is not None:
            grow(observation.lacked, amount, requests)
            observation = observation.above

    def wait(self, tasks: int) -> None:
        """So many more tasks wait."""
        observation: QueueObservation | None = self
        while observation is not None:
            observation.waiting += tasks
            observation = observation.above

    def take_quota(self, moment: int, quota: QueueQuota) -> None:
        """This is its quota from `moment` on."""
        if self.steps and quota == self.quota:
            return
        self.quota = quota
        self.steps.append(QuotaStep(seconds(moment), dict(quota.guaranteed), dict(quota.max)))
        for name in {**self._guaranteed, **quota.guaranteed}:
            self._series(self._guaranteed, name).set(moment, quota.guaranteed.get(name, 0))
        self.settle(moment)

    def settle(self, moment: int) -> None:
        """All changes of `moment` are in: enter where it stands."""
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
        """The simulation ended: enter what is open."""
        self.settle(moment)
        for books in (self.used, self.wanted, self._guaranteed, self._owed, self._kept):
            for series in books.values():
                series.wind(moment)
        self.waits.wind(moment)
        self.runs.wind(moment)

    def guarantees(self) -> dict[str, Guarantee]:
        """How its guarantees were kept, by resource type; empty if it has none. After `close`."""
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
