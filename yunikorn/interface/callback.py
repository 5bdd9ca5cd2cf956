"""The callback: one interface with which a resource manager hears from the core (seed: scheduler interface).

Only `recv_update_response` is required. Whatever else the RM's object implements is used, and what it
does not implement costs nothing. A method counts as implemented if the object has it, it is not None, and
it is not the one inherited from `ResourceManagerCallback`; so a class may derive from that or from nothing,
and may switch a method off for one object by setting it to None.
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
"""The methods of a callback that need not be there."""


class Callback(Protocol):
    """What every resource manager implements."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Take in what the scheduler has to say."""
        ...


class ResourceManagerCallback:
    """All that a resource manager may implement; derive from it and override what you want to have.

    Every method is called in the core's thread, while it decides: return soon. What a method raises is
    contained and reported; it stops neither the core nor another RM.
    """

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Take in what the scheduler has to say: after each update and each round of decisions."""
        raise NotImplementedError(f"{type(self).__name__} does not implement recv_update_response(response)")

    def predicates(self, args: PredicatesArgs) -> str | None:
        """None if the node may take the request, else the reason why not.

        Asked for nodes with room only. Raising counts as a refusal of this node.
        """
        raise NotImplementedError

    def node_predicates(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Which of these nodes may not take the request, each with the reason; the others may.

        For an RM that is far away: many nodes for one round trip. Asked instead of `predicates` where
        both are there; the answers have to be the same as one by one. Raising refuses all of them.
        """
        raise NotImplementedError

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """A waiting request fares otherwise than before; the hint for an autoscaler (decision 37)."""
        raise NotImplementedError

    def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
        """Assume these allocations in your cache, and forget those (decision 37)."""
        raise NotImplementedError

    def send_events(self, events: Sequence[EventRecord]) -> None:
        """Take these events, oldest first; raising switches events off until the next configuration."""
        raise NotImplementedError

    def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Save this configuration, which is about to be used; without success it is not used."""
        raise NotImplementedError


def implements(callback: object, method: str) -> bool:
    """Whether a callback has an optional method, one of `OPTIONAL`, of its own."""
    found = getattr(callback, method, None)
    inherited = getattr(ResourceManagerCallback, method)
    return callable(found) and getattr(found, "__func__", found) is not inherited


class CallbackAdapter:
    """What a callback offers, found out once; whatever it does wrong is contained and says whose it is.

    Methods that are told something report what they raise to the `PluginFailures` and answer whether it went
    well. Those that are asked something raise `CallbackError`, for whoever asks to know what to do then.
    """

    def __init__(self, rm_id: str, callback: Callback, failures: PluginFailures) -> None:
        self.callback = callback
        self.whose = f"resource manager {rm_id}"
        self.methods = frozenset(method for method in OPTIONAL if implements(callback, method))
        """Which of `OPTIONAL` it implements."""
        self._failures = failures
        self._optional: Any = callback
        """The same object, for the methods that not every callback has."""
        self.answers_at_once = "node_predicates" in self.methods
        """Whether it is asked about many nodes at once, instead of one by one."""
        self.answers = self.answers_at_once or "predicates" in self.methods
        """Whether it has a say in which node takes a request."""
        self._predicates: Any = getattr(callback, "predicates", None)

    @property
    def hears_states(self) -> bool:
        """Whether it wants to know how requests fare."""
        return "update_container_scheduling_state" in self.methods

    # -- telling ------------------------------------------------------------------------------------

    def deliver(self, response: UpdateResponse) -> bool:
        """Hand over a response; returns False if it was lost on the way."""
        return self._tell("taking a response", self.callback.recv_update_response, response)

    def tell_state(self, request: UpdateContainerSchedulingStateRequest) -> bool:
        """Tell how a request fares."""
        method = self._optional.update_container_scheduling_state
        return self._tell("hearing how a request fares", method, request)

    def sync_cache(self, args: ReSyncSchedulerCacheArgs) -> bool:
        """Tell what to assume and to forget."""
        return self._tell("bringing its cache up to date", self._optional.resync_scheduler_cache, args)

    def _tell(self, operation: str, call: Callable[[Any], object], message: object) -> bool:
        try:
            call(message)
        except CONTAINED as error:
            self._failures.report(self.whose, operation, CallbackError(self.whose, operation, error))
            return False
        return True

    # -- asking -------------------------------------------------------------------------------------

    def refusal(self, args: PredicatesArgs) -> str | None:
        """Why a node may not take a request, None if it may; raises `CallbackError`."""
        operation = "answering predicates"
        try:
            # Called for every node and request: without a step in between.
            reason: str | None = self._predicates(args)
        except CONTAINED as error:
            raise CallbackError(self.whose, operation, error) from error
        if reason is not None and not isinstance(reason, str):
            raise _useless(operation, self.whose, f"{reason!r}, not None or a text")
        return reason

    def refusals(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Which of these nodes may not take a request, and why; raises `CallbackError`."""
        operation = "answering predicates for several nodes"
        answer: Mapping[str, str] = self._ask(operation, self._optional.node_predicates, args)
        if not isinstance(answer, Mapping):
            raise _useless(operation, self.whose, f"{answer!r}, not a mapping of node ids to reasons")
        for node_id, reason in answer.items():
            if not isinstance(reason, str):
                raise _useless(operation, self.whose, f"{reason!r} for node {node_id!r}, not a text")
        return answer

    def send_events(self, events: Sequence[EventRecord]) -> None:
        """Hand over events; raises `CallbackError`."""
        self._ask("taking events", self._optional.send_events, events)

    def save_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Have the RM save a configuration; raises `CallbackError`."""
        operation = "saving a configuration"
        response = self._ask(operation, self._optional.update_configuration, request)
        if not isinstance(response, UpdateConfigurationResponse):
            raise _useless(operation, self.whose, f"{response!r}, not an UpdateConfigurationResponse")
        return response

    def _ask(self, operation: str, call: Callable[[Any], Answer], question: object) -> Answer:
        try:
            return call(question)
        except CONTAINED as error:
            raise CallbackError(self.whose, operation, error) from error


def _useless(operation: str, whose: str, answer: str) -> CallbackError:
    return CallbackError(whose, operation, f"it answered {answer}")
