"""Run times for replays: drawn from what estimators know, alike for the tasks of one user, or limits.

A task's remaining time is drawn around the median of its estimate, on a logarithmic scale, so that one in ten
is below the lower and one in ten above the upper quantile. Half of the variance is common to all tasks of a
user in one replay: who estimates badly, or runs longer than before, does so in all jobs at once. The factors
of a user are spread evenly over the replays (latin hypercube sampling: McKay, Beckman and Conover,
Technometrics 1979), so that few replays have about the median of many.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import SECOND
from yunikorn_lab.simulation.rng import Rng, streams
from yunikorn_lab.simulation.workload import FOREVER

if TYPE_CHECKING:
    from yunikorn.api import RunTime, Task
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

ONE_IN_TEN = 1.2815515655446004
"""Standard deviations beyond which one in ten values of a normal distribution lies."""
MOST_DEVIATIONS = 2.5
_NORMAL = NormalDist()
_LEAST = 1e-9
COMMON = math.sqrt(0.5)
"""Share of the factor of a user in the deviation of each task."""
SHARES_OF_LIMIT = (0.05, 0.4, 1.0)
"""Quantiles of run times as shares of their limits, where nothing but limits is known."""


@attrs.frozen
class RunTimeSpread:
    """Time (s) for which a task goes on: three quantiles, and the limit if it has one."""

    low: float
    median: float
    high: float
    limit: float | None = None

    def at(self, deviations: float) -> float:
        """Return the time (s) that lies so many standard deviations above the median."""
        end = self.high if deviations > 0 else self.low
        slope = abs(math.log(end) - math.log(self.median)) / ONE_IN_TEN
        found = self.median * math.exp(slope * deviations)
        return found if self.limit is None else min(found, self.limit)


class KnownSpreads:
    """Spreads of the tasks of a scheduler at one moment, which all replays from there share."""

    def __init__(self, assumed: int = FOREVER) -> None:
        """Take `assumed` (ns) as the time of tasks that no estimator knows."""
        self._assumed = assumed
        self._known: dict[tuple[str, str, str, int], RunTimeSpread | None] = {}
        self.unknown = 0

    def of(self, at: PartitionScheduler, task: Task, age: int) -> RunTimeSpread | None:
        """Return the spread of a task; None if nothing is known, so that it never ends."""
        key = (at.name, task.app.id, task.key, age)
        if key not in self._known:
            self._known[key] = self._spread(at, task, age / SECOND)
        return self._known[key]

    def _spread(self, at: PartitionScheduler, task: Task, age: float) -> RunTimeSpread | None:
        answers = list(at.policies.run_times.answers(task, age))
        limits = [one.high for one in answers if one.low == one.high > age]
        limit = min(limits, default=None)
        left = None if limit is None else limit - age
        drawn = next((one for one in answers if one.low < one.high), None)
        if drawn is not None:
            return _spread_of(drawn, age, left)
        if left is not None:
            low, median, high = (max(share * left, 1.0) for share in SHARES_OF_LIMIT)
            return RunTimeSpread(low, median, high, left)
        if answers:
            # Its limit is over: it goes on for about as long as it is late.
            late = max(age - answers[0].high, age / 10, 1.0)
            return RunTimeSpread(late / 4, late, late * 4)
        self.unknown += 1
        if self._assumed >= FOREVER:
            return None
        rest = max(self._assumed / SECOND - age, 1.0)
        return RunTimeSpread(rest, rest, rest)


def _spread_of(found: RunTime, age: float, limit: float | None) -> RunTimeSpread:
    low, median, high = (max(each - age, 1.0) for each in (found.low, found.median, found.high))
    if limit is not None:
        low, median, high = min(low, limit), min(median, limit), min(high, limit)
    return RunTimeSpread(low, median, high, limit)


class DrawnRunTimes:
    """Run times of one replay."""

    def __init__(self, spreads: KnownSpreads, seed: int, replay: int, replays: int) -> None:
        """Draw those of the replay with this number, of so many that are numbered from 0."""
        self._spreads = spreads
        self._streams = streams(seed)
        self._replay, self._replays = replay, replays
        self._users: dict[str, float] = {}
        self._drawn: dict[tuple[str, str, int], int] = {}

    def left(self, at: PartitionScheduler, task: Task, age: int) -> int:
        """Return how long (ns) a task goes on that has run for `age` (ns), or `FOREVER`."""
        key = (task.app.id, task.key, age)
        found = self._drawn.get(key)
        if found is None:
            spread = self._spreads.of(at, task, age)
            if spread is None:
                return FOREVER
            found = self._drawn[key] = max(round(spread.at(self._deviations(task)) * SECOND), 1)
        return found

    def _deviations(self, task: Task) -> float:
        user = self._users.get(task.app.user)
        if user is None:
            share = even_share(self._streams(f"user {task.app.user}"), self._replay, self._replays)
            user = self._users[task.app.user] = _NORMAL.inv_cdf(max(share, _LEAST))
        own = self._normal(f"task {task.app.id} {task.key}")
        found = COMMON * user + math.sqrt(1 - COMMON**2) * own
        return max(-MOST_DEVIATIONS, min(MOST_DEVIATIONS, found))

    def _normal(self, name: str) -> float:
        """Return the value of a standard normal distribution that a name has in this replay."""
        return _NORMAL.inv_cdf(max(self._streams(f"replay {self._replay} {name}")(), _LEAST))


def even_share(rng: Rng, number: int, count: int) -> float:
    """Return a number from 0 to 1 such that those of all numbers below `count` are spread evenly."""
    order = [rng() for _ in range(count)]
    within = [rng() for _ in range(count)]
    return (sum(one < order[number] for one in order) + within[number]) / count


class LimitRunTimes:
    """The limits of tasks: the latest ends that are possible."""

    def __init__(self, spreads: KnownSpreads) -> None:
        self._spreads = spreads

    def left(self, at: PartitionScheduler, task: Task, age: int) -> int:
        """Return how long (ns) a task may go on, or `FOREVER` if it has no limit."""
        spread = self._spreads.of(at, task, age)
        if spread is None or spread.limit is None:
            return FOREVER
        return max(round(spread.limit * SECOND), 1)
