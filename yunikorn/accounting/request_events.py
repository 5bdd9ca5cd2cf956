"""Events about single requests: why one waits, and what ends its wait.

Their messages are long, and are made only if a sink wants events of requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.event_types import EventType
from yunikorn.quantities import in_words

if TYPE_CHECKING:
    from yunikorn.accounting.event_recorder import EventRecorder
    from yunikorn.model.allocation import Allocation, PlacementHold
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.model.usage_tracker import UsageTracker


class RequestEvents:
    """Events about the requests of one partition."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events

    @property
    def wanted(self) -> bool:
        """True if any sink wants events of requests."""
        return self._events.wants_requests

    def over_quota(self, ask: Ask, queue: Queue) -> None:
        """Tell of a request for which a queue has no room."""
        if self.wanted:
            requested, available = in_words(ask.resource), in_words(queue.headroom or {})
            self._record(
                ask,
                "InsufficientQueueResources",
                f"Request '{ask.key}' does not fit in queue '{queue.path}' "
                f"(requested {requested}, available {available})",
            )

    def over_limit(self, ask: Ask, tracker: UsageTracker) -> None:
        """Tell of a request for which a limit has no room."""
        if self.wanted:
            requested, available = in_words(ask.resource), in_words(tracker.headroom)
            self._record(
                ask,
                f"Insufficient{tracker.kind.capitalize()}Quota",
                f"Request '{ask.key}' exceeds the available {tracker.kind} quota of {tracker.label} "
                f"(requested {requested}, available {available})",
            )

    def in_quota_again(self, ask: Ask) -> None:
        """Tell of a request for which its queues have room again."""
        if self.wanted:
            message = f"Request '{ask.key}' has become schedulable in queue '{ask.app.chain[0].path}'"
            self._record(ask, "QueueResourcesAvailable", message)

    def in_limit_again(self, ask: Ask) -> None:
        """Tell of a request for which the limits have room again."""
        if self.wanted:
            self._record(ask, "UserQuotaAvailable", f"Request '{ask.key}' fits in the available user quota")

    def unschedulable(self, ask: Ask, why: str) -> None:
        """Tell of a request that no node accepts."""
        self._record(ask, "Unschedulable", f"Unschedulable request '{ask.key}': {why}")

    def gang_unschedulable(self, request: Ask, message: str) -> None:
        """Tell of the request of a gang for which there is no room."""
        self._record(request, "GangUnschedulable", message)

    def not_preemptable(self, ask: Ask, node: Node) -> None:
        """Tell of a request that finds no victims on the node that it requires."""
        message = f"Unschedulable request '{ask.key}' with required node '{node.id}', "
        self._record(ask, "PreemptionFailed", f"{message}no preemption victim found", node)

    def preempted(self, victim: Allocation, message: str) -> None:
        """Tell of an allocation that the RM is asked to end for another request."""
        self._of_key(victim.key, victim.app, "Preempted", message, victim.node)

    def start_failed(self, ask: Ask, node: Node, message: str) -> None:
        """Tell of a request that waits again because the RM could not start its allocation."""
        self._record(ask, "SchedulingFailedOnRM", message, node)

    def placeholder_mismatch(self, placeholder: Allocation, ask: Ask, group: str) -> None:
        """Tell of a request that is larger than the placeholder that it would replace."""
        if self.wanted:
            message = (
                f"Task group '{group}' in application '{ask.app.id}': allocation resources "
                f"'{in_words(ask.resource)}' are not matching placeholder '{in_words(placeholder.resource)}' "
                f"allocation with ID '{placeholder.uuid}'"
            )
            self._of_key(placeholder.key, ask.app, "PlaceholderMismatch", message, placeholder.node)

    def permit(self, hold: PlacementHold, reason: str, what: str) -> None:
        """Tell what permit policies said about a placement, for each of its members."""
        if self.wanted:
            for one in hold.members:
                message = f"Placement of request '{one.key}' on node '{one.node.id}' is {what}"
                self._of_key(one.key, hold.app, reason, message, one.node)

    def _record(self, ask: Ask, reason: str, message: str, node: Node | None = None) -> None:
        self._of_key(ask.key, ask.app, reason, message, node)

    def _of_key(self, key: str, app: Application, reason: str, message: str, node: Node | None) -> None:
        self._events.record(
            EventType.REQUEST,
            key,
            app.id,
            message=message,
            reason=reason,
            app=app,
            node_id="" if node is None else node.id,
        )
