"""Sample of a core: what queues, users and nodes use, what waits and why, configurations and failures.

The reading is in slices, each well below a millisecond. What queues and users use is the sum over the
applications that were looked at, so that the sums over queues, over users and of the partition agree,
although the core works on in between.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import attrs

from yunikorn.accounting.event_batch import Source
from yunikorn.clock import MILLISECOND
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.queue import Queue
from yunikorn.resources import Resource, Tally, grow
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn_history.wait_causes import cause_of
from yunikorn_service.grouped_explanations import explained_in_slices

Slices = Generator[None, None, None]

AT_ONCE = 40
"""Number of objects that are read without a pause."""


@attrs.define
class SampledUse:
    """Use of a queue or a user at one moment."""

    used: Tally = attrs.Factory(dict)
    pending: Tally = attrs.Factory(dict)
    running: int = 0
    """Number of running applications."""
    waiting: int = 0
    """Number of applications with requests that wait."""

    def add(self, other: SampledUse) -> None:
        """Add the use of another one."""
        grow(self.used, other.used)
        grow(self.pending, other.pending)
        self.running += other.running
        self.waiting += other.waiting


@attrs.frozen
class SampledNode:
    """A node at one moment."""

    rm: str
    partition: str
    name: str
    capacity: Resource
    attributes: Mapping[str, str]
    schedulable: bool
    used: Tally | None
    """None if nothing runs there."""


@attrs.frozen
class SampledWait:
    """An application that waits."""

    rm: str
    partition: str
    app_id: str
    cause: str
    since: int
    """Time of its latest placement, or of its submission (ms)."""


@attrs.frozen
class SampledConfig:
    """Configuration that a resource manager uses."""

    rm: str
    group: str | None
    """Policy group; None for a configuration of its own."""
    text: str
    checksum: str


@attrs.define
class SampledPartition:
    """Queues, users and room of a partition at one moment."""

    leaves: dict[str, SampledUse] = attrs.Factory(dict)
    """Use by leaf queue."""
    bounds: dict[str, tuple[Tally, Tally]] = attrs.Factory(dict)
    """Guarantee and quota by queue, for those that have any."""
    users: dict[str, SampledUse] = attrs.Factory(dict)
    nodes: int = 0
    capacity: Tally = attrs.Factory(dict)
    free: Tally = attrs.Factory(dict)
    """Amounts that nodes may still give to requests."""
    causes: dict[str, Tally] = attrs.Factory(dict)
    """Pending amounts by the cause of their wait."""


@attrs.define
class SampledCore:
    """State of a core at one moment, which later changes do not affect."""

    time: int
    """Time (ms)."""
    partitions: dict[Source, SampledPartition] = attrs.Factory(dict)
    """Partitions by resource manager and name."""
    nodes: list[SampledNode] = attrs.Factory(list)
    waits: list[SampledWait] = attrs.Factory(list)
    configs: list[SampledConfig] = attrs.Factory(list)
    failures: list[tuple[str, str, int]] = attrs.Factory(list)
    """Plugin, message and number of each failure."""
    read: int = 0
    """Number of objects that were looked at."""


def take_sample(scheduler: Scheduler) -> Generator[None, None, SampledCore]:
    """Return a sample; `CoreReader.read` carries it out."""
    found = SampledCore(scheduler.clock.now() // MILLISECOND)
    for rm_id, at in scheduler.all_partitions():
        found.partitions[rm_id, at.partition.config_name] = SampledPartition()
        yield from explained_in_slices(scheduler, _read_queues(found, rm_id, at))
        yield from _read_nodes(found, rm_id, at)
    found.failures = [(one.plugin, one.message, one.count) for one in scheduler.failures]
    found.configs = configurations(scheduler)
    return found


def configurations(scheduler: Scheduler) -> list[SampledConfig]:
    """Return the configurations in use."""
    return [
        SampledConfig(one.rm_id, one.policy_group, scheduler.configuration(one.rm_id).text, one.checksum)
        for one in scheduler.sessions()
    ]


def _read_queues(found: SampledCore, rm_id: str, at: PartitionScheduler) -> Slices:
    of = found.partitions[rm_id, at.partition.config_name]
    for queue in list(at.partition.queues):
        found.read += 1
        if found.read % AT_ONCE == 0:
            yield
        quota = queue.max if queue.parent is not None else None
        if queue.guaranteed or quota:
            of.bounds[queue.path] = {**queue.guaranteed}, {**(quota or {})}
        if queue.applications:
            yield from _read_applications(found, rm_id, at, queue)


def _read_applications(found: SampledCore, rm_id: str, at: PartitionScheduler, queue: Queue) -> Slices:
    source = rm_id, at.partition.config_name
    of = found.partitions[source]
    leaf = of.leaves.setdefault(queue.path, SampledUse())
    for app in list(queue.applications.values()):
        found.read += 1
        if found.read % AT_ONCE == 0:
            yield
        if app.queue is not queue:
            continue
        cause = cause_of(at, app)
        pending = app.pending if app.has_waiting else {}
        one = SampledUse(app.allocated, pending, int(app.counted), int(bool(cause)))
        leaf.add(one)
        of.users.setdefault(app.user, SampledUse()).add(one)
        if cause:
            grow(of.causes.setdefault(cause, {}), one.pending)
            found.waits.append(SampledWait(*source, app.id, cause, app.waiting_since // MILLISECOND))


def _read_nodes(found: SampledCore, rm_id: str, at: PartitionScheduler) -> Slices:
    source = rm_id, at.partition.config_name
    of = found.partitions[source]
    of.capacity, of.nodes = {**at.partition.cluster.total}, len(at.partition.nodes)
    for node in list(at.partition.nodes.values()):
        found.read += 1
        if found.read % AT_ONCE == 0:
            yield
        if node.schedulable:
            grow(of.free, {name: amount for name, amount in node.available.items() if amount > 0})
        used = node.allocated if node.allocations else None
        found.nodes.append(
            SampledNode(*source, node.id, node.capacity, node.attributes, node.schedulable, used)
        )
    yield
