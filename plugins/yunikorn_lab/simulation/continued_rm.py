"""Simulated resource managers that go on with what a scheduler has: its nodes, applications, tasks and gangs.

What a resource manager knows and its scheduler does not is assumed: tasks that are lost are asked for again,
what the scheduler wants to end ends at once, and a gang whose placeholders are gathered asks for as many
tasks as it has placeholders. Run times come from a `RunTimeSource`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from yunikorn.interface.messages import Allocation, AllocationRelease
from yunikorn_lab.simulation.adopted_application import Adopted, RunTimeSource, spelled
from yunikorn_lab.simulation.event_queue import EventQueue
from yunikorn_lab.simulation.rm_state import (
    RegisteringCore,
    Running,
    Submitted,
)
from yunikorn_lab.simulation.simulated_rm import SimulatedRM
from yunikorn_lab.simulation.workload import (
    FOREVER,
    NodeEvent,
    NodeEventKind,
    WorkloadNode,
    WorkloadTaskGroup,
)

if TYPE_CHECKING:
    from yunikorn.interface.session import Session
    from yunikorn.model.node import Node
    from yunikorn_lab.simulation.engine import ManagerParts
    from yunikorn_lab.simulation.workload import Workload


class ContinuedRM(SimulatedRM):
    """One resource manager of a scheduler that goes on; times are counted from the beginning."""

    def __init__(
        self,
        session: Session,
        begin: int,
        run_times: RunTimeSource,
        workload: Workload,
        dependents: Mapping[str, int],
        parts: ManagerParts,
    ) -> None:
        """Take over at the time `begin` (ns) of the core; `workload` has what is still to come."""
        super().__init__(
            EventQueue(workload, dependents),
            parts.counters,
            parts.recorder,
            parts.clock,
            [],
            parts.limits,
            parts.preempted,
            workload.startup,
            session.rm_id,
        )
        self._session, self._begin, self._run_times = session, begin, run_times
        self._ending: list[AllocationRelease] = []
        """Releases that the core has sent and waits for."""
        self._coming: dict[str, list[WorkloadTaskGroup]] = {}
        """Tasks that gangs have not asked for, by application."""

    def register(self, core: RegisteringCore, config: str) -> None:
        """Receive what the core sends from now on; it has its configuration."""
        self._session.callback_adapter.callback = self
        for changes in self._session.partitions.changes():
            changes.clear_outbox()

    def record_begin(self) -> None:
        """Record all that is there, with times before 0 for what happened before."""
        for name, at in self._session.partitions.by_name.items():
            self.nodes.know(nodes_of(name, at.partition.nodes.values()))
            for app in at.partition.applications.values():
                Adopted(self, name, at, app, self._begin, self._run_times).enter()
        tasks = sorted(self.running.values(), key=_order_of_start)
        for task in tasks:
            self._recorder.allocated(0, task.allocation)
            self._recorder.started(0, task)
            if task.ask.group.runtime != FOREVER:
                self.event_queue.add_end(max(task.end, 0), task)
        for release in self._ending:
            if not self._given_up(release, 0):
                self._taken_back(release, 0)

    # -- what there is ------------------------------------------------------------------------------

    def enter(self, record: Submitted) -> None:
        """Enter an application, before its tasks."""
        self.live[record.plan.id] = record
        self._counters.arrived(record, 0)
        self._recorder.submitted(0, record)
        self._limits.moved(record, 0)

    def enter_task(self, task: Running) -> None:
        """Enter a task that runs."""
        task.owner.running += 1
        self.running[task.allocation.partition_name, task.allocation.uuid] = task
        self._counters.allocations += 1

    def enter_placeholder(self, one: Allocation, owner: Submitted, group: WorkloadTaskGroup) -> None:
        """Enter a placeholder that holds room."""
        owner.kept += 1
        self._placeholders[one.partition_name, one.uuid] = (one, owner, group)
        self._recorder.allocated(0, one)

    def gather_gang(self, owner: Submitted, coming: list[WorkloadTaskGroup]) -> None:
        """Ask for these tasks of a gang once its placeholders are there."""
        self._gathering[owner.plan.id] = owner
        self._coming[owner.plan.id] = coming

    def _gathered_tasks(self, owner: Submitted) -> Sequence[WorkloadTaskGroup]:
        # Other tasks of the gang may wait already, as those of a Kubernetes cluster do.
        return self._coming.pop(owner.plan.id, owner.plan.first_tasks)

    def end(self, release: AllocationRelease) -> None:
        """End a task or placeholder that the core wants to end."""
        self._ending.append(release)


def _order_of_start(task: Running) -> tuple[int, int]:
    # The number at the end of an identifier counts the placements of a scheduler.
    number = task.allocation.uuid.rpartition("#")[2]
    return task.started, int(number) if number.isdecimal() else 0


def nodes_of(partition: str, nodes: Any) -> Iterator[NodeEvent]:
    """Yield the events by which nodes of a core have become what they are."""
    node: Node
    for node in nodes:
        known = WorkloadNode(node.id, node.capacity, dict(node.attributes), spelled(partition))
        yield NodeEvent(0, NodeEventKind.ADD, known)
        if not node.schedulable:
            yield NodeEvent(0, NodeEventKind.DRAIN, known)
