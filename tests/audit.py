"""An audit of every simulation that a test runs in its own process: counts add up, no limit is exceeded.

It sums usage of nodes and queues independently; only the quota of each queue is read from the core.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from yunikorn.interface.messages import Allocation
from yunikorn.interface.scheduler import Scheduler
from yunikorn_lab.simulation.engine import Simulation
from yunikorn_lab.simulation.recorder import Recorder, Recorders
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.rm_state import partition_name
from yunikorn_lab.simulation.simulated_rm import RM_ID
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind


class Audit(Recorder):
    """Independent accounting, checked at every allocation, release and change of a node."""

    def __init__(self, core: Scheduler) -> None:
        self._core = core
        self._capacity: dict[str, dict[str, int]] = {}
        self._drained: set[str] = set()
        self._on_node: dict[str, Counter[str]] = defaultdict(Counter)
        self._in_queue: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._placed: dict[tuple[str, str], Allocation] = {}
        self._promised: set[tuple[str, str, str]] = set()
        """Application, task group and node of every placeholder: a task may replace it on a drained node."""
        self._time = 0
        self._count = 0

    def node_changed(self, event: NodeEvent) -> None:
        """Record capacity and drain state of the node."""
        name = event.node.name
        if event.change is NodeEventKind.REMOVE:
            assert not +self._on_node[name], f"{name} left with something on it"
            del self._capacity[name]
        elif event.change is NodeEventKind.ADD:
            self._capacity[name] = dict(event.node.resources)
        elif event.change is NodeEventKind.CAPACITY:
            self._capacity[name] = dict(event.resources)
        if event.change is NodeEventKind.DRAIN:
            self._drained.add(name)
        elif event.change is not NodeEventKind.CAPACITY:
            self._drained.discard(name)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Assert that the allocation fits its node and every queue above it."""
        assert moment >= self._time
        self._time = moment
        self._count += not allocation.placeholder  # Placeholders are no tasks.
        partition, node = partition_name(allocation.partition_name), allocation.node_id
        assert (partition, allocation.uuid) not in self._placed, f"{allocation.uuid} was used twice"
        self._placed[partition, allocation.uuid] = allocation
        promise = (allocation.application_id, allocation.task_group_name, node)
        if allocation.placeholder:
            self._promised.add(promise)
        assert node not in self._drained or promise in self._promised, f"{node} is drained"
        amount = allocation.resource_per_alloc
        self._on_node[node].update(amount)
        for name in amount:
            assert self._on_node[node][name] <= self._capacity[node].get(name, 0), (
                f"{node} is over its {name}"
            )
        at = self._core.partition(RM_ID, partition)
        queue = None if at is None else at.partition.queue(allocation.queue_name)
        for level in () if queue is None else queue.chain:
            held = self._in_queue[partition, level.path]
            held.update(amount)
            if level.parent is not None and level.max is not None:
                over = [name for name in amount if name in level.max and held[name] > level.max[name]]
                assert not over, f"{level.path} is over its {over}"

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Assert that the allocation exists and is released as it was placed."""
        assert moment >= self._time
        self._time = moment
        partition = partition_name(allocation.partition_name)
        placed = self._placed.pop((partition, allocation.uuid))
        assert (placed.node_id, placed.resource_per_alloc) == (
            allocation.node_id,
            allocation.resource_per_alloc,
        )
        self._on_node[placed.node_id].subtract(placed.resource_per_alloc)
        parts = placed.queue_name.split(".")
        for index in range(len(parts)):
            self._in_queue[partition, ".".join(parts[: index + 1])].subtract(placed.resource_per_alloc)

    def check(self, report: Report) -> None:
        """Assert that the report agrees with the records, and that counts add up."""
        counts, tasks = report.applications, report.tasks
        left = counts.running + counts.waiting
        assert counts.submitted == counts.finished + counts.failed + counts.rejected + left
        ended = tasks.ended + tasks.failed + tasks.dropped + tasks.refused
        assert tasks.asked == ended + tasks.running + tasks.waiting
        assert report.allocations == self._count
        still = sum(not allocation.placeholder for allocation in self._placed.values())
        assert report.allocations == report.releases + still


class AuditedSimulation(Simulation):
    """A simulation with an audit."""

    def __init__(self, workload: Any, core: Any, clock: Any, *, recorder: Any = None, **more: Any) -> None:
        self._audit = Audit(core)
        everyone = [self._audit] if recorder is None else [recorder, self._audit]
        super().__init__(workload, core, clock, recorder=Recorders(*everyone), **more)

    def run(self) -> Report:
        """Run the simulation, and check its result."""
        report = super().run()
        self._audit.check(report)
        return report
