"""Recorder that collects the figures of the full report, without influence on the simulation.

Its memory grows with the number of live applications, queues, users and nodes, and by eight bytes per
application and figure. Time series have a bounded number of intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource
from yunikorn_lab.reporting.calibration import CalibrationSample
from yunikorn_lab.reporting.core_view import CoreView
from yunikorn_lab.reporting.group_counts import GroupCounts, size_class
from yunikorn_lab.reporting.idle_capacity import IdleCapacity, Pending
from yunikorn_lab.reporting.observations import (
    RUNNING,
    WAITING,
    ApplicationObservation,
    ApplicationRow,
    ClusterObservation,
    PartitionObservation,
)
from yunikorn_lab.reporting.queue_observation import QueueObservation, QueueObservations, UserObservations
from yunikorn_lab.reporting.run_figures import WaitTargets
from yunikorn_lab.reporting.time_series import Timeline
from yunikorn_lab.reporting.topology_rooms import TopologyObservation
from yunikorn_lab.simulation.limit_waits import LimitWaits
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Running, Submitted, partition_name
from yunikorn_lab.simulation.statistics import seconds
from yunikorn_lab.simulation.survey import GangSurvey, asks_for_domain
from yunikorn_lab.simulation.workload import HourlyLoad, NodeEvent, Reloaded

Key = TypeVar("Key", bound=Hashable)
Write = Callable[[ApplicationRow], None]


class Observer(Recorder):
    """Figures of one simulation while it runs."""

    def __init__(
        self,
        view: CoreView,
        limits: LimitWaits,
        write: Write | None = None,
        targets: Mapping[str, int] | None = None,
        gangs: Mapping[str, GangSurvey] | None = None,
        recorded: HourlyLoad | None = None,
    ) -> None:
        """Create an observer; `write` receives each application's row at its end or the end of the run.

        `targets` are wait targets (ns) by queue, `gangs` those that ask for domains, by partition, and
        `recorded` the load that is compared with that of the simulation.
        """
        self.timeline = Timeline()
        self.cluster = ClusterObservation(self.timeline, self._idle_capacity)
        self.queues = QueueObservations(self.timeline, view)
        self.users = UserObservations(self.timeline)
        self.everything = GroupCounts()
        self.by_queue: dict[tuple[str, str], GroupCounts] = {}
        """Figures by partition and path of the queue."""
        self.by_user: dict[str, GroupCounts] = {}
        self.by_size: dict[str, GroupCounts] = {}
        self.last = 0
        """Time of the last event (ns)."""
        self._view = view
        self._limits = limits
        self.targets = WaitTargets(targets or {})
        self.calibration = CalibrationSample(recorded)
        self._receive: Write = write or (lambda row: None)
        self._live: dict[str, ApplicationObservation] = {}
        self._unsized: dict[ApplicationObservation, None] = {}
        """Applications of this moment without a size class, because nodes of this moment register later."""
        self._unwritten: list[tuple[ApplicationObservation, int, str, str]] = []
        """Applications of `_unsized` that have already ended, with moment, outcome and reason."""
        self._dirty: dict[ApplicationObservation, None] = {}
        self._running: dict[Running, ApplicationObservation] = {}
        self.topologies = {
            name: TopologyObservation(
                self.timeline, found, self.cluster.partition(name).rooms, partial(view.domains_of, name)
            )
            for name, found in (gangs or {}).items()
        }
        """Topologies of the partitions with gangs that ask for domains."""

    def _idle_capacity(self, partition: str) -> IdleCapacity:
        return IdleCapacity(
            partition, self.timeline, self._view, self._limits.amounts(partition), self._pending
        )

    def _pending(self, partition: str) -> Iterator[Pending]:
        for name, observation in self._live.items():
            if observation.pending and observation.partition == partition:
                yield name, observation.pending

    # -- the cluster ----------------------------------------------------------------------------------

    def node_changed(self, event: NodeEvent) -> None:
        """Note a node event."""
        self.last = event.at
        self.cluster.change(event)
        topology = self.topologies.get(partition_name(event.node.partition))
        if topology is not None:
            topology.change(event.node.name, resized=True)

    def reloaded(self, event: Reloaded) -> None:
        """Note a reload of the configuration."""
        self.last = event.at
        self.queues.read_quotas(event.at)
        for topology in self.topologies.values():
            topology.reset()

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Note the allocation of a task or a placeholder."""
        self._allocate(moment, allocation, 1)

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Note the release of a task's or a placeholder's allocation."""
        self._allocate(moment, allocation, -1)

    def _allocate(self, moment: int, allocation: Allocation, sign: int) -> None:
        self.last = moment
        observation = self._live.get(allocation.application_id)
        if observation is not None:
            self._dirty[observation] = None
        partition = partition_name(allocation.partition_name)
        self.queues.at(partition, allocation.queue_name).allocate(allocation.resource_per_alloc, sign)
        self.cluster.allocate(allocation, sign, moment)
        topology = self.topologies.get(partition)
        if topology is not None:
            topology.change(allocation.node_id)

    # -- applications ---------------------------------------------------------------------------------

    def submitted(self, moment: int, record: Submitted) -> None:
        """Note the submission of an application."""
        self.last = moment
        self.timeline.begin(moment)
        plan = record.plan
        observation = ApplicationObservation(
            record, partition_name(plan.partition), missing=record.unfinished
        )
        self._live[plan.id] = observation
        self._dirty[observation] = None
        self._unsized[observation] = None
        if self.topologies and asks_for_domain(plan):
            self.topologies[observation.partition].submitted(plan)
        _counts(self.by_user, plan.user)
        for group in self._groups(observation):
            group.applications += 1

    def requested(self, moment: int, record: Submitted) -> None:
        """Note that an application has requested more tasks."""
        self.last = moment
        self._dirty[self._live[record.plan.id]] = None

    def _measure(self) -> None:
        """Determine the size classes of new applications, once the nodes of this moment are known."""
        for observation in self._unsized:
            plan = observation.record.plan
            observation.size = size_class(plan, self.cluster.partition(plan.partition).capacity)
            _counts(self.by_size, observation.size).applications += 1
        self._unsized.clear()
        for observation, moment, outcome, reason in self._unwritten:
            self._write(observation.row(moment, outcome, reason))
        self._unwritten.clear()

    def refused(self, moment: int, record: Submitted, tasks: int, reason: str) -> None:
        """Note tasks of an application that will never be allocated."""
        observation = self._live[record.plan.id]
        self._dirty[observation] = None
        if observation.give_up(tasks, moment):
            self._see_whole(observation, moment)

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """Note the end of an application."""
        self.last = moment
        observation = self._live.pop(record.plan.id)
        self._dirty.pop(observation, None)
        if self.topologies and asks_for_domain(observation.record.plan):
            self.topologies[observation.partition].ended(observation.record.plan.id)
        self._ask(observation, {}, 0)
        if outcome == "finished":
            slowdown = observation.slowdown(moment)
            for group in self._groups(observation):
                group.finished += 1
                if slowdown is not None:
                    group.slowdowns.add(slowdown)
        if observation in self._unsized:
            self._unwritten.append((observation, moment, outcome, reason))
        else:
            self._write(observation.row(moment, outcome, reason))

    def _write(self, row: ApplicationRow) -> None:
        self.targets.add(row, seconds(self.last))
        self.calibration.add(row)
        self._receive(row)

    def _groups(self, observation: ApplicationObservation) -> list[GroupCounts]:
        found = [self.everything, self.by_user[observation.record.plan.user]]
        if observation.size:
            found.append(self.by_size[observation.size])
        if observation.queue:
            found.append(self.by_queue[observation.partition, observation.queue])
        return found

    def _see_whole(self, observation: ApplicationObservation, moment: int) -> None:
        wait = seconds(moment - observation.record.plan.submit)
        for group in self._groups(observation):
            group.whole_waits.add(wait)

    # -- tasks ----------------------------------------------------------------------------------------

    def started(self, moment: int, task: Running) -> None:
        """Note the start of a task."""
        if self._unsized:
            self._measure()
        observation = self._live[task.owner.plan.id]
        self._running[task] = observation
        if self.calibration.simulated is not None:
            self.calibration.simulated.place(moment)
        if not observation.queue:
            self._join(observation, task.allocation.queue_name)
        self._run(moment, task, observation, 1)
        if not observation.has_run:
            observation.has_run = True
            wait = seconds(moment - task.owner.plan.submit)
            for group in self._groups(observation):
                group.waits.add(wait)
        complete = observation.first_start(task.ask, moment)
        if complete:
            self._see_whole(observation, moment)
        topology = self.topologies.get(observation.partition)
        if topology is not None:
            topology.started(moment, task, complete=complete)

    def left(self, moment: int, task: Running, reason: str) -> None:
        """Note the end of a task."""
        observation = self._running.pop(task)
        self._run(moment, task, observation, -1)
        self._spend(observation, task, moment)

    def _run(self, moment: int, task: Running, observation: ApplicationObservation, sign: int) -> None:
        for level in self._levels(observation):
            level.run(sign)
        self.users.run(moment, observation.record.plan.user, task.allocation.resource_per_alloc, sign)

    def _spend(self, observation: ApplicationObservation, task: Running, moment: int) -> None:
        amount, duration = task.allocation.resource_per_alloc, max(moment - task.started, 0)
        for group in self._groups(observation):
            group.spend(observation.partition, amount, duration)
        if self.calibration.simulated is not None:
            self.calibration.simulated.spend(task.started, moment, amount)

    # -- waiting requests -----------------------------------------------------------------------------

    def idle(self, moment: int) -> None:
        """Record the state of all waiting requests; called when the core has made all possible decisions."""
        if self._unsized:
            self._measure()
        for observation in self._dirty:
            if not observation.queue:
                found = self._view.queue_of(observation.partition, observation.record.plan.id)
                if found:
                    self._join(observation, found)
            self._ask(observation, observation.wants(), observation.record.waiting)
        self._dirty.clear()
        self.queues.record(moment)
        self.cluster.record(moment)
        for topology in self.topologies.values():
            topology.record(moment)
        self.users.record(moment, self.cluster.capacity)

    def _join(self, observation: ApplicationObservation, path: str) -> None:
        """Assign an application to its queue, as soon as the queue is known."""
        observation.queue = path
        _counts(self.by_queue, (observation.partition, path)).applications += 1
        queue = self.queues.at(observation.partition, path)
        for size, requests in observation.pending.items():
            queue.ask(size, requests)
        queue.wait(observation.waiting)

    def _ask(self, observation: ApplicationObservation, pending: dict[Resource, int], waiting: int) -> None:
        """Update the waiting requests, and the number of waiting tasks, of an application."""
        before, observation.pending = observation.pending, pending
        more, observation.waiting = waiting - observation.waiting, waiting
        changed = {size: pending.get(size, 0) - before.get(size, 0) for size in {**before, **pending}}
        self._want(observation, before, pending, changed)
        self.users.ask(observation.record.plan.user, changed, more)
        for level in self._levels(observation):
            for size, requests in changed.items():
                if requests:
                    level.ask(size, requests)
            if more:
                level.wait(more)

    def _want(
        self,
        observation: ApplicationObservation,
        before: dict[Resource, int],
        pending: dict[Resource, int],
        changed: dict[Resource, int],
    ) -> None:
        """Update what the application's partition wants."""
        wanted = self.cluster.partition(observation.partition).idle.wanted
        was_atomic, observation.is_atomic = observation.is_atomic, observation.record.is_unplaced_gang
        if was_atomic == observation.is_atomic:
            for size, requests in changed.items():
                wanted.add(size, requests, atomic=was_atomic)
            return
        for size, requests in before.items():
            wanted.add(size, -requests, atomic=was_atomic)
        for size, requests in pending.items():
            wanted.add(size, requests, atomic=observation.is_atomic)

    def _levels(self, observation: ApplicationObservation) -> list[PartitionObservation | QueueObservation]:
        """Return the partition and, once it is known, the queue of an application."""
        partition = self.cluster.partition(observation.partition)
        if not observation.queue:
            return [partition]
        return [partition, self.queues.at(observation.partition, observation.queue)]

    def close(self, moment: int) -> None:
        """Complete the figures at the end of the simulation, including tasks that still run or wait."""
        self.idle(max(moment, self.last))
        for task, observation in self._running.items():
            self._spend(observation, task, moment)
        self.last = max(moment, self.last)
        for observation in self._live.values():
            self._write(observation.row(None, RUNNING if observation.record.running else WAITING))
        self.timeline.reach(self.last)
        self.queues.close(self.last)
        self.cluster.close(self.last)
        for topology in self.topologies.values():
            topology.close(self.last)
        self.users.close(self.last, self.cluster.capacity)


def _counts(groups: dict[Key, GroupCounts], key: Key) -> GroupCounts:
    """Return the counts of a group; creates missing ones, but no others, because each has three samples."""
    found = groups.get(key)
    if found is None:
        found = groups[key] = GroupCounts()
    return found
