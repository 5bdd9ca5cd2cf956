"""Survey of a workload before its simulation: what does not fit, the offered load, and the predecessors.

Tasks may be larger than every node, and jobs larger than the whole cluster. A survey reads all applications
once, and once more if there are dependencies. A workload keeps the result.

Offered load: the work that arrives, relative to the work that the cluster can do in the same time.

The span reaches from the first to the last submission; it is at least as long as the median run time, so that
a few applications that arrive together have a load as well. The work of a task is its amount of a resource
type times its run time, of which no more than the span counts: one task that runs for months neither hides
the load of all others nor makes a load by itself. A task that never ends counts up to the end of the span.
The capacity is that of all registered nodes over the span, times their speed. Above 1 more work arrives than
can be done, and requests wait the longer the later they arrive.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.interface.constants import GANG_TOPOLOGY_TAG
from yunikorn.quantities import in_words
from yunikorn.resources import Resource, Tally, fits, grow
from yunikorn.text import number_of
from yunikorn_lab.simulation.event_queue import EventQueue
from yunikorn_lab.simulation.rm_state import partition_name
from yunikorn_lab.simulation.statistics import Capacity, seconds, used_share
from yunikorn_lab.simulation.workload import (
    FOREVER,
    NodeEvent,
    NodeEventKind,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)


@attrs.frozen
class OfferedLoad:
    """Offered load of a workload."""

    span: float
    """Time (seconds) in which the work arrives."""
    partitions: dict[str, dict[str, float]]
    """Load by partition and resource type; empty if the span is 0."""

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Partitions with a load, and the load as text."""
        return [(name, _in_words(loads)) for name, loads in self.partitions.items() if any(loads.values())]

    def note(self) -> str:
        """Return a note, or an empty string without a load."""
        parts = [text if len(self.texts) == 1 else f"{name}: {text}" for name, text in self.texts]
        if not parts:
            return ""
        return f"offered load over {spell_duration(round(self.span) * SECOND)}: {'; '.join(parts)}"

    def warning(self) -> str:
        """Return a warning if the load of a type is above 1, else an empty string."""
        above = {
            name: {kind: load for kind, load in loads.items() if load > 1}
            for name, loads in self.partitions.items()
        }
        parts = [f"{_in_words(loads)} in partition {name}" for name, loads in above.items() if loads]
        if not parts:
            return ""
        return (
            f"the offered load is above 1: {'; '.join(parts)}: more work arrives than the cluster can do, so "
            "waits grow for as long as applications arrive"
        )


def _in_words(loads: dict[str, float]) -> str:
    return ", ".join(f"{kind} {load:.2f}" for kind, load in loads.items())


@attrs.frozen
class _Tasks:
    """Tasks of one size: their numbers and run times (ns), group by group."""

    counts: array[int] = attrs.field(factory=lambda: array("q"))
    runtimes: array[int] = attrs.field(factory=lambda: array("q"))

    def time_within(self, span: int) -> int:
        """Return the sum of the run times, each no longer than the span."""
        pairs = zip(self.counts, self.runtimes, strict=True)
        return sum(count * min(runtime, span) for count, runtime in pairs)


class LoadTally:
    """Work of applications, which may be added in any order."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[Resource, _Tasks]] = {}
        """Tasks that end, by partition."""
        self._endless: dict[str, Tally] = {}
        """Amounts of tasks that never end."""
        self._before: dict[str, Tally] = {}
        """Amounts of tasks that never end, times the moment of their submission."""
        self._first: int | None = None
        self._last = 0
        self._longest = 0

    def add(self, application: WorkloadApplication) -> None:
        """Add an application, submitted at its `submit`."""
        submit = application.submit
        self._first = submit if self._first is None else min(self._first, submit)
        self._last = max(self._last, submit)
        partition = partition_name(application.partition)
        for group in application.tasks:
            runtime = group.own_time
            if runtime != FOREVER:
                self._longest = max(self._longest, runtime)
                sizes = self._tasks.setdefault(partition, {})
                tasks = sizes.get(group.resources)
                if tasks is None:
                    tasks = sizes[group.resources] = _Tasks()
                tasks.counts.append(group.count)
                tasks.runtimes.append(runtime)
            else:
                grow(self._endless.setdefault(partition, {}), group.resources, group.count)
                grow(self._before.setdefault(partition, {}), group.resources, group.count * submit)

    def relate_to(self, workload: Workload) -> OfferedLoad:
        """Return the load on the nodes of `workload`."""
        start = self._first or 0
        end = self._last
        if end - start < self._longest:
            end = max(end, start + self._median())
        capacities = _capacities(workload, start, end)
        loads: dict[str, dict[str, float]] = {}
        for partition, capacity in sorted(capacities.items()):
            work: Tally = {}
            for size, tasks in self._tasks.get(partition, {}).items():
                grow(work, size, tasks.time_within(end - start))
            grow(work, self._endless.get(partition, {}), end)
            grow(work, self._before.get(partition, {}), -1)
            loads[partition] = used_share(work, capacity)
        return OfferedLoad(seconds(end - start), loads if end > start else {})

    def _median(self) -> int:
        """Return the lower median of the run times of all tasks."""
        pairs: list[tuple[int, int]] = []
        for sizes in self._tasks.values():
            for tasks in sizes.values():
                pairs += zip(tasks.runtimes, tasks.counts, strict=True)
        half = (sum(count for _, count in pairs) + 1) // 2
        for runtime, count in sorted(pairs):
            half -= count
            if half <= 0:
                return runtime
        return 0


def _capacities(workload: Workload, start: int, end: int) -> dict[str, Tally]:
    found: dict[str, Capacity] = {}
    for moment, node, sign in node_changes(workload.nodes, workload.events):
        capacity = found.setdefault(partition_name(node.partition), Capacity())
        capacity.change(moment, _effective(node), sign)
    return {name: capacity.between(start, end) for name, capacity in found.items()}


def _effective(node: WorkloadNode) -> Resource:
    # A node of speed 2 does the work of two nodes.
    if node.speed == 1.0:
        return node.resources
    return Resource({kind: round(amount * node.speed) for kind, amount in node.resources.items()})


@attrs.define
class GangSurvey:
    """Gangs of a partition that ask for domains of the topology."""

    largest: int = 1
    """Number of members of the largest gang."""
    members: Counter[Resource] = attrs.Factory(Counter)
    """Number of members by size."""

    @property
    def unit(self) -> Resource:
        """Size that most members have."""
        return self.members.most_common(1)[0][0]


@attrs.frozen
class Survey:
    """Properties of a workload that need no simulation."""

    oversized: Oversized
    offered_load: OfferedLoad
    dependents: Mapping[str, int]
    """Number of direct dependents per predecessor."""
    applications_with_predecessors: int
    topology_gangs: Mapping[str, GangSurvey]
    """Gangs that ask for domains of the topology, by partition."""
    notes: list[str]
    warnings: list[str]

    @property
    def remarks(self) -> list[str]:
        """Notes and warnings for the report, which has the offered load as a figure."""
        return [*self.notes, *self.warnings]


def survey(workload: Workload) -> Survey:
    """Return the survey of a workload, which must not change afterwards."""
    found: Survey | None = workload.surveyed
    if found is None:
        found = workload.surveyed = _survey(workload)
    return found


def _survey(workload: Workload) -> Survey:
    finder, tally = OversizedFinder(workload), LoadTally()
    dependents: Counter[str] = Counter()
    following = 0
    gangs: dict[str, GangSurvey] = {}
    for application in workload.applications:
        finder.add(application)
        tally.add(application)
        if asks_for_domain(application):
            found = gangs.setdefault(partition_name(application.partition), GangSurvey())
            found.largest = max(found.largest, application.size)
            for group in application.tasks:
                found.members[group.resources] += group.count
        if application.after:
            following += 1
            dependents.update(set(application.after))
    never = 0
    if following:
        tally = LoadTally()
        queue: EventQueue[str] = EventQueue(attrs.evolve(workload, events=[], reloads=[]), dependents)
        for application in _submissions(queue, dependents):
            tally.add(application)
        never = queue.still_to_arrive
    oversized, load = finder.result(), tally.relate_to(workload)
    notes = [*oversized.remarks(), _note_on_ends(never)]
    return Survey(
        oversized,
        load,
        dependents,
        following,
        gangs,
        notes=list(filter(None, notes)),
        warnings=list(filter(None, [load.warning()])),
    )


def asks_for_domain(application: WorkloadApplication) -> bool:
    """Return True for a gang with requirements on the topology."""
    return GANG_TOPOLOGY_TAG in application.tags and bool(application.gang)


def fit_count(room: Mapping[str, int], size: Resource) -> int:
    """Return how many tasks of a size have room together."""
    return min(
        (max(room.get(name, 0), 0) // amount for name, amount in size.items() if amount > 0), default=0
    )


def _submissions(queue: EventQueue[str], dependents: Mapping[str, int]) -> Iterator[WorkloadApplication]:
    """Yield the applications as they would be submitted if none ever waited for room."""
    while (moment := queue.next()) is not None:
        for name in queue.ends(moment):
            queue.dependencies.ended(name, moment, True)
        for application in queue.arrivals(moment):
            yield application
            is_endless = any(group.own_time == FOREVER for group in application.tasks)
            if application.id in dependents and not is_endless:
                longest = max(group.delay + group.own_time for group in application.tasks)
                queue.add_end(moment + longest, application.id)


def _note_on_ends(never: int) -> str:
    if not never:
        return ""
    return (
        f"{number_of(never, 'application')} will never be submitted, because an application before them "
        "never ends (by --hold, or a run time of forever)"
    )


JOB_FORMATS = ("swf", "slurm", "batsim")
"""Formats of traces of parallel jobs, which are named even if their tasks may start in parts."""

SHOWN = 3
"""Maximum number of examples in a remark."""


@attrs.frozen
class Oversized:
    """Numbers of tasks and applications that are too large, with examples."""

    tasks: int
    """Tasks larger than every node of their partition."""
    applications: int
    """Applications of these tasks."""
    examples: list[str]
    applications_beyond_cluster: int
    """Rigid jobs, or jobs of a trace, with more tasks than fit into the whole empty cluster."""
    examples_beyond_cluster: list[str]
    starts_in_parts: bool
    """True if the tasks of a job start one by one, so that parts of it run after each other."""

    def remarks(self) -> list[str]:
        """Return remarks for the user; none if everything fits."""
        found = []
        if self.tasks:
            found.append(
                f"{number_of(self.tasks, 'task')} of {number_of(self.applications, 'application')} "
                f"{'fits' if self.tasks == 1 else 'fit'} on no node and will never be allocated: "
                f"{'; '.join(self.examples)}"
            )
        if self.applications_beyond_cluster:
            fate = "whose tasks start in parts" if self.starts_in_parts else "which will never start"
            found.append(
                f"{number_of(self.applications_beyond_cluster, 'application')} larger than the whole "
                f"cluster, {fate}: {'; '.join(self.examples_beyond_cluster)}"
            )
        return found


class OversizedFinder:
    """Compares applications with the nodes that their partition has at any time of the simulation.

    The comparison considers resource amounts only, not predicates or queue limits.
    """

    def __init__(self, workload: Workload) -> None:
        self._has_jobs = workload.format in JOB_FORMATS
        self._sizes: dict[str, Counter[Resource]] = {}
        largest: dict[tuple[str, str], Resource] = {}
        for node in workload.all_nodes():
            partition = partition_name(node.partition)
            self._sizes.setdefault(partition, Counter())[node.resources] += 0
            key = (partition, node.name)
            largest[key] = _largest(largest.get(key), node.resources)
        self._clusters: dict[str, Counter[Resource]] = {}
        for (partition, _), resources in largest.items():
            self._clusters.setdefault(partition, Counter())[resources] += 1
        self._fitting: dict[tuple[str, Resource], bool] = {}
        self._room: dict[tuple[str, Resource], int] = {}
        self._tasks = self._applications = self._beyond = 0
        self._examples: list[str] = []
        self._beyond_examples: list[str] = []
        self._in_parts = False

    def add(self, application: WorkloadApplication) -> None:
        """Compare an application."""
        partition = partition_name(application.partition)
        lost = 0
        for group in application.tasks:
            if not self._fits(partition, group.resources, application.id):
                lost += group.count
        self._tasks += lost
        self._applications += bool(lost)
        if not lost and (application.gang or self._has_jobs):
            self._compare_with_cluster(application, partition)

    def result(self) -> Oversized:
        """Return the numbers of the applications so far."""
        return Oversized(
            self._tasks,
            self._applications,
            self._examples,
            self._beyond,
            self._beyond_examples,
            self._in_parts,
        )

    def _fits(self, partition: str, wanted: Resource, name: str) -> bool:
        key = (partition, wanted)
        found = self._fitting.get(key)
        if found is None:
            sizes = self._sizes.get(partition, ())
            found = self._fitting[key] = any(fits(size, wanted) for size in sizes)
            if not found and len(self._examples) < SHOWN:
                self._examples.append(f"{name} asks for {in_words(wanted)}")
        return found

    def _compare_with_cluster(self, application: WorkloadApplication, partition: str) -> None:
        for group in application.tasks:
            room = self._room_for(partition, group.resources)
            if group.count > room:
                self._beyond += 1
                self._in_parts = self._in_parts or not application.gang
                if len(self._beyond_examples) < SHOWN:
                    self._beyond_examples.append(
                        f"{application.id} asks for {number_of(group.count, 'task')} of "
                        f"{in_words(group.resources)}, there is room for {room}"
                    )
                return

    def _room_for(self, partition: str, wanted: Resource) -> int:
        """Return the number of tasks of one size that fit into the empty cluster."""
        key = (partition, wanted)
        found = self._room.get(key)
        if found is None:
            found = self._room[key] = sum(
                count * fit_count(size, wanted)
                for size, count in self._clusters.get(partition, Counter()).items()
            )
        return found


def _largest(one: Resource | None, other: Resource) -> Resource:
    if one is None:
        return other
    return Resource({kind: max(one.get(kind, 0), other.get(kind, 0)) for kind in {**one, **other}})


def node_changes(
    nodes: Iterable[WorkloadNode], events: Iterable[NodeEvent]
) -> Iterator[tuple[int, WorkloadNode, int]]:
    """Yield the changes of the capacity in order: time (ns), node, and 1 if it comes or -1 if it goes.

    A node with another capacity goes, and comes again. A drained node stays: it still has its capacity.
    """
    present: dict[str, WorkloadNode] = {}
    for node in nodes:
        present[node.name] = node
        yield 0, node, 1
    for event in events:
        before = present.get(event.node.name)
        after = before
        if event.change is NodeEventKind.ADD:
            after = event.node
        elif event.change is NodeEventKind.REMOVE:
            after = None
        elif event.change is NodeEventKind.CAPACITY and before is not None:
            after = attrs.evolve(before, resources=event.resources)
        if before is not None and after is not before:
            yield event.at, present.pop(event.node.name), -1
        if after is not None and after is not before:
            present[event.node.name] = after
            yield event.at, after, 1
