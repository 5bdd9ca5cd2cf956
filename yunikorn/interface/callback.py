"""The callback: one interface with which a resource manager hears from the core (seed: scheduler interface).

Only `recv_update_response` is required. Whatever else the RM's object implements is used, and what it
does not implement costs nothing. A method counts as implemented if the object has it, it is not None, and
it is not the one inherited from `ResourceManagerCallback`; so a class may derive from that or from nothing,
and may switch a method off for one object by setting it to None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

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
