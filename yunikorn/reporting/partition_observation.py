"""Observation of a partition over time: capacity, usage, and the unusable part of the free resources."""

from __future__ import annotations

from collections import Counter

import attrs

from yunikorn.reporting.free_room import Look, Rooms, look
from yunikorn.reporting.intervals import Series, Timeline
from yunikorn.resources import Resource, Tally, grow
from yunikorn.simulation.statistics import DIGITS

SAVINGS = 2_000_000
"""Maximum budget of fragmentation samples, in comparisons; small simulations never exhaust it."""
EARNED = 100
"""Comparisons added to the budget per change, so that samples cost no more time than scheduling."""


@attrs.frozen
class Fragmentation:
    """Free but unusable amounts of one resource type."""

    of_free: float | None
    """Part of the amount that was free while tasks waited for this type; None if none ever waited."""
    of_capacity: float
    """Part of the capacity over time; 0 if nothing waited."""
    at_end: float | None
    """Part of the free amount at the end of the simulation; None if nothing waited then."""
    at_end_of_capacity: float | None
    """Part of the capacity at the end of the simulation; None if nothing waited then."""


class PartitionObservation:
    """A partition with its nodes and the waiting requests."""

    def __init__(self, timeline: Timeline) -> None:
        self.rooms = Rooms()
        self.sizes: Counter[Resource] = Counter()
        """Number of waiting requests by resource amounts."""
        self.capacity: Tally = {}
        self.held: Tally = {}
        self.waiting = 0
        self.running = 0
        self.touched = False
        self.had: dict[str, Series] = {}
        self.used: dict[str, Series] = {}
        self.unusable: dict[str, Series] = {}
        self.waits = timeline.series()
        self.runs = timeline.series()
        self._timeline = timeline
        self._contested: dict[str, Series] = {}
        """Free amounts while requests waited for the type."""
        self._credit = SAVINGS
        self._last = Look({}, {}, 0)

    def lack(self, size: Resource, tasks: int) -> None:
        """Increase the number of waiting requests of this size by `tasks`."""
        self.sizes[size] += tasks
        if not self.sizes[size]:
            del self.sizes[size]
        self.touched = True

    def wait(self, tasks: int) -> None:
        """Increase the number of waiting tasks."""
        self.waiting += tasks
        self.touched = True

    def hold(self, amount: Resource, sign: int) -> None:
        """Increase the allocated amount by `amount` (`sign` 1), or reduce it (-1)."""
        grow(self.held, amount, sign)
        self.touched = True

    def settle(self, moment: int) -> None:
        """Record the current state; called after all changes of `moment`."""
        if not self.touched:
            return
        self.touched = False
        self._credit = min(self._credit + EARNED, SAVINGS)
        self.waits.set(moment, self.waiting)
        self.runs.set(moment, self.running)
        self._enter(self.had, self.capacity, moment)
        self._enter(self.used, self.held, moment)
        if not self.sizes:
            self._see(Look({}, {}, 0), moment)
        elif self._credit > 0:
            self._see(look(self.rooms, self.sizes), moment)

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation, with a last fragmentation sample."""
        self.touched, self._credit = True, SAVINGS
        self.settle(moment)
        for books in (self.had, self.used, self.unusable, self._contested):
            for series in books.values():
                series.wind(moment)
        self.waits.wind(moment)
        self.runs.wind(moment)

    def fragmentation(self) -> dict[str, Fragmentation]:
        """Return the fragmentation by resource type of the nodes. Call `close` before."""
        return {name: self._fragmentation(name) for name in sorted(self.had)}

    def _fragmentation(self, name: str) -> Fragmentation:
        unusable = self.unusable[name].total() if name in self.unusable else 0
        contested = self._contested[name].total() if name in self._contested else 0
        had, free = self.had[name].total(), self._last.free.get(name, 0)
        lost, capacity = self._last.unusable.get(name, 0), self.capacity.get(name, 0)
        return Fragmentation(
            of_free=round(unusable / contested, DIGITS) if contested else None,
            of_capacity=round(unusable / had, DIGITS) if had else 0.0,
            at_end=round(lost / free, DIGITS) if free else None,
            at_end_of_capacity=round(lost / capacity, DIGITS) if free and capacity else None,
        )

    def _see(self, found: Look, moment: int) -> None:
        self._last = found
        self._credit -= found.cost
        self._enter(self.unusable, found.unusable, moment)
        self._enter(self._contested, found.free, moment)

    def _enter(self, books: dict[str, Series], values: dict[str, int], moment: int) -> None:
        for name in {**books, **values}:
            series = books.get(name)
            if series is None:
                series = books[name] = self._timeline.series()
            series.set(moment, values.get(name, 0))
