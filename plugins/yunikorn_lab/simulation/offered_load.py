"""Offered load: the work that arrives, relative to the work that the cluster can do in the same time.

The span reaches from the first to the last submission; it is at least as long as the median run time, so that
a few applications that arrive together have a load as well. The work of a task is its amount of a resource
type times its run time, of which no more than the span counts: one task that runs for months neither hides
the load of all others nor makes a load by itself. A task that never ends counts up to the end of the span.
The capacity is that of all registered nodes over the span, times their speed. Above 1 more work arrives than
can be done, and requests wait the longer the later they arrive.
"""

from __future__ import annotations

from array import array

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.resources import Resource, Tally, grow
from yunikorn_lab.simulation.cluster_size import node_changes
from yunikorn_lab.simulation.rm_state import partition_name
from yunikorn_lab.simulation.statistics import Capacity, seconds, used_share
from yunikorn_lab.simulation.workload import (
    FOREVER,
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
