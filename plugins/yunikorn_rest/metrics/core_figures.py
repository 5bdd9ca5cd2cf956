"""Figures of the core for metrics, read in slices between its decisions.

`read_figures` is a generator function: it yields at every point at which the core may work on, and returns
its result at the end. Counters and durations are taken without a yield, each queue by itself; so the amounts
of a queue belong to one moment, and those of different queues may be some milliseconds apart.

Figures have few containers, because the garbage collector runs in the core's thread after every so many new
ones, and takes longer than a slice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import attrs

from yunikorn.resources import NOTHING
from yunikorn.states import NODE_DRAINING, SCHEDULABLE, compatible_state
from yunikorn_service.measurements import Measurements

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.topology.topology_tree import TopologyTree, TreeDomain
    from yunikorn_service.histogram import Histogram

T = TypeVar("T")

QUEUES, NODES, APPLICATIONS = 64, 128, 512
"""Numbers of objects that are read without a yield, about half a millisecond of each."""
TENTHS = 10


@attrs.define
class QueueFigures:
    """Figures of a queue, or the sums of the queues of several partitions with the same path."""

    amounts: dict[str, int] = attrs.Factory(dict)
    """Amounts by state (one of `families.RESOURCE_STATES`) and resource, as `STATE RESOURCE`."""
    max_applications: int = 0
    states: dict[str, int] | None = None
    """Applications that have not ended, by state."""
    ended: Mapping[str, int] | None = None
    """Applications that have ended, by last state."""
    allocated: int = 0
    released: int = 0
    """Allocations made or reported, and ended."""


@attrs.define
class CoreFigures:
    """Figures of a core."""

    queues: dict[str, QueueFigures] = attrs.Factory(dict)
    """Queues that exist, by path."""
    removed_queues: dict[str, Mapping[str, int]] = attrs.Factory(dict)
    """Applications that have ended in queues that were removed, by path and last state."""
    nodes: Counter[str] = attrs.Factory(Counter)
    """Nodes by state, as labels spell it."""
    node_usage: dict[str, list[int]] = attrs.Factory(dict)
    """Number of nodes in each tenth of use, by resource."""
    idle_slices: Counter[tuple[str, str]] = attrs.Factory(Counter)
    """Gangs of whole nodes that idle nodes have room for, by level of the topology and number of nodes."""
    domains: Counter[tuple[str, str]] = attrs.Factory(Counter)
    """Domains of the topology, by level and state (idle or used)."""
    sessions: Counter[str] = attrs.Factory(Counter)
    """Sessions by state."""
    waiting: Counter[str] = attrs.Factory(Counter)
    """Applications that are not accepted yet, by the policy whose answer is awaited."""
    faults: Counter[tuple[str, str]] = attrs.Factory(Counter)
    """Failures by plugin and operation."""
    counts: Mapping[str, int] = attrs.Factory(dict)
    """Fields of `Measurements` that are numbers."""
    ended: Mapping[str, int] = attrs.Factory(dict)
    refused: Mapping[str, int] = attrs.Factory(dict)
    durations: Mapping[str, Histogram] = attrs.Factory(dict)
    """Histograms of `Durations`."""

    @property
    def states(self) -> Counter[str]:
        """Applications that have not ended, by state."""
        found: Counter[str] = Counter()
        for queue in self.queues.values():
            found.update(queue.states)
        return found


COUNTS = (
    "allocated",
    "released",
    "submitted",
    "accepted",
    "errors",
    "removed_nodes",
    "decisions",
    "steps",
    "busy",
)


def read_figures(scheduler: Scheduler) -> Generator[None, None, CoreFigures]:
    """Read the figures of a scheduler; see the description of the module."""
    found = CoreFigures()
    for _, at in scheduler.all_partitions():
        yield from _read_queues(at.partition, found)
        yield from _read_applications(at.partition, found)
        for waiting in _slices(at.submitted, APPLICATIONS):
            found.waiting.update(at.submitted.awaited(one.app.id) for one in waiting)
            yield
        yield from _read_nodes(at.partition, found)
        for tree in at.policies.topology.trees:
            yield from _read_topology(tree, found)
    found.sessions = Counter(session.state.lower() for session in scheduler.sessions())
    yield
    for failure in scheduler.failures:
        found.faults[failure.plugin, failure.operation] += failure.count
    yield
    if isinstance(scheduler.measurements, Measurements):
        yield from _read_measurements(scheduler.measurements, found)
    return found


def _slices(objects: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    taken = list(objects)
    for start in range(0, len(taken), size):
        yield taken[start : start + size]


def _read_queues(partition: Partition, found: CoreFigures) -> Generator[None, None, None]:
    for some in _slices(list(partition.queues), QUEUES):
        for queue in some:
            _read_queue(queue, found.queues.setdefault(queue.path, QueueFigures()))
        yield


def _read_queue(queue: Queue, figures: QueueFigures) -> None:
    allocated = queue.allocated
    pending = {name: amount - allocated.get(name, 0) for name, amount in queue.demand.items()}
    for state, amounts in (
        ("allocated", allocated),
        ("pending", pending),
        ("guaranteed", queue.guaranteed),
        ("max", queue.max or NOTHING),
        ("preempting", queue.preempting),
    ):
        for name, amount in amounts.items():
            _add(figures.amounts, f"{state} {name}", amount)
    figures.max_applications += queue.max_applications


def _add(sums: dict[str, int], key: str, amount: int) -> None:
    sums[key] = sums.get(key, 0) + amount


def _read_applications(partition: Partition, found: CoreFigures) -> Generator[None, None, None]:
    for some in _slices(partition.applications.values(), APPLICATIONS):
        for app in some:
            if app.chain:
                figures = found.queues.setdefault(app.chain[0].path, QueueFigures())
                if figures.states is None:
                    figures.states = {}
                _add(figures.states, compatible_state(app.state), 1)
        yield


def _read_nodes(partition: Partition, found: CoreFigures) -> Generator[None, None, None]:
    labels = {SCHEDULABLE: "active", NODE_DRAINING: "draining"}
    for some in _slices(partition.nodes.values(), NODES):
        for node in some:
            if node.state in labels:
                found.nodes[labels[node.state]] += 1
                _read_usage(node, found.node_usage)
        yield


def _read_usage(node: Node, usage: dict[str, list[int]]) -> None:
    occupied, available = node.occupied, node.available
    for name, total in node.capacity.items():
        if total > 0:
            allocated = total - occupied.get(name, 0) - available.get(name, 0)
            tenths = usage.get(name)
            if tenths is None:
                tenths = usage[name] = [0] * TENTHS
            # A tenth includes its upper bound. More than the capacity counts as the capacity.
            tenths[min(TENTHS, max(1, -(-allocated * TENTHS // total))) - 1] += 1


def _read_topology(tree: TopologyTree, found: CoreFigures) -> Generator[None, None, None]:
    idle: Counter[TreeDomain] = Counter()
    for some in _slices(tree.domain_of.items(), NODES):
        for node, domain in some:
            if node.state == SCHEDULABLE and not node.allocations:
                idle.update(domain.chain)
        yield
    for number, level in enumerate(tree.levels):
        largest = max((len(domain.nodes) for domain in tree.domains(number)), default=0)
        sizes = [1 << power for power in range(largest.bit_length())]
        for domains in _slices(tree.domains(number), NODES):
            for domain in domains:
                nodes = idle[domain]
                found.domains[level, "idle" if nodes == len(domain.nodes) else "used"] += 1
                for size in sizes:
                    found.idle_slices[level, str(size)] += nodes // size
            yield


def _read_measurements(measurements: Measurements, found: CoreFigures) -> Generator[None, None, None]:
    measurements.forget_queues(found.queues)
    for some in _slices(measurements.queues.items(), QUEUES):
        for path, counts in some:
            figures = found.queues.get(path)
            if figures is None:
                found.removed_queues[path] = dict(counts.ended)
            else:
                figures.ended = dict(counts.ended) if counts.ended else None
                figures.allocated, figures.released = counts.allocated, counts.released
        yield
    found.counts = {name: getattr(measurements, name) for name in COUNTS}
    found.ended, found.refused = dict(measurements.ended), dict(measurements.refused)
    found.durations = {name: one.copy() for name, one in vars(measurements.durations).items()}
