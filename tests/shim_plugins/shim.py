"""Test kit: resource managers that implement optional callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.core.kit import RM
from yunikorn.interface.messages import (
    EventRecord,
    NodePredicatesArgs,
    PredicatesArgs,
    ReSyncSchedulerCacheArgs,
    UpdateContainerSchedulingStateRequest,
    UpdateResponse,
)

Rule = Callable[[PredicatesArgs], str | None]


class Asked(RM):
    """Has a predicate call for single nodes, answers by `rule`, and records the questions."""

    rule: Rule = staticmethod(lambda args: None)

    def predicates(self, args: PredicatesArgs) -> str | None:
        self.__dict__.setdefault("questions", []).append(args)
        return self.rule(args)

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Return key and node of all questions so far."""
        return [(args.allocation_key, args.node_id) for args in self.__dict__.get("questions", [])]


class AskedAtOnce(RM):
    """Has a predicate call for many nodes, answers by `rule`, and records the questions."""

    rule: Rule = staticmethod(lambda args: None)

    def node_predicates(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        self.__dict__.setdefault("questions", []).append(args)
        answers = {}
        for node_id in args.node_ids:
            one = PredicatesArgs(args.allocation_key, node_id, args.allocate, args.application_id)
            reason = self.rule(one)
            if reason is not None:
                answers[node_id] = reason
        return answers

    @property
    def questions(self) -> list[NodePredicatesArgs]:
        """Return all questions so far."""
        found: list[NodePredicatesArgs] = self.__dict__.setdefault("questions", [])
        return found


class Listening(RM):
    """Records events, cache updates and scheduling states, in the order of arrival."""

    def _heard(self, what: object) -> None:
        self.__dict__.setdefault("all", []).append(what)

    @property
    def everything(self) -> list[object]:
        """Return all calls, in order."""
        found: list[object] = self.__dict__.setdefault("all", [])
        return found

    def recv_update_response(self, response: UpdateResponse) -> None:
        super().recv_update_response(response)
        self._heard(response)

    def send_events(self, events: Sequence[EventRecord]) -> None:
        for event in events:
            self._heard(event)

    def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
        self._heard(args)

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        self._heard(request)

    @property
    def events(self) -> list[EventRecord]:
        """Return the events so far."""
        return [one for one in self.everything if isinstance(one, EventRecord)]
