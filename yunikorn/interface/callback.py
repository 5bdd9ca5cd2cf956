"""The callback: the interface through which a resource manager receives responses and answers queries.

Only `recv_update_response` is required. Further methods are used if the RM's object implements them, and a
missing method costs nothing. A method counts as implemented if the object has it, it is not None, and it is
not inherited from `ResourceManagerCallback`. A class may therefore derive from that class or from nothing,
and an object may disable a method by setting it to None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from yunikorn.errors import CONTAINED, CallbackError
from yunikorn.interface.messages import (
    EventRecord,
    NodePredicatesArgs,
    PredicatesArgs,
    ReSyncSchedulerCacheArgs,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateContainerSchedulingStateRequest,
    UpdateResponse,
)

if TYPE_CHECKING:
    from yunikorn.scheduling.plugin_failures import PluginFailures

Answer = TypeVar("Answer")

OPTIONAL = (
    "predicates",
    "node_predicates",
    "update_container_scheduling_state",
    "resync_scheduler_cache",
    "send_events",
    "update_configuration",
)
"""Optional methods of a callback."""


class Callback(Protocol):
    """The part of the callback that every resource manager implements."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Apply a response of the scheduler."""
        ...


class ResourceManagerCallback:
    """Base class with all methods of a callback; override the ones that the resource manager implements.

    Every method is called in the core's thread, while it decides, and should return soon. An error of a
    method is contained and reported; it stops neither the core nor another RM.
    """

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Apply a response of the scheduler; called after each update and each scheduling round."""
        raise NotImplementedError(f"{type(self).__name__} does not implement recv_update_response(response)")

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Return None if the node may run the ask, else the reason why not.

        Called only for nodes with room. An error counts as a refusal of this node.
        """
        raise NotImplementedError

    def node_predicates(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Return the nodes that may not run the ask, each with the reason; all others may.

        Serves remote RMs: one round trip answers for many nodes. Called instead of `predicates` where both
        are implemented; the answers have to be the same as one by one. An error counts as a refusal of all
        nodes.
        """
        raise NotImplementedError

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """Apply a new scheduling state of a pending ask, such as the hint for an autoscaler.

        See `docs/decisions/0037`.
        """
        raise NotImplementedError

    def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
        """Forget and assume these allocations in the RM's cache (`docs/decisions/0037`)."""
        raise NotImplementedError

    def send_events(self, events: Sequence[EventRecord]) -> None:
        """Take these events, oldest first; an error switches events off until the next configuration."""
        raise NotImplementedError

    def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Save a configuration that is about to be used; without success in the response it is not used."""
        raise NotImplementedError


def implements(callback: object, method: str) -> bool:
    """Return True if a callback implements an optional method, one of `OPTIONAL`, itself."""
    found = getattr(callback, method, None)
    inherited = getattr(ResourceManagerCallback, method)
    return callable(found) and getattr(found, "__func__", found) is not inherited


class CallbackAdapter:
    """Access to a callback: its methods are determined once, and its failures name the resource manager.

    Notifications report an error to the `PluginFailures` and return whether they succeeded. Queries raise
    `CallbackError`, since the caller has to decide how to go on without an answer.
    """

    def __init__(self, rm_id: str, callback: Callback, failures: PluginFailures) -> None:
        self.callback = callback
        self.whose = f"resource manager {rm_id}"
        self.methods = frozenset(method for method in OPTIONAL if implements(callback, method))
        """The methods of `OPTIONAL` that the callback implements."""
        self._failures = failures
        self._optional: Any = callback
        """The callback again, typed for calls of optional methods."""
        self.answers_at_once = "node_predicates" in self.methods
        """True if queries are for many nodes at once, instead of for one."""
        self.answers = self.answers_at_once or "predicates" in self.methods
        """True if the callback implements predicates of either kind."""
        self._predicates: Any = getattr(callback, "predicates", None)

    @property
    def hears_states(self) -> bool:
        """True if the callback receives scheduling states of asks."""
        return "update_container_scheduling_state" in self.methods

    # -- telling ------------------------------------------------------------------------------------

    def deliver(self, response: UpdateResponse) -> bool:
        """Deliver a response; return False if it was lost."""
        return self._tell("handling a response", self.callback.recv_update_response, response)

    def tell_state(self, request: UpdateContainerSchedulingStateRequest) -> bool:
        """Send the scheduling state of an ask."""
        method = self._optional.update_container_scheduling_state
        return self._tell("receiving the scheduling state of a request", method, request)

    def sync_cache(self, args: ReSyncSchedulerCacheArgs) -> bool:
        """Send the allocations that the RM's cache must assume and forget."""
        return self._tell("updating its cache", self._optional.resync_scheduler_cache, args)

    def _tell(self, operation: str, call: Callable[[Any], object], message: object) -> bool:
        try:
            call(message)
        except CONTAINED as error:
            self._failures.report(self.whose, operation, CallbackError(self.whose, operation, error))
            return False
        return True

    # -- asking -------------------------------------------------------------------------------------

    def refusal(self, args: PredicatesArgs) -> str | None:
        """Return the reason why a node may not run an ask, or None if it may; raise `CallbackError`."""
        operation = "answering predicates"
        try:
            # Hot path, called for every node and ask: no helper function in between.
            reason: str | None = self._predicates(args)
        except CONTAINED as error:
            raise CallbackError(self.whose, operation, error) from error
        if reason is not None and not isinstance(reason, str):
            raise _useless(operation, self.whose, f"{reason!r} instead of None or a text")
        return reason

    def refusals(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Return the nodes that may not run an ask, with the reasons; raise `CallbackError`."""
        operation = "answering predicates for several nodes"
        answer: Mapping[str, str] = self._ask(operation, self._optional.node_predicates, args)
        if not isinstance(answer, Mapping):
            raise _useless(operation, self.whose, f"{answer!r} instead of a mapping of node ids to reasons")
        for node_id, reason in answer.items():
            if not isinstance(reason, str):
                raise _useless(operation, self.whose, f"{reason!r} for node {node_id!r} instead of a text")
        return answer

    def send_events(self, events: Sequence[EventRecord]) -> None:
        """Send events; raise `CallbackError`."""
        self._ask("receiving events", self._optional.send_events, events)

    def save_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Let the RM save a configuration; raise `CallbackError`."""
        operation = "saving a configuration"
        response = self._ask(operation, self._optional.update_configuration, request)
        if not isinstance(response, UpdateConfigurationResponse):
            raise _useless(operation, self.whose, f"{response!r} instead of an UpdateConfigurationResponse")
        return response

    def _ask(self, operation: str, call: Callable[[Any], Answer], question: object) -> Answer:
        try:
            return call(question)
        except CONTAINED as error:
            raise CallbackError(self.whose, operation, error) from error


def _useless(operation: str, whose: str, answer: str) -> CallbackError:
    return CallbackError(whose, operation, f"it returned {answer}")
