"""Amounts of waiting requests that a quota or limit blocks, by partition, cause and resource type.

The amounts are updated with each change of a class of requests (`limit_waits.LimitClass`), so that reading
them costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.resources import Tally, grow

QUOTA, LIMIT, APPLICATIONS = "quota", "limit", "max applications"
"""Causes: the quota of a queue, the limit of a user or group, and a maximum number of applications."""

CAUSES = (QUOTA, LIMIT, APPLICATIONS)


class BlockedAmounts:
    """Blocked amounts of one partition."""

    __slots__ = ("atomic", "by_cause")

    def __init__(self) -> None:
        self.by_cause: dict[str, Tally] = {cause: {} for cause in CAUSES}
        self.atomic: Tally = {}
        """The part of all causes that Atomic gangs ask for."""

    def add(self, cause: str, amount: Mapping[str, int], count: int, *, atomic: bool) -> None:
        """Add `count` requests of `amount`, which are members of an Atomic gang or not."""
        grow(self.by_cause[cause], amount, count)
        if atomic:
            grow(self.atomic, amount, count)

    def total(self, name: str) -> int:
        """Return the blocked amount of a type, over all causes."""
        return sum(tally.get(name, 0) for tally in self.by_cause.values())
