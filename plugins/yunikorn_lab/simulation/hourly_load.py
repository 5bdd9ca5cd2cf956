"""Placements and use of resources in each hour, of a recording and of its simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from yunikorn.clock import SECOND
from yunikorn.resources import Tally, grow
from yunikorn_lab.simulation.statistics import DIGITS

HOUR = 3600 * SECOND


class HourlyLoad:
    """Numbers of placed tasks, and their service, by the hour from the beginning of the simulation."""

    def __init__(self, end: int) -> None:
        """Count what happens before `end` (ns)."""
        self.end = end
        self.placements: Counter[int] = Counter()
        self.service: dict[int, Tally] = {}
        """Amounts times nanoseconds."""

    def place(self, moment: int) -> None:
        """Count a placement."""
        if 0 <= moment < self.end:
            self.placements[moment // HOUR] += 1

    def spend(self, since: int, until: int, amounts: Mapping[str, int]) -> None:
        """Add the service of a task from `since` to `until`."""
        since, until = max(since, 0), min(until, self.end)
        while since < until:
            hour = since // HOUR
            stop = min((hour + 1) * HOUR, until)
            grow(self.service.setdefault(hour, {}), amounts, stop - since)
            since = stop

    def placed(self, hour: int, width: int) -> int:
        """Return the number of placements in some hours, of which `hour` is the first one."""
        return sum(self.placements[one] for one in range(hour, hour + width))

    def use(self, hour: int, width: int) -> dict[str, float]:
        """Return the mean amounts that were used in some hours."""
        total: Tally = {}
        for one in range(hour, hour + width):
            grow(total, self.service.get(one, {}))
        span = min((hour + width) * HOUR, self.end) - hour * HOUR
        return {name: round(amount / span, DIGITS) for name, amount in sorted(total.items())}
