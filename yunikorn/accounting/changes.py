"""Changes of a partition: everything that happens to its objects is told here, once.

Code that changes an object calls the method that is named after the change. What follows the changes reads
them from here: the outbox has what the RM must be told, the event recorder what event sinks want, the
measurements count, and a state reader follows pending requests. A producer knows none of them
(docs/decisions/0182).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.accounting.event_recorder import EventRecorder
from yunikorn.accounting.outbox import AskRelease, Outbox, Refusal, Release, UnknownRelease, lists_of
from yunikorn.accounting.request_events import RequestEvents
from yunikorn.event_types import EventChange, EventDetail, EventType
from yunikorn.model.allocation import PreemptionMode, TerminationType
from yunikorn.model.change_readers import ChangeReaders
from yunikorn.model.usage_tracker import USER
from yunikorn.resources import NOTHING
from yunikorn.states import APPLICATION, REJECTED, StateLogEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn.accounting.state_reporter import StateReader
    from yunikorn.clock import Clock
    from yunikorn.config.queues_yaml import LimitConfig
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.core_meter import CoreMeter
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.resources import Resource

_STATE_DETAIL = {
    state: EventDetail.APP_REJECT if state == REJECTED else EventDetail[f"APP_{state.upper()}"]
    for state in APPLICATION.states
}
"""Detail of the event about a change to each state."""
_END_DETAIL = {
    TerminationType.UNKNOWN: EventDetail.ALLOC_NODEREMOVED,
    TerminationType.STOPPED_BY_RM: EventDetail.ALLOC_CANCEL,
    TerminationType.TIMEOUT: EventDetail.ALLOC_TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER: EventDetail.ALLOC_PREEMPT,
    TerminationType.PLACEHOLDER_REPLACED: EventDetail.ALLOC_REPLACED,
    TerminationType.SCHEDULING_FAILED_ON_RM: EventDetail.ALLOC_CANCEL,
}
"""Detail of the event about the end of an allocation."""


class Changes:
    """The changes of one partition, for all who follow them."""

    def __init__(self, clock: Clock, measurements: CoreMeter | None = None) -> None:
        self.outbox = Outbox()
        """Entries of the next response to the RM."""
        self.events = EventRecorder(clock)
        """Events for the event sinks."""
        self.requests = RequestEvents(self.events)
        """Events about single requests."""
        self.state_reader: StateReader | None = None
        """Reader of pending requests; None if the RM has not asked for scheduling states."""
        self.readers = ChangeReaders()
        """Readers that a change is told at once."""
        self._measurements = measurements
        self.counts = measurements is not None
        """True if changes are counted."""

    # -- messages to the RM ---------------------------------------------------------------------------

    def clear_outbox(self) -> None:
        """Count and forget the messages to the RM, which have been sent or are not worth keeping."""
        outbox = self.outbox
        if self._measurements is not None:
            self._measurements.count_response(outbox)
        for entries in filter(None, lists_of(outbox)):
            entries.clear()

    # -- asks ---------------------------------------------------------------------------------------

    def asks_added(self, app: Application, asks: Sequence[Ask]) -> None:
        """Tell of new asks with pending replicas."""
        if self.state_reader is not None:
            for ask in asks:
                self.state_reader.pending_added(ask)
        if self.events.wants_asks:
            self.events.asked(app, asks)

    def pending_again(self, ask: Ask) -> None:
        """Tell of an ask that has pending replicas again."""
        if self.state_reader is not None:
            self.state_reader.pending_added(ask)

    def pending_ended(self, ask: Ask) -> None:
        """Tell of an ask that has no pending replicas any more."""
        if self.state_reader is not None:
            self.state_reader.pending_removed(ask)

    def ask_ended(self, ask: Ask, termination: TerminationType, message: str) -> None:
        """Tell of the end of an ask."""
        if self.events.enabled:
            timed_out = termination == TerminationType.TIMEOUT
            self.events.record(
                EventType.APP,
                ask.app.id,
                ask.key,
                change=EventChange.REMOVE,
                detail=EventDetail.REQUEST_TIMEOUT if timed_out else EventDetail.REQUEST_CANCEL,
                message=message,
                resource=ask.resource,
                app=ask.app,
            )

    def ask_released(self, app_id: str, key: str, termination: TerminationType, message: str) -> None:
        """Tell the RM that an ask has ended, or that the ask it wanted to end is unknown."""
        self.outbox.ask_releases.append(AskRelease(app_id, key, termination, message))

    def ask_rejected(self, key: str, reason: str, app_id: str = "") -> None:
        """Tell the RM that an entry about an ask or an allocation was rejected."""
        self.outbox.rejected_asks.append(Refusal(key, reason, app_id))

    # -- allocations --------------------------------------------------------------------------------

    def allocated(self, allocation: Allocation, now: int) -> None:
        """Tell of a new allocation."""
        if self.events.wants_allocations:
            self.events.allocated(allocation, now)
        self.outbox.allocations.append(allocation)

    def recovered(self, allocation: Allocation) -> None:
        """Tell of an allocation that the RM reported."""
        if self._measurements is not None:
            self._measurements.count_recovery(allocation)
        if self.events.wants_allocations:
            self.events.allocated(allocation, self.events.now())

    def acknowledged(self, allocation: Allocation) -> None:
        """Tell the RM that an allocation it placed itself was taken."""
        self.outbox.allocations.append(allocation)

    def ended(self, allocation: Allocation, termination: TerminationType, message: str) -> None:
        """Tell of the end of an allocation; `released` tells the RM."""
        if self._measurements is not None:
            self._measurements.count_release(allocation)
        if self.events.wants_releases:
            self.events.released(allocation, _END_DETAIL[termination], message)

    def released(
        self,
        allocation: Allocation,
        termination: TerminationType,
        message: str,
        mode: PreemptionMode = PreemptionMode.END,
    ) -> None:
        """Tell the RM that an allocation has ended, or that it should end the allocation, and how."""
        self.outbox.releases.append(Release(allocation, termination, message, mode))

    def release_unknown(self, app_id: str, uuid: str, key: str, message: str) -> None:
        """Tell the RM that the allocation it wanted to end is unknown, or ended before it was booked."""
        self.outbox.unknown_releases.append(UnknownRelease(app_id, uuid, key, message))

    # -- applications -------------------------------------------------------------------------------

    def application_submitted(self, app: Application) -> None:
        """Tell of an application that has not been accepted yet."""
        self.events.record(EventType.APP, app.id, change=EventChange.ADD, detail=EventDetail.APP_NEW)

    def application_added(self, app: Application, queue: Queue) -> None:
        """Tell of an application that was placed in a queue."""
        self.outbox.accepted_applications.append(app.id)
        self._queue_member(app, queue, EventChange.ADD)

    def application_rejected(self, app_id: str, reason: str) -> None:
        """Tell the RM that an application was rejected, or that its removal was."""
        self.outbox.rejected_applications.append(Refusal(app_id, reason))

    def application_left(self, app: Application, queue: Queue, message: str) -> None:
        """Tell of an application that has left its queue."""
        self.events.record(EventType.APP, app.id, change=EventChange.REMOVE, message=message)
        self._queue_member(app, queue, EventChange.REMOVE)

    def _queue_member(self, app: Application, queue: Queue, change: EventChange) -> None:
        self.events.record(EventType.QUEUE, queue.path, app.id, change=change, detail=EventDetail.QUEUE_APP)

    def state_entered(self, app: Application, entry: StateLogEntry, path: str | None) -> None:
        """Tell of a new state of an application.

        `path` names its queue; None leaves the application out of the counts.
        """
        if self._measurements is not None and path is not None:
            self._measurements.count_state(app, path)
        if entry.state != REJECTED:
            self.outbox.updated_applications.append((app.id, entry))
        if self.events.enabled:
            self.events.record(
                EventType.APP,
                app.id,
                change=EventChange.SET,
                detail=_STATE_DETAIL[entry.state],
                message=entry.reason,
                app=app,
            )

    def remarked(self, app: Application, reason: str, message: str) -> None:
        """Tell of something about an application that changes no state, and tell the RM, too."""
        entered = app.state_log[-1].time if app.state_log else self.events.now()
        self.outbox.updated_applications.append((app.id, StateLogEntry(app.state, entered, message)))
        self.noted(app, reason, message)

    def noted(self, app: Application, reason: str, message: str) -> None:
        """Tell of something about an application that changes no state."""
        self.events.record(EventType.APP, app.id, message=message, reason=reason, app=app)

    def start_permitted(self, app: Application, *, by_limit: bool) -> None:
        """Tell of an application that may start again, by a limit of its user or by a queue."""
        detail = EventDetail.APP_RUNNABLE_QUOTA if by_limit else EventDetail.APP_RUNNABLE_QUEUE
        self.events.record(EventType.APP, app.id, detail=detail, app=app)

    def start_prevented(self, app: Application, *, by_limit: bool) -> None:
        """Tell of an application that a limit of its user, or a queue, does not let start."""
        detail = EventDetail.APP_CANNOTRUN_QUOTA if by_limit else EventDetail.APP_CANNOTRUN_QUEUE
        self.events.record(EventType.APP, app.id, detail=detail, message=app.max_apps_reason, app=app)

    # -- nodes --------------------------------------------------------------------------------------

    def node_added(self, node: Node) -> None:
        """Tell of a new node."""
        self.outbox.accepted_nodes.append(node.id)
        self.events.record(
            EventType.NODE,
            node.id,
            change=EventChange.ADD,
            message="Node added to the scheduler",
            resource=node.capacity,
        )
        self.schedulable_changed(node)

    def node_rejected(self, node_id: str, reason: str) -> None:
        """Tell the RM that a node was rejected."""
        self.outbox.rejected_nodes.append(Refusal(node_id, reason))

    def node_update_failed(self, node_id: str, reason: str) -> None:
        """Tell the RM that a change of a node was rejected."""
        self.outbox.failed_node_updates.append(Refusal(node_id, reason))

    def node_removed(self, node: Node, *, counted: bool) -> None:
        """Tell of a node that was removed, after the end of its allocations."""
        if self._measurements is not None and counted:
            self._measurements.count_removed_node()
        self.events.record(
            EventType.NODE,
            node.id,
            change=EventChange.REMOVE,
            detail=EventDetail.NODE_DECOMISSION,
            message="Node removed from the scheduler",
        )

    def schedulable_changed(self, node: Node) -> None:
        """Tell whether a node may get allocations."""
        self._set(
            EventType.NODE,
            node.id,
            EventDetail.NODE_SCHEDULABLE,
            f"schedulable: {str(node.schedulable).lower()}",
        )

    def capacity_changed(self, node: Node) -> None:
        """Tell of a new capacity of a node."""
        self._set(EventType.NODE, node.id, EventDetail.NODE_CAPACITY, resource=node.capacity)

    def occupied_changed(self, node: Node) -> None:
        """Tell of other resources in use on a node that the core does not schedule."""
        self._set(EventType.NODE, node.id, EventDetail.NODE_OCCUPIED, resource=node.occupied)

    def node_operated(self, node_id: str, message: str) -> None:
        """Tell what an operator has done to a node."""
        self.events.record(EventType.NODE, node_id, change=EventChange.SET, message=message)

    def node_noted(self, node: Node, key: str, reason: str, message: str) -> None:
        """Tell of something about an allocation of a node."""
        self.events.record(EventType.NODE, node.id, key, message=message, reason=reason)

    def reserved(self, ask: Ask, node: Node) -> None:
        """Tell of a new reservation; one for members of a gang is not made for a request."""
        if self.state_reader is not None and ask.pending:
            self.state_reader.reserved(ask, node)
        self._reservation(ask, node, EventChange.ADD)

    def unreserved(self, ask: Ask, node: Node) -> None:
        """Tell of a reservation that has ended."""
        for ended in self.readers.reservation_ended:
            ended(ask)
        self._reservation(ask, node, EventChange.REMOVE)

    def reservation_lost(self, ask: Ask) -> None:
        """Tell of a request that still waits after its reservation has ended."""
        if self.state_reader is not None:
            self.state_reader.reservation_lost(ask)

    def _reservation(self, ask: Ask, node: Node, change: EventChange) -> None:
        self.events.record(
            EventType.NODE,
            node.id,
            ask.key,
            change=change,
            detail=EventDetail.NODE_RESERVATION,
            app=ask.app,
            node_id=node.id,
        )

    # -- queues -------------------------------------------------------------------------------------

    def queue_added(self, queue: Queue) -> None:
        """Tell of a new queue."""
        detail = EventDetail.DETAILS_NONE if queue.managed else EventDetail.QUEUE_DYNAMIC
        self.events.record(EventType.QUEUE, queue.path, change=EventChange.ADD, detail=detail)

    def queue_removed(self, queue: Queue) -> None:
        """Tell of a queue that was removed."""
        for removed in self.readers.queue_removed:
            removed(queue)
        detail = EventDetail.DETAILS_NONE if queue.managed else EventDetail.QUEUE_DYNAMIC
        self.events.record(EventType.QUEUE, queue.path, change=EventChange.REMOVE, detail=detail)

    def queue_type_changed(self, queue: Queue, message: str) -> None:
        """Tell of a queue that is a leaf or a parent now, or that the configuration names now."""
        self._set(EventType.QUEUE, queue.path, EventDetail.QUEUE_TYPE, message)

    def guarantee_changed(self, queue: Queue) -> None:
        """Tell of another guarantee of a queue."""
        self._set(EventType.QUEUE, queue.path, EventDetail.QUEUE_GUARANTEED, resource=queue.guaranteed)

    def quota_changed(self, queue: Queue, message: str = "") -> None:
        """Tell of another quota in force of a queue."""
        self._set(EventType.QUEUE, queue.path, EventDetail.QUEUE_MAX, message, queue.max or NOTHING)

    def quota_enforced(self, queue: Queue, message: str) -> None:
        """Tell what preemption has done to bring a queue below its quota."""
        self._set(EventType.QUEUE, queue.path, EventDetail.QUEUE_QUOTA_PREEMPTION, message)

    def queue_switched(self, queue: Queue, message: str) -> None:
        """Tell of a stop or start of a queue by a call."""
        self._set(EventType.QUEUE, queue.path, EventDetail.DETAILS_NONE, message)

    def member_left(self, queue: Queue) -> None:
        """Tell of an application or a queue that has left its parent queue."""
        if queue.is_cluttered:
            for forget in self.readers.members_left:
                forget(queue)

    def _set(
        self,
        kind: EventType,
        object_id: str,
        detail: EventDetail,
        message: str = "",
        resource: Resource | None = None,
    ) -> None:
        """Record the event of a new value of a node or a queue."""
        self.events.record(
            kind, object_id, change=EventChange.SET, detail=detail, message=message, resource=resource
        )

    # -- users and groups ---------------------------------------------------------------------------

    def group_changed(self, app: Application, group: str, change: EventChange) -> None:
        """Tell of a group whose limits apply to an application, or do so no more."""
        if group:
            self.events.record(
                EventType.USERGROUP, group, app.id, change=change, detail=EventDetail.UG_APP_LINK
            )

    def limit_changed(self, kind: str, name: str, path: str, limit: LimitConfig | None) -> None:
        """Tell of the limit of a user or group (`kind`) in a queue; None if it was removed."""
        self.events.record(
            EventType.USERGROUP,
            name,
            path,
            change=EventChange.REMOVE if limit is None else EventChange.SET,
            detail=EventDetail.UG_USER_LIMIT if kind == USER else EventDetail.UG_GROUP_LIMIT,
            resource=None if limit is None else limit.max_resources,
        )
