"""A partition: a scheduling domain with its own queues, nodes and applications."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from yunikorn.accounting.allocation_accounting import AllocationAccounting
from yunikorn.accounting.changes import Changes
from yunikorn.accounting.foreign_allocations import ForeignAllocations
from yunikorn.accounting.held_placements import HeldPlacements
from yunikorn.accounting.key_indexes import key_used_elsewhere
from yunikorn.accounting.outbox import UnknownReleases, unknown
from yunikorn.accounting.partition_gangs import PartitionGangs
from yunikorn.accounting.queue_tree import QueueTree
from yunikorn.accounting.user_group_limits import UserGroupLimits
from yunikorn.config.durations import describe_duration
from yunikorn.errors import StateError
from yunikorn.model.allocation import TerminationType
from yunikorn.model.application import COUNTED, ApplicationStates
from yunikorn.model.ask_class import AskClasses, PendingClasses
from yunikorn.model.node import Node
from yunikorn.model.queue import ClusterSize, Queue
from yunikorn.resources import NOTHING, Resource, Tally, grow, saturate, shrink
from yunikorn.states import (
    ACTIVE,
    COMPLETED,
    COMPLETING,
    DRAINING,
    EXPIRED,
    FAILING,
    FINAL_STATES,
    NODE,
    PARTITION,
    STARTING,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.config.queues_yaml import QueueConfig
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application, ExecutionTimeout
    from yunikorn.model.ask import Ask
    from yunikorn.model.context import CoreContext
    from yunikorn.states import NodeEvent


class Partition:
    """The objects of a partition, and operations on them."""

    def __init__(self, name: str, config_name: str, root: QueueConfig, core_context: CoreContext) -> None:
        self.name = name
        """Name in the core, unique over all RMs."""
        self.config_name = config_name
        """Name in the configuration of the RM."""
        self.clock = clock = core_context.clock
        self.timers = core_context.timers
        self.timeouts = core_context.timeouts
        self.state = PARTITION.initial
        self.state_since = clock.now()
        """Time of the latest change of the state (ns)."""
        self.measurements = core_context.measurements
        self.changes = Changes(clock, self.measurements)
        self.states = ApplicationStates(self._state_entered)
        self.cluster = ClusterSize(clock.now)
        self._capacity: Tally = {}
        """Exact sum of the capacities of all nodes."""
        readers = self.changes.readers
        self.ask_classes = AskClasses(readers.ask_class_dropped, readers.ask_bits_dropped)
        self.pending_classes = PendingClasses(self.ask_classes, readers.pending_bits_dropped)
        self.usage = UserGroupLimits(self.pending_classes, self.changes)
        self.applications: dict[str, Application] = {}
        """Applications that have not ended, by id."""
        self.accounting = AllocationAccounting(
            self.applications,
            self.pending_classes,
            self.usage,
            self.changes,
            self.states,
            core_context.serial,
        )
        self.gangs = PartitionGangs(self.accounting, clock, self.timers, self._start_timeout)
        self.accounting.gangs = self.accounting.pending_accounting.gangs = self.gangs
        self.held_placements = HeldPlacements(self.accounting, self.gangs.formation, clock, self.watch)
        self.foreign = ForeignAllocations(self.accounting)
        self.unknown_releases = UnknownReleases()
        self.queues = QueueTree(root, self.cluster, self.changes, self._schedule_cleanup)
        self.usage.rebuild((), self.queues)
        self.nodes: dict[str, Node] = {}
        self.drained_by_operator: dict[str, None] = {}
        """Ids of nodes that an operator drains, also of nodes that are not registered now."""
        self.rejected_nodes = 0
        """Number of nodes whose registration was rejected so far."""
        self.ended: dict[str, Application] = {}
        """Ended applications by id, until their retention is over; only the latest for each id."""
        self.arrivals = 0
        """Number of applications and asks that ever arrived; used as their arrival numbers."""
        self.ask_changes = 0
        """Number of updates and releases of asks by the RM so far."""

    @property
    def label(self) -> str:
        """Name of the partition in messages."""
        return f"partition {self.name}"

    def closed_to(self, what: str) -> str:
        """Return why the partition accepts no new objects of this kind now; empty if it does."""
        if self.state == ACTIVE:
            return ""
        return f"partition {self.config_name} is {self.state.lower()}: it accepts no new {what}"

    def on_state_change(self, before: str, reason: str) -> None:
        """Count a stop or start; called by the state machine, and makes the cycle check the states again."""
        self.state_since = self.clock.now()
        self.cluster.stop_starts += 1

    def next_arrival(self) -> int:
        """Return the next arrival number."""
        self.arrivals += 1
        return self.arrivals

    # -- applications -------------------------------------------------------------------------------

    def add_application(self, app: Application, queue: Queue) -> None:
        """Add an application to the queue chosen by placement."""
        self.applications[app.id] = app
        app.enter(queue)
        queue.applications[app.id] = app
        self.usage.join(app)
        app.mark_dirty()
        self.changes.application_added(app, queue)

    def reject_application(self, app: Application, reason: str, *, answered: bool = True) -> None:
        """Reject an application; `answered` sends a rejection to the RM."""
        app.reason = reason
        self.states.fire(app, "reject", reason)
        if answered:
            self.changes.application_rejected(app.id, reason)

    def _state_entered(self, app: Application, reason: str) -> None:
        """Update log, timers and counts after a state change, and report the new state to the RM."""
        if app.timer is not None:
            app.timer.cancel()
            app.timer = None
        entry = app.log_state(self.clock.now(), reason)
        self.accounting.recount(app)
        if app.execution_timeout is not None:
            self._watch(app, app.execution_timeout)
        if not app.is_dirty:
            app.mark_dirty()
        path = None
        if self.changes.counts and self.state != DRAINING:
            queue = app.queue or self.queue(app.queue_name)
            path = "" if queue is None else queue.path
        self.changes.state_entered(app, entry, path)
        if app.state == STARTING:
            advance = partial(self.states.advance, app, "starting timed out")
            app.timer = self.timers.after(self.timeouts.starting, advance)
        elif app.state == COMPLETING:
            app.timer = self.timers.after(self.timeouts.completing, lambda: self._complete(app))
        elif app.state in FINAL_STATES and app.state != EXPIRED:
            app.timer = self.timers.after(self.timeouts.retention, lambda: self._forget(app))
            self._retire(app)

    def _watch(self, app: Application, limit: ExecutionTimeout) -> None:
        """Time an application while it runs; one that ran before keeps its deadline."""
        if app.state not in COUNTED:
            limit.stop()
        elif limit.timer is None:
            if limit.deadline is None:
                limit.deadline = self.clock.now() + limit.amount
            limit.timer = self.timers.at(limit.deadline, partial(self._overrun, app, limit))

    def _overrun(self, app: Application, limit: ExecutionTimeout) -> None:
        time = describe_duration(limit.amount)
        reason = f"application {app.id} has reached its execution timeout of {time}"
        app.reason = reason
        self.states.fire(app, "fail", reason)
        self._end_asks(app, TerminationType.TIMEOUT, reason)
        for allocation in list(app.allocations.values()):
            if allocation.releasing is None:
                self.request_release(allocation, TerminationType.TIMEOUT, reason)
        self.states.conclude(app)

    def _complete(self, app: Application) -> None:
        if app.gang is not None and app.gang.placeholders:
            self.gangs.end_all(app, "releasing placeholders on app complete")
        else:
            self.states.fire(app, "complete", "completing timed out")

    def _retire(self, app: Application) -> None:
        app.finished = self.clock.now()
        self._detach(app)
        self.ended[app.id] = app

    def _detach(self, app: Application, message: str = "") -> None:
        if self.applications.get(app.id) is app:
            del self.applications[app.id]
        queue = app.queue
        if queue is None:
            return
        for ask in list(app.asks.values()):
            self.accounting.pending_accounting.drop(ask)
        app.reprioritise()
        self.accounting.stop_counting(app)
        self.gangs.close(app)
        if app.execution_timeout is not None:
            app.execution_timeout.stop()
        if app.backoff_timer is not None:
            app.backoff_timer.cancel()
            app.backoff_timer = None
        if app.held is not None:
            app.held.withdraw()
            app.held = None
        del queue.applications[app.id]
        app.mark_dirty()
        app.queue_name = queue.path
        self.changes.application_left(app, queue, message)
        self.usage.part(app)
        app.leave()
        self.changes.member_left(queue)
        self.queues.check_empty(queue)

    def _forget(self, app: Application) -> None:
        if app.state == COMPLETED:
            self.states.fire(app, "expire", "the retention period has ended")
        if self.ended.get(app.id) is app:
            del self.ended[app.id]

    def remove_application(self, app: Application, message: str) -> None:
        """Remove an application on behalf of the RM, with all its allocations and asks."""
        app.leaving = True
        self.held_placements.take_back_of(app)
        for allocation in list(app.allocations.values()):
            self.release(allocation, TerminationType.STOPPED_BY_RM, message)
        if app.timer is not None:
            app.timer.cancel()
            app.timer = None
        self._detach(app, message)

    def fail_application(self, app: Application, reason: str) -> None:
        """Fail an application and end all its asks and allocations, without waiting for the RM.

        An application that is Failing already keeps its reason; releases that the RM has not confirmed are
        completed now.
        """
        if app.state != FAILING:
            app.reason = reason
            self.states.fire(app, "fail", reason)
        self._end_asks(app, TerminationType.STOPPED_BY_RM, reason)
        for allocation in list(app.allocations.values()):
            self.release(allocation, TerminationType.STOPPED_BY_RM, reason)
        self.states.conclude(app)

    def _end_asks(self, app: Application, termination: TerminationType, reason: str) -> None:
        for ask in list(app.asks.values()):
            # If there are no allocations, dropping the last pending ask ends the application, and thereby the
            # other asks.
            if app.asks.get(ask.key) is ask:
                self.end_ask(ask, termination, reason)

    def end_ask(self, ask: Ask, termination: TerminationType, message: str) -> None:
        """End an ask, and report its release to the RM if allocations of the ask were outstanding."""
        if ask.app.unannounced:
            self.held_placements.take_back_of(ask.app, ask.key)
        if ask.pending or self.gangs.promised(ask):
            self.changes.ask_released(ask.app.id, ask.key, termination, message)
        self.accounting.pending_accounting.drop(ask, termination, message)

    # -- allocations --------------------------------------------------------------------------------

    def place_sized(self, ask: Ask, node: Node, uuid: str, resource: Resource) -> None:
        """Carry out a placement by the RM, with the RM's size and, optionally, `uuid` of the allocation."""
        self._start_timeout(self.accounting.allocate_sized(ask, node, self.clock.now(), uuid, resource))

    def _start_timeout(self, allocation: Allocation) -> None:
        """Start the execution timeout of a new allocation if there is one."""
        if allocation.spec.execution_timeout:
            self.watch(allocation)

    def watch(self, allocation: Allocation) -> None:
        """Start the execution timeout of an allocation, unless it has started or is not announced yet."""
        if allocation.hold is not None or allocation.timer is not None:
            return
        limit = allocation.spec.execution_timeout
        allocation.ensure_extras().timer = self.timers.after(limit, lambda: self._expire(allocation, limit))

    def _expire(self, allocation: Allocation, limit: int) -> None:
        message = f"{allocation.label} has reached its execution timeout of {describe_duration(limit)}"
        if allocation.releasing is None:
            self.request_release(allocation, TerminationType.TIMEOUT, message)

    def request_release(self, allocation: Allocation, termination: TerminationType, message: str) -> None:
        """Request the release of an allocation; its resources count as used until the RM confirms."""
        allocation.mark_releasing(termination)
        self.changes.released(allocation, termination, message)

    def release(
        self,
        allocation: Allocation,
        termination: TerminationType,
        message: str,
        cause: TerminationType | None = None,
    ) -> None:
        """End an allocation and report it to the RM; `cause` replaces `termination` in events."""
        self.accounting.release(allocation, termination if cause is None else cause, message)
        self.changes.released(allocation, termination, message)

    def answer_unknown_release(self, app_id: str, uuid: str, key: str, *, confirmed: bool) -> None:
        """Answer a release, or a confirmation, of an allocation that is unknown or has already ended.

        The answer has the type STOPPED_BY_RM, which no RM confirms.
        """
        self.unknown_releases.count(confirmed=confirmed)
        other = self.accounting.allocations.get(uuid)
        if other is not None and other.hold is None:
            # If the answer named this uuid, an RM that identifies allocations by uuid would drop a running
            # allocation.
            reason = f"allocation '{uuid}' belongs to application {other.app.id}: nothing was released"
            self.changes.ask_rejected(other.key, reason, app_id)
            return
        if key and not uuid and not app_id and (apps := self.accounting.apps_with_key(key)):
            # Likewise for an RM that identifies allocations by key. Foreign allocations are identified by key
            # alone.
            self.changes.ask_rejected(key, key_used_elsewhere(key, apps))
            return
        self.changes.release_unknown(app_id, uuid, key, unknown(app_id, uuid, key))

    def answer_unknown_ask_release(self, app_id: str, key: str, *, confirmed: bool) -> None:
        """Answer the release of an unknown or ended ask; see `answer_unknown_release`."""
        self.unknown_releases.count(confirmed=confirmed)
        self.changes.ask_released(app_id, key, TerminationType.STOPPED_BY_RM, unknown(app_id, "", key))

    # -- nodes --------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """Add a node."""
        self.nodes[node.id] = node
        self.accounting.node_reservations.capacity_changed(node)
        self._resize(gained=node.capacity)
        self.accounting.node_changed(node, gained=True)
        self.changes.node_added(node)

    def _resize(self, gained: Resource = NOTHING, lost: Resource = NOTHING) -> None:
        # The sum is exact: a sum limited to 64 bits would be wrong after the removal of a node.
        grow(self._capacity, gained)
        shrink(self._capacity, lost)
        self.cluster.set(Resource({name: saturate(amount) for name, amount in self._capacity.items()}))
        self.queues.root.room_grew()

    def update_node(
        self,
        node: Node,
        capacity: Resource | None,
        occupied: Resource | None,
        attributes: Mapping[str, str] | None,
    ) -> None:
        """Update a node; None leaves a value unchanged."""
        before = node.capacity
        if capacity is not None or occupied is not None:
            node.resize(capacity, occupied)
        if attributes is not None:
            node.attributes = MappingProxyType(dict(attributes))
            node.mark_changed()
        self.accounting.node_reservations.capacity_changed(node)
        if node.capacity != before:
            self._resize(gained=node.capacity, lost=before)
            self.changes.capacity_changed(node)
        if occupied is not None:
            self.changes.occupied_changed(node)
        self.accounting.node_changed(node, gained=True)

    def move_node(self, node: Node, event: NodeEvent) -> None:
        """Apply the RM's event `drain` or `schedule`; raise `StateError` if that is not possible.

        A node that an operator drains as well stays drained.
        """
        if event == "schedule" and node.drained_by_operator:
            if not node.drained_by_rm:
                raise StateError(f"{node.label} is drained by an operator, not by its RM")
        else:
            self._change_node(node, event)
        node.drained_by_rm = event == "drain"

    def drain_node(self, node_id: str) -> bool:
        """Drain a node for the operator, besides the RM; return False if the operator drains it already."""
        if node_id in self.drained_by_operator:
            return False
        self.drained_by_operator[node_id] = None
        node = self.nodes.get(node_id)
        if node is not None:
            node.drained_by_operator = True
            self._change_node(node, "drain")
        self.changes.node_operated(node_id, "node drained by an operator")
        return True

    def undrain_node(self, node_id: str) -> bool:
        """Undo `drain_node`; return False if the operator does not drain the node."""
        if node_id not in self.drained_by_operator:
            return False
        del self.drained_by_operator[node_id]
        node = self.nodes.get(node_id)
        if node is not None:
            node.drained_by_operator = False
            if not node.drained_by_rm:
                self._change_node(node, "schedule")
        self.changes.node_operated(node_id, "node no longer drained by an operator")
        return True

    def _change_node(self, node: Node, event: NodeEvent) -> None:
        before = node.state
        NODE.fire(node, event)
        if node.state != before:
            node.mark_changed()
            self.accounting.node_reservations.capacity_changed(node)
            if not node.schedulable:
                for ask in [ask for ask in node.reservations if not ask.ask_class.required]:
                    self.accounting.node_reservations.unreserve(ask)
                self.held_placements.take_back_on(node, required=False)
            self.accounting.node_changed(node, gained=node.schedulable)
            self.changes.schedulable_changed(node)

    def remove_node(self, node: Node) -> None:
        """Decommission a node: end its allocations and report the releases to the RM, as in YuniKorn 1.9."""
        NODE.fire(node, "decommission")
        del self.nodes[node.id]
        self.accounting.node_reservations.capacity_version += 1
        for ask in list(node.reservations):
            self.accounting.node_reservations.unreserve(ask)
        self.held_placements.take_back_on(node)
        for allocation in list(node.allocations.values()):
            if allocation.replaces is not None:
                self.gangs.undo(allocation)
                continue
            gone = f"Node {node.id} Removed"
            self.release(allocation, TerminationType.STOPPED_BY_RM, gone, TerminationType.UNKNOWN)
        self.foreign.forget(node)
        # The capacity shrinks after the allocations end, so that no queue temporarily exceeds the cluster
        # size.
        self._resize(lost=node.capacity)
        self.accounting.node_changed(node, gained=False)
        self.changes.node_removed(node, counted=self.state != DRAINING)

    # -- queues -------------------------------------------------------------------------------------

    def _schedule_cleanup(self, queue: Queue) -> None:
        self.timers.after(self.timeouts.cleanup, lambda: self.queues.remove(queue))

    def queue(self, path: str) -> Queue | None:
        """Return the queue with this path, ignoring case."""
        return self.queues.queue(path)

    def reconsider(self) -> None:
        """Make all requests schedulable again after policies or quotas changed."""
        self.ask_classes.forget_verdicts()
        self.pending_classes.reconsider()
        self.cluster.version += 1
        for queue in self.queues:
            queue.reconsider()
        for app in self.applications.values():
            app.activate(app.requests.bits)

    @property
    def used(self) -> Mapping[str, int]:
        """Allocated resources of the whole partition."""
        return self.queues.root.allocated or NOTHING
