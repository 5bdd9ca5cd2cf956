"""Fragmentation of the domains of a topology, and the domains that gangs are placed in.

The unit of room is one member of a gang: of the size that most members of the workload have. A domain with
room for 37 members has room for two gangs of 16, and 5 members are lost to gangs of this size. Counts are
updated incrementally, for the nodes that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from yunikorn.resources import Resource, Tally, grow
from yunikorn_lab.reporting.free_room import Room, Rooms
from yunikorn_lab.reporting.time_series import Timeline
from yunikorn_lab.simulation.rm_state import Running
from yunikorn_lab.simulation.statistics import DIGITS, Waits
from yunikorn_lab.simulation.survey import GangSurvey, fit_count
from yunikorn_lab.simulation.workload import WorkloadApplication

Domain = tuple[str, str]
"""Level and path of a domain."""


@attrs.frozen
class SliceRoom:
    """Gangs of one size that the domains of one level have room for."""

    level: str
    size: int
    """Members of a gang."""
    fitting: float
    """Mean number of such gangs that fit at one time, each in one domain."""
    fitting_at_end: int
    loss: float | None
    """Part of the room that is left over, over all time; None without any room."""
    loss_at_end: float | None


@attrs.frozen
class GangPlaces:
    """Gangs of similar sizes, and where they were placed."""

    smallest: int
    largest: int
    """Members of the gangs."""
    gangs: int
    """Number of gangs that were submitted."""
    placed: int
    """Number of gangs of which all members have started."""
    median_wait: float | None
    p99_wait: float | None
    """Seconds from submission to the start of the last member."""
    in_one: dict[str, float]
    """Part of the placed gangs that one domain of the level hosts, by level."""
    spread: dict[str, float]
    """Number of domains that the placed gangs use, divided by the smallest possible number, by level."""

    @property
    def members(self) -> str:
        """Numbers of members, as text."""
        return f"{self.smallest} to {self.largest}" if self.smallest < self.largest else f"{self.largest}"


@attrs.frozen
class TopologyReport:
    """Fragmentation of the domains of a partition, and the places of its gangs."""

    unit: dict[str, int]
    """Resources of the member that room is counted in."""
    slices: list[SliceRoom]
    stranded: dict[str, float]
    """Part of the capacity that is free on nodes without room for a member, by resource type."""
    gangs: list[GangPlaces]


@attrs.frozen
class TopologyHistory:
    """Mean numbers of gangs that fit in each interval, by level and size of the gangs."""

    partition: str
    level: str
    size: int
    fitting: list[float]
    room: list[float]
    """The same of single members."""


@attrs.define
class _SizeClass:
    gangs: int = 0
    waits: Waits = attrs.Factory(Waits)
    in_one: Tally = attrs.Factory(dict)
    used: Tally = attrs.Factory(dict)
    fewest: Tally = attrs.Factory(dict)

    def report(self, largest: int) -> GangPlaces:
        waits = self.waits.summary()
        placed = waits.count if waits is not None else 0
        return GangPlaces(
            smallest=largest // 2 + 1,
            largest=largest,
            gangs=self.gangs,
            placed=placed,
            median_wait=waits.median if waits is not None else None,
            p99_wait=self.waits.percentile(99),
            in_one={level: round(self.in_one.get(level, 0) / placed, DIGITS) for level in self.fewest},
            spread={level: round(self.used[level] / most, DIGITS) for level, most in self.fewest.items()},
        )


class TopologyObservation:
    """Domains of one partition, and the gangs that ask for them."""

    def __init__(
        self,
        timeline: Timeline,
        gangs: GangSurvey,
        rooms: Rooms,
        domains_of: Callable[[str], tuple[Domain, ...]],
    ) -> None:
        """Create without nodes; `domains_of` returns the domains of a node, by its name."""
        self._timeline, self._rooms, self._domains_of = timeline, rooms, domains_of
        self._unit = gangs.unit
        self.sizes = [1 << power for power in range((gangs.largest - 1).bit_length() + 1)]
        """Sizes of gangs that the room is measured for: powers of two."""
        self._dirty: dict[str, None] = {}
        self._levels: dict[str, None] = {}
        """Levels of nodes so far, in order of appearance."""
        self._fitting = timeline.series()
        self._stranded = timeline.series()
        self._classes: dict[int, _SizeClass] = {}
        self._placing: dict[str, dict[Domain, None]] = {}
        """Domains of the members that have started so far, of gangs that are not complete."""
        self.reset()

    def reset(self) -> None:
        """Count all nodes again, because a configuration with other levels may have been loaded."""
        self._domains: dict[str, tuple[Domain, ...]] = {}
        self._counts: dict[str, int] = {}
        self._lost: dict[str, Mapping[str, int]] = {}
        self._room: dict[Domain, int] = {}
        self._totals: Tally = {}
        self._total_lost: Tally = {}
        self._capacities: dict[Resource, dict[str, list[int]]] = {}
        self._dirty.update(dict.fromkeys(self._rooms.names))

    def change(self, node: str, *, resized: bool = False) -> None:
        """Note a node that changed; `resized` if it joined, left, or has another capacity."""
        self._dirty[node] = None
        if resized:
            self._capacities.clear()

    def record(self, moment: int) -> None:
        """Record the room of all domains; called after all changes of `moment`."""
        for name in self._dirty:
            self._count(name, self._rooms.get(name))
        self._dirty.clear()
        self._fitting.record(moment, self._totals)
        self._stranded.record(moment, self._total_lost)

    def _count(self, name: str, room: Room | None) -> None:
        domains = self._domains.get(name)
        if domains is None:
            domains = self._domains[name] = self._domains_of(name)
            self._levels.update(dict.fromkeys(level for level, _ in domains))
        free: Mapping[str, int] = {} if room is None else dict(room.space)
        count = fit_count(free, self._unit)
        grow(self._total_lost, self._lost.pop(name, {}), -1)
        if not count and free:
            self._lost[name] = free
            grow(self._total_lost, free)
        difference = count - self._counts.get(name, 0)
        self._counts[name] = count
        if difference:
            for domain in domains:
                before = self._room.get(domain, 0)
                after = self._room[domain] = before + difference
                for size in self.sizes:
                    if more := after // size - before // size:
                        grow(self._totals, {_key(domain[0], size): more})
        if room is None:
            del self._domains[name]

    # -- gangs --------------------------------------------------------------------------------------

    def submitted(self, plan: WorkloadApplication) -> None:
        """Note a gang that asks for a domain."""
        self._class_of(plan).gangs += 1
        self._placing[plan.id] = {}

    def ended(self, application: str) -> None:
        """Forget a gang that will not be complete any more."""
        self._placing.pop(application, None)

    def started(self, moment: int, task: Running, *, complete: bool) -> None:
        """Note the start of a member; `complete` if it is the last one."""
        plan = task.owner.plan
        used = self._placing.get(plan.id)
        if used is None:
            return
        node = task.allocation.node_id
        used.update(dict.fromkeys(self._domains.get(node) or self._domains_of(node)))
        if not complete:
            return
        del self._placing[plan.id]
        found = self._class_of(plan)
        found.waits.add(moment - plan.submit)
        for level in dict.fromkeys(level for level, _ in used):
            number = sum(1 for one, _ in used if one == level)
            grow(found.in_one, {level: int(number == 1)})
            grow(found.used, {level: number})
            grow(found.fewest, {level: self._fewest(plan, level)})

    def _class_of(self, plan: WorkloadApplication) -> _SizeClass:
        return self._classes.setdefault(1 << (plan.size - 1).bit_length(), _SizeClass())

    def _fewest(self, plan: WorkloadApplication, level: str) -> int:
        """Return the smallest number of empty domains of a level that could host a gang."""
        most = 1
        for group in plan.tasks:
            left = group.count
            for number, capacity in enumerate(self._capacity_of(group.resources).get(level, ()), 1):
                left -= capacity
                if left <= 0:
                    most = max(most, number)
                    break
        return most

    def _capacity_of(self, size: Resource) -> dict[str, list[int]]:
        """Return for how many tasks of a size the empty domains have room, the largest first, by level."""
        known = self._capacities.get(size)
        if known is None:
            rooms: dict[Domain, int] = {}
            for name in self._rooms.names:
                room = self._rooms.get(name)
                for domain in self._domains.get(name) or self._domains_of(name):
                    rooms[domain] = rooms.get(domain, 0) + (fit_count(room.capacity, size) if room else 0)
            known = self._capacities[size] = {}
            for (level, _), capacity in sorted(rooms.items(), key=lambda item: -item[1]):
                known.setdefault(level, []).append(capacity)
        return known

    # -- results ------------------------------------------------------------------------------------

    def close(self, moment: int) -> None:
        """Complete the series at the end of the simulation."""
        self.record(moment)
        self._fitting.wind(moment)
        self._stranded.wind(moment)

    def report(self, capacity: Mapping[str, int], end: int) -> TopologyReport:
        """Return the results; `capacity` is integrated over time."""
        span = end - (end if self._timeline.start is None else self._timeline.start)
        slices = [self._slice_room(level, size, span) for level in self._levels for size in self.sizes]
        return TopologyReport(
            dict(self._unit),
            slices,
            {
                name: round(self._stranded.total(name) / total, DIGITS)
                for name, total in sorted(capacity.items())
                if total
            },
            [found.report(largest) for largest, found in sorted(self._classes.items())],
        )

    def _slice_room(self, level: str, size: int, span: int) -> SliceRoom:
        key, single = _key(level, size), _key(level, 1)
        whole, room = self._fitting.total(key), self._fitting.total(single)
        now, room_now = self._totals.get(key, 0), self._totals.get(single, 0)
        return SliceRoom(
            level,
            size,
            fitting=round(whole / span, DIGITS) if span else 0.0,
            fitting_at_end=now,
            loss=slice_loss(whole, size, room),
            loss_at_end=slice_loss(now, size, room_now),
        )

    def histories(self, partition: str, lengths: list[int]) -> Iterator[TopologyHistory]:
        """Yield the series by level and size."""
        for level in self._levels:
            room = self._fitting.means_of(_key(level, 1), lengths)
            for size in self.sizes:
                fitting = self._fitting.means_of(_key(level, size), lengths)
                yield TopologyHistory(partition, level, size, fitting, room)


def slice_loss(fitting: float, size: int, room: float) -> float | None:
    """Return the part of the room that is left over by gangs of one size; None without room."""
    return round(1 - size * fitting / room, DIGITS) if room else None


def _key(level: str, size: int) -> str:
    return f"{size} {level}"
