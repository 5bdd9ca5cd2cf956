"""Capacity that stands idle while work waits, by cause, per resource type of a partition.

At each moment, *wanted* is what all waiting requests ask for, and *free* is the room of the nodes: what is
neither used by tasks nor missing, including what placeholders hold. The smaller one is idle while work waits.
Idle room is attributed to exactly one cause, in two steps:

1. Requests that no quota, limit or policy blocks could use the free room, so the first part of it, up to what
   these requests want, is attributed to what keeps them from it, in the order of `ROOM_CAUSES`.
2. The rest, up to what the blocked requests want, is attributed to what blocks them, in the order of
   `REQUEST_CAUSES`.

All amounts are kept up to date at each change, so the figure is exact and no search of nodes is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from yunikorn.resources import Resource, Tally, fits, grow
from yunikorn_lab.reporting.core_view import CoreView, PartitionWaits
from yunikorn_lab.reporting.free_room import ReservedRooms, Rooms
from yunikorn_lab.reporting.time_series import Series, Timeline
from yunikorn_lab.simulation.limit_waits import APPLICATIONS, LIMIT, QUOTA, BlockedAmounts
from yunikorn_lab.simulation.statistics import DIGITS

PLACEHOLDERS = "held by placeholders"
PERMIT = "held by a permit policy"
RESERVED = "reserved"
GANG = "held for a gang"
PREDICATES = "predicates"
FRAGMENTATION = "fragmentation"
DRAINED = "drained"
POLICY = "held by a policy"
TOO_LARGE = "too large"

ROOM_CAUSES = (PLACEHOLDERS, PERMIT, RESERVED, PREDICATES, GANG, FRAGMENTATION, DRAINED)
"""Causes that keep requests from free room although no quota, limit or policy blocks them."""
REQUEST_CAUSES = (QUOTA, LIMIT, APPLICATIONS, POLICY, TOO_LARGE)
"""Causes that block requests whatever room there is."""
CAUSES = (*ROOM_CAUSES, *REQUEST_CAUSES)

Pending = tuple[str, Mapping[Resource, int]]
"""An application's id, and the number of its waiting requests by resource amounts."""


@attrs.frozen
class IdleReport:
    """Capacity of one resource type that stood idle while work waited, as parts of the capacity over time."""

    of_capacity: float
    causes: dict[str, float]
    """The part of each cause, without those that did not occur; their sum is `of_capacity`."""


class WantedAmounts:
    """Amounts that the waiting requests of a partition ask for."""

    def __init__(self) -> None:
        self.all: Tally = {}
        self.atomic: Tally = {}
        """The part of Atomic gangs that have not been placed."""
        self.too_large: Tally = {}
        """The part of requests that fit on no node even if it is empty."""
        self.changed: dict[Resource, None] = {}
        """Sizes whose number of requests has changed; the reader removes them."""
        self._sizes: dict[Resource, tuple[int, bool]] = {}
        """Number of requests by amounts, and whether they are too large."""
        self._hosts: list[Resource] = []

    def add(self, size: Resource, requests: int, *, atomic: bool) -> None:
        """Add waiting requests of this size, or remove them if the number is negative."""
        self.changed[size] = None
        grow(self.all, size, requests)
        if atomic:
            grow(self.atomic, size, requests)
        before = self._sizes.get(size)
        count, too_large = before if before is not None else (0, self._is_too_large(size))
        if too_large:
            grow(self.too_large, size, requests)
        if count + requests:
            self._sizes[size] = count + requests, too_large
        else:
            self._sizes.pop(size, None)

    def resized(self, capacities: Iterable[Resource]) -> None:
        """Note the capacities of all nodes after a change."""
        self._hosts = list(capacities)
        self.too_large = {}
        for size, (count, _) in self._sizes.items():
            too_large = self._is_too_large(size)
            self._sizes[size] = count, too_large
            if too_large:
                grow(self.too_large, size, count)

    def of(self, sizes: Iterable[Resource]) -> Tally:
        """Return what the requests of these sizes ask for."""
        total: Tally = {}
        for size in sizes:
            grow(total, size, self._sizes.get(size, (0, False))[0])
        return total

    def of_type(self, name: str, sizes: Iterable[Resource]) -> int:
        """Return how much of a type the requests of these sizes ask for."""
        total = 0
        for size in sizes:
            known = self._sizes.get(size)
            if known is not None:
                total += known[0] * size.get(name, 0)
        return total

    def _is_too_large(self, size: Resource) -> bool:
        return not any(fits(capacity, size) for capacity in self._hosts)


class IdleCapacity:
    """Idle capacity of one partition over time."""

    def __init__(
        self,
        partition: str,
        timeline: Timeline,
        view: CoreView,
        blocked: BlockedAmounts,
        pending: Callable[[str], Iterable[Pending]],
    ) -> None:
        """Create the series; `pending` returns the applications of a partition with waiting requests."""
        self.wanted = WantedAmounts()
        self.placeholders: Tally = {}
        """Amounts that placeholders hold."""
        self.series: dict[str, Series] = {cause: timeline.series() for cause in CAUSES}
        self._partition = partition
        self._view = view
        self._blocked = blocked
        self._pending = pending
        self._last: dict[str, Tally] = {}
        self._reserved = ReservedRooms(self.wanted.of_type)

    def record(self, moment: int, rooms: Rooms) -> None:
        """Record the state after all changes of `moment`."""
        wanted = self.wanted.all
        found: dict[str, Tally] = {}
        names = [name for name, amount in wanted.items() if amount > 0 and self._free(rooms, name)]
        if names:
            found = self._attribute(rooms, names)
        if found == self._last:
            return
        for cause in {**self._last, **found}:
            self.series[cause].record(moment, found.get(cause, {}))
        self._last = found

    def _free(self, rooms: Rooms, name: str) -> int:
        return rooms.free.get(name, 0) + rooms.drained.get(name, 0) + self.placeholders.get(name, 0)

    def _attribute(self, rooms: Rooms, names: list[str]) -> dict[str, Tally]:
        """Return the idle amounts by cause and type."""
        state = self._view.partition(self._partition)
        if state is None:  # the partition was removed
            return {}
        policy = self._excluded(state) if state.excludes_applications else {}
        permits = state.held_placements()
        for node, sizes in state.changed_reservations():
            self._reserved.set(node, rooms.get(node), sizes)
        self._reserved.refresh(self.wanted.changed)
        self.wanted.changed.clear()
        backpressure = state.has_backpressure
        refused = {} if backpressure else self.wanted.of(state.sizes_refused_by_predicates())
        found: dict[str, Tally] = {}
        for name in names:
            blocked = {cause: amounts.get(name, 0) for cause, amounts in self._blocked.by_cause.items()}
            blocked[POLICY], blocked[TOO_LARGE] = policy.get(name, 0), self.wanted.too_large.get(name, 0)
            wanted, free = self.wanted.all[name], self._free(rooms, name)
            unblocked = max(wanted - sum(blocked.values()), 0)
            kept = self._reserved.kept(name, unblocked)
            open_room = max(rooms.free.get(name, 0) - kept - permits.get(name, 0), 0)
            gangs = self.wanted.atomic.get(name, 0) - self._blocked.atomic.get(name, 0)
            rooms_of = (
                (PLACEHOLDERS, self.placeholders.get(name, 0)),
                (PERMIT, permits.get(name, 0)),
                (RESERVED, kept),
                *_split(open_room, backpressure, refused.get(name, 0), gangs),
                (DRAINED, rooms.drained.get(name, 0)),
            )
            left = _fill(found, name, rooms_of, min(unblocked, free))
            free -= min(unblocked, free) - left
            _fill(found, name, blocked.items(), min(wanted - unblocked, free))
        return found

    def _excluded(self, state: PartitionWaits) -> Tally:
        """Return what the applications ask for that a policy keeps from being scheduled."""
        waiting = dict(self._pending(self._partition))
        total: Tally = {}
        for name in state.excluded(waiting):
            for size, requests in waiting[name].items():
                grow(total, size, requests)
        return total

    def wind(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        for series in self.series.values():
            series.wind(moment)

    def report(self, capacity: Mapping[str, int]) -> dict[str, IdleReport]:
        """Return the figures by type, given the capacity integrated over time."""
        found = {}
        for name, whole in sorted(capacity.items()):
            if not whole:
                continue
            totals = {cause: series.total(name) for cause, series in self.series.items()}
            causes = {cause: round(total / whole, DIGITS) for cause, total in totals.items() if total}
            found[name] = IdleReport(round(sum(totals.values()) / whole, DIGITS), causes)
        return found

    def means(self, lengths: list[int]) -> dict[str, dict[str, list[float]]]:
        """Return the means over each interval by cause and type, without causes that did not occur."""
        return {cause: series.means(lengths) for cause, series in self.series.items() if series.names}


def _split(room: int, backpressure: bool, refused: int, gangs: int) -> list[tuple[str, int]]:
    """Divide the room of open nodes without reservation among the causes that keep it free."""
    if backpressure:
        return [(GANG, room)]
    by_predicates = min(room, max(refused, 0))
    by_gangs = min(room - by_predicates, max(gangs, 0))
    return [
        (PREDICATES, by_predicates),
        (GANG, by_gangs),
        (FRAGMENTATION, room - by_predicates - by_gangs),
    ]


def _fill(found: dict[str, Tally], name: str, parts: Iterable[tuple[str, int]], most: int) -> int:
    """Attribute up to `most` to the causes in order; returns the amount that is left."""
    for cause, amount in parts:
        part = min(amount, most)
        if part > 0:
            found.setdefault(cause, {})[name] = part
            most -= part
    return most
