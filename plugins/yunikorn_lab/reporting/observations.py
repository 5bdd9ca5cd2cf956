"""Observations of applications, partitions and the cluster over the time of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs

from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource, Tally, grow
from yunikorn_lab.reporting.free_room import FreeRoom, Room, Rooms, find_free_room
from yunikorn_lab.reporting.idle_capacity import IdleCapacity
from yunikorn_lab.reporting.metrics import bounded_slowdown, own_time
from yunikorn_lab.reporting.time_series import NodeRows, Series, Timeline
from yunikorn_lab.simulation.rm_state import SentAsk, Submitted, partition_name
from yunikorn_lab.simulation.statistics import DIGITS, seconds
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind

RUNNING, WAITING = "running", "waiting"
"""Outcomes of applications that have not ended at the end of the simulation."""


@attrs.frozen
class ApplicationRow:
    """Result of an application. Times are seconds of simulated time; None for events that did not occur."""

    application: str
    user: str
    partition: str
    queue: str
    """Queue of the application; empty if no queue was assigned."""
    size: str
    """Size class, one of `group_counts.NAMES`."""
    tasks: int
    restarts: int
    submitted: float
    started: float | None
    """Start of the first task."""
    whole: float | None
    """Time at which all tasks requested at the submission had been started at least once."""
    ended: float | None
    outcome: str
    """finished, failed or rejected; running or waiting at the end of the simulation."""
    wait: float | None
    """Time from submission to `started`."""
    whole_wait: float | None
    """Time from submission to `whole`."""
    slowdown: float | None
    """Bounded slowdown; only of finished applications."""
    reason: str
    recorded_wait: float | None = None


@attrs.define(eq=False)
class ApplicationObservation:
    """A submitted application that has not ended."""

    record: Submitted
    partition: str
    size: str = ""
    """Size class; empty until the nodes of the same instant are registered."""
    queue: str = ""
    missing: int = 0
    """Number of tasks requested at the submission that have never been started."""
    whole: int | None = None
    pending: dict[Resource, int] = attrs.Factory(dict)
    """Number of waiting requests by resource amounts."""
    waiting: int = 0
    """Number of waiting tasks."""
    has_run: bool = False
    is_atomic: bool = False
    """True if `pending` was counted as that of an Atomic gang which has not been placed."""

    def first_start(self, ask: SentAsk, moment: int) -> bool:
        """Note the start of a task of this ask; returns True if now all first tasks have been started."""
        # A restarted task has an ask with another key.
        if self.missing and ask.key == ask.group.name and not ask.group.delay:
            self.missing -= 1
            return self._see_whole(moment)
        return False

    def give_up(self, tasks: int, moment: int) -> bool:
        """Note tasks that will never start; returns True if now all remaining tasks have been started."""
        self.missing -= min(tasks, self.missing)
        return self._see_whole(moment)

    def _see_whole(self, moment: int) -> bool:
        if self.missing or self.whole is not None or self.record.first_start is None:
            return False
        self.whole = moment
        return True

    def wants(self) -> dict[Resource, int]:
        """Return the current number of waiting requests by resource amounts."""
        found: dict[Resource, int] = {}
        for asks in (self.record.asks, self.record.places):
            for ask in asks.values():
                if ask.waiting:
                    size = ask.group.resources
                    found[size] = found.get(size, 0) + ask.waiting
        return found

    def slowdown(self, ended: int) -> float | None:
        """Return the bounded slowdown for an end at `ended`; None if a task has no end of its own."""
        own = own_time(self.record.plan)
        return None if own is None else bounded_slowdown(ended - self.record.plan.submit, own)

    def row(self, ended: int | None, outcome: str, reason: str = "") -> ApplicationRow:
        """Make the row of results."""
        record, plan = self.record, self.record.plan
        start = record.first_start
        slowdown = self.slowdown(ended) if outcome == "finished" and ended is not None else None
        return ApplicationRow(
            application=plan.id,
            user=plan.user,
            partition=self.partition,
            queue=self.queue,
            size=self.size,
            tasks=plan.size,
            restarts=record.restarts,
            submitted=seconds(plan.submit),
            started=_seconds(start),
            whole=_seconds(self.whole),
            ended=_seconds(ended),
            outcome=outcome,
            wait=None if start is None else seconds(start - plan.submit),
            whole_wait=None if self.whole is None else seconds(self.whole - plan.submit),
            slowdown=None if slowdown is None else round(slowdown, DIGITS),
            reason=reason,
            recorded_wait=_seconds(plan.recorded_wait),
        )


def _seconds(moment: int | None) -> float | None:
    return None if moment is None else seconds(moment)


SAVINGS = 2_000_000
"""Maximum budget of fragmentation samples, in comparisons; small simulations never exhaust it."""
NOTHING_WAITS = FreeRoom({}, {}, 0)
"""Sample while no request waits."""
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


class LoadObservation:
    """Allocated amounts, and numbers of running and waiting tasks, of a queue or a partition over time."""

    def __init__(self, timeline: Timeline, *ancestors: LoadObservation) -> None:
        self.allocated: Tally = {}
        self.running = 0
        self.waiting = 0
        self.dirty = False
        """True after a change that has not been recorded."""
        self.used = timeline.series()
        self.tasks = timeline.series()
        """Numbers of running and waiting tasks, by `RUNNING` and `WAITING`."""
        self._levels = (self, *ancestors)

    def allocate(self, amount: Resource, sign: int) -> None:
        """Increase the allocated amount by `amount` (`sign` 1), or reduce it (-1); also of all ancestors."""
        for level in self._levels:
            grow(level.allocated, amount, sign)
            level.dirty = True

    def run(self, tasks: int) -> None:
        """Increase the number of running tasks; also of all ancestors."""
        for level in self._levels:
            level.running += tasks
            level.dirty = True

    def wait(self, tasks: int) -> None:
        """Increase the number of waiting tasks; also of all ancestors."""
        for level in self._levels:
            level.waiting += tasks
            level.dirty = True

    def record(self, moment: int) -> None:
        """Record the current state; called after all changes of `moment`."""
        self.dirty = False
        self.tasks.record(moment, {RUNNING: self.running, WAITING: self.waiting})
        self.used.record(moment, self.allocated)

    def wind(self, moment: int, *more: Series) -> None:
        """Complete the series of this class, and `more` series, at the end of the simulation."""
        for series in (self.used, self.tasks, *more):
            series.wind(moment)


class PartitionObservation(LoadObservation):
    """A partition with its nodes and the waiting requests."""

    def __init__(self, timeline: Timeline, idle: IdleCapacity) -> None:
        super().__init__(timeline)
        self.idle = idle
        self.rooms = Rooms()
        self.sizes: Counter[Resource] = Counter()
        """Number of waiting requests by resource amounts."""
        self.capacity: Tally = {}
        self.had = timeline.series()
        self.unusable = timeline.series()
        self._contested = timeline.series()
        """Free amounts while requests waited for the type."""
        self._credit = SAVINGS
        self._last = NOTHING_WAITS

    def ask(self, size: Resource, requests: int) -> None:
        """Increase the number of waiting requests of this size."""
        self.sizes[size] += requests
        if not self.sizes[size]:
            del self.sizes[size]
        self.dirty = True

    def record(self, moment: int) -> None:
        """Record the current state, with a fragmentation sample; called after all changes of `moment`."""
        super().record(moment)
        self._credit = min(self._credit + EARNED, SAVINGS)
        if not self.sizes:
            if self._last is not NOTHING_WAITS:
                self._sample(NOTHING_WAITS, moment)
        elif self._credit > 0:
            self._sample(find_free_room(self.rooms, self.sizes), moment)

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation, with a last fragmentation sample."""
        self._credit = SAVINGS
        self.record(moment)
        self.wind(moment, self.had, self.unusable, self._contested)
        self.idle.wind(moment)

    def fragmentation(self) -> dict[str, Fragmentation]:
        """Return the fragmentation by resource type of the nodes. Call `close` before."""
        return {name: self._fragmentation(name) for name in self.had.names}

    def _fragmentation(self, name: str) -> Fragmentation:
        unusable, contested = self.unusable.total(name), self._contested.total(name)
        had, free = self.had.total(name), self._last.free.get(name, 0)
        lost, capacity = self._last.unusable.get(name, 0), self.capacity.get(name, 0)
        return Fragmentation(
            of_free=round(unusable / contested, DIGITS) if contested else None,
            of_capacity=round(unusable / had, DIGITS) if had else 0.0,
            at_end=round(lost / free, DIGITS) if free else None,
            at_end_of_capacity=round(lost / capacity, DIGITS) if free and capacity else None,
        )

    def _sample(self, found: FreeRoom, moment: int) -> None:
        self._last = found
        self._credit -= found.cost
        self.unusable.record(moment, found.unusable)
        self._contested.record(moment, found.free)


class ClusterObservation:
    """Usage of all nodes, grouped by partition."""

    def __init__(self, timeline: Timeline, make_idle: Callable[[str], IdleCapacity]) -> None:
        """Create without nodes; `make_idle` creates the measurement of the idle capacity of a partition."""
        self.partitions: dict[str, PartitionObservation] = {}
        self.rows = NodeRows(timeline)
        self._timeline = timeline
        self._make_idle = make_idle
        self._nodes: dict[str, tuple[Room, PartitionObservation]] = {}
        self._resized: dict[PartitionObservation, None] = {}
        """Partitions whose nodes changed since the last call of `record`."""
        self._numbers: dict[str, int] = {}
        """Numbers of all nodes in `rows`, by name; a node that returns keeps its number."""

    def partition(self, name: str) -> PartitionObservation:
        """Return the partition of this name; the empty name stands for `default`."""
        name = partition_name(name)
        observation = self.partitions.get(name)
        if observation is None:
            observation = self.partitions[name] = PartitionObservation(self._timeline, self._make_idle(name))
        return observation

    def change(self, event: NodeEvent) -> None:
        """Note a node event."""
        name, moment = event.node.name, event.at
        if event.change is NodeEventKind.ADD:
            partition = self.partition(event.node.partition)
            number = self._numbers.get(name)
            if number is None:
                number = self._numbers[name] = self.rows.join(name, moment)
            room = Room(event.node.resources, number)
            self._nodes[name] = room, partition
            partition.rooms.add(name, room)
            self._resize(room, partition, moment, 1)
            return
        room, partition = self._nodes[name]
        if event.change is NodeEventKind.REMOVE:
            self._resize(room, partition, moment, -1)
            partition.rooms.remove(name)
            del self._nodes[name]
        elif event.change is NodeEventKind.CAPACITY:
            self._resize(room, partition, moment, -1)
            partition.rooms.resize(room, event.resources)
            self._resize(room, partition, moment, 1)
        else:
            room.switch(event.change is NodeEventKind.RESUME)
            partition.dirty = True

    def _resize(self, room: Room, partition: PartitionObservation, moment: int, sign: int) -> None:
        grow(partition.capacity, room.capacity, sign)
        room.take(room.capacity, -sign)
        self.rows.capacity(room.index, room.capacity, sign, moment)
        partition.dirty = True
        self._resized[partition] = None

    def allocate(self, allocation: Allocation, sign: int, moment: int) -> None:
        """Note the start (`sign` 1) or the end (-1) of an allocation."""
        room, partition = self._nodes[allocation.node_id]
        amount = allocation.resource_per_alloc
        room.take(amount, sign)
        partition.allocate(amount, sign)
        if allocation.placeholder:
            grow(partition.idle.placeholders, amount, sign)
        self.rows.use(room.index, amount, sign, moment)

    def record(self, moment: int) -> None:
        """Record the state of changed partitions; called after all changes of `moment`."""
        for partition in self._resized:
            partition.had.record(moment, partition.capacity)
            partition.idle.wanted.resized(partition.rooms.capacities)
        self._resized.clear()
        for partition in self.partitions.values():
            if partition.dirty:
                partition.record(moment)
            # A timer of the core may change why requests wait while nothing else changes.
            partition.idle.record(moment, partition.rooms)

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        for partition in self.partitions.values():
            partition.close(moment)
        self.rows.close(moment)

    @property
    def capacity(self) -> Tally:
        """Current capacity of all partitions together."""
        if len(self.partitions) == 1:
            [only] = self.partitions.values()
            return only.capacity
        total: Tally = {}
        for partition in self.partitions.values():
            grow(total, partition.capacity)
        return total

    def capacities(self) -> dict[str, dict[str, int]]:
        """Return the capacity integrated over time (amounts times nanoseconds), by partition."""
        return {
            name: {kind: observation.had.total(kind) for kind in observation.had.names}
            for name, observation in self.partitions.items()
        }
