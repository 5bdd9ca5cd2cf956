"""Resource manager of histories that run over any transport: sends messages and records responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from tests.conformance.transports import Transport
from yunikorn.interface.callback import ResourceManagerCallback
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    PredicatesArgs,
    PreemptionMode,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource

TO_CONFIRM = (
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.TIMEOUT,
    TerminationType.PLACEHOLDER_REPLACED,
)
History = dict[str, list[tuple[object, ...]]]
"""Responses by kind, in order. Kinds have no common order, because the layouts do not define one."""
Predicate = Callable[[PredicatesArgs], str | None]


def empty_history() -> History:
    """Return an empty history."""
    return {kind: [] for kind in ("placed", "ended", "modes", "asks refused", "applications", "nodes")}


class ScenarioRM(ResourceManagerCallback):
    """Resource manager on a transport. Each method returns when all responses to its message have arrived."""

    def __init__(
        self, open_transport: Callable[[Callable[[], int]], Transport], predicate: Predicate | None
    ) -> None:
        self.history = empty_history()
        self.running: dict[str, Allocation] = {}
        self.to_confirm: list[AllocationRelease] = []
        self._predicate = predicate
        if predicate is None:
            self.predicates = None  # type: ignore[assignment,method-assign]
        self.transport = open_transport(lambda: sum(map(len, self.history.values())))
        self.transport.register(self)

    # -- receiving -----------------------------------------------------------------------------------------

    def predicates(self, args: PredicatesArgs) -> str | None:
        assert self._predicate is not None
        return self._predicate(args)

    def recv_update_response(self, response: UpdateResponse) -> None:
        history = self.history
        for placed in response.new_allocations:
            known = self.running.get(placed.allocation_key)
            if known is not None:
                # The newer layout acknowledges reported allocations.
                assert known.node_id == placed.node_id, f"{placed.allocation_key} was placed twice"
                continue
            self.running[placed.allocation_key] = placed
            history["placed"].append(
                (
                    *(placed.application_id, placed.allocation_key, placed.node_id),
                    *(dict(placed.resource_per_alloc), placed.priority, placed.partition_name),
                    *(placed.task_group_name, placed.placeholder, dict(placed.allocation_tags)),
                )
            )
        for gone in response.released_allocations:
            if gone.termination_type in TO_CONFIRM and gone.allocation_key in self.running:
                self.to_confirm.append(gone)
            else:
                self.running.pop(gone.allocation_key, None)
        # The newer layout reports the end of an ask like that of an allocation.
        ended: list[AllocationRelease | AllocationAskRelease] = [
            *response.released_allocations,
            *response.released_allocation_asks,
        ]
        history["ended"] += [
            (one.application_id, one.allocation_key, one.termination_type.name, one.message) for one in ended
        ]
        history["modes"] += [
            (one.allocation_key, one.preemption_mode)
            for one in response.released_allocations
            if one.preemption_mode is not PreemptionMode.END
        ]
        history["asks refused"] += [
            (one.application_id, one.allocation_key, one.reason) for one in response.rejected_allocations
        ]
        history["applications"] += [
            ("accepted", one.application_id) for one in response.accepted_applications
        ]
        history["applications"] += [
            ("refused", one.application_id, one.reason) for one in response.rejected_applications
        ]
        history["applications"] += [
            ("is", one.application_id, one.state, one.message, one.state_transition_timestamp)
            for one in response.updated_applications
        ]
        history["nodes"] += [("accepted", one.node_id) for one in response.accepted_nodes]
        history["nodes"] += [("refused", one.node_id, one.reason) for one in response.rejected_nodes]

    @property
    def places(self) -> dict[str, str]:
        """Return the node by allocation key."""
        return {key: one.node_id for key, one in self.running.items()}

    def reported(self, kind: str) -> list[tuple[object, ...]]:
        """Return all responses of a kind, with the columns that tests compare."""
        return [entry[:3] for entry in self.history[kind]]

    # -- sending -------------------------------------------------------------------------------------------

    def send(self, **entries: Any) -> list[str]:
        """Send one update; return its placements as `key@node`, in order."""
        return self._placed_by(lambda: self.transport.send(UpdateRequest("rm", **entries)))

    def pass_time(self, seconds: float) -> list[str]:
        """Let time pass."""
        return self._placed_by(lambda: self.transport.advance(seconds))

    def _placed_by(self, operation: Callable[[], None]) -> list[str]:
        before = len(self.history["placed"])
        operation()
        return [f"{entry[1]}@{entry[2]}" for entry in self.history["placed"][before:]]

    def node(
        self, name: str, attributes: Mapping[str, str] | None = None, *, drained: bool = False, **amounts: int
    ) -> list[str]:
        """Register a node."""
        info = NewNodeInfo(name, dict(attributes or {}), Resource(amounts), schedulable=not drained)
        return self.send(new_schedulable_nodes=[info])

    def change(self, name: str, action: NodeAction, **amounts: int) -> list[str]:
        """Update a node."""
        capacity = Resource(amounts) if amounts else None
        return self.send(updated_nodes=[UpdateNodeInfo(name, action, schedulable_resource=capacity)])

    def app(self, name: str, queue: str = "root.a", user: str = "ann", **fields: Any) -> list[str]:
        """Submit an application."""
        info = UserGroupInformation(user, [user])
        return self.send(new_applications=[AddApplicationRequest(name, queue, ugi=info, **fields)])

    def ask(self, app: str, *keys: str, fields: Mapping[str, Any] | None = None, **amounts: int) -> list[str]:
        """Send an ask of these amounts per key."""
        return self.send(asks=[request(app, key, fields, **amounts) for key in keys])

    def end(self, *keys: str) -> list[str]:
        """End allocations by themselves."""
        return self.release(*[self.running.pop(key) for key in keys])

    def release(self, *ended: Allocation, why: str = "") -> list[str]:
        """Report the end of allocations."""
        gone = [
            AllocationRelease(one.application_id, one.uuid, message=why, allocation_key=one.allocation_key)
            for one in ended
        ]
        return self.send(releases=AllocationReleasesRequest(gone))

    def release_asks(self, app: str, *keys: str, why: str = "") -> list[str]:
        """Release asks."""
        asks = [AllocationAskRelease(app, key, message=why) for key in keys]
        return self.send(releases=AllocationReleasesRequest([], asks))

    def confirm(self, *keys: str) -> list[str]:
        """Confirm requested releases: these, or all, in the order of the requests."""
        gone = [one for one in self.to_confirm if not keys or one.allocation_key in keys]
        self.to_confirm = [one for one in self.to_confirm if one not in gone]
        for one in gone:
            self.running.pop(one.allocation_key, None)
        echo = [attrs.evolve(one, message="") for one in gone]
        return self.send(releases=AllocationReleasesRequest(echo))

    def remove(self, *apps: str) -> list[str]:
        """Remove applications."""
        return self.send(remove_applications=[RemoveApplicationRequest(app) for app in apps])

    def come_back(self, apps: Iterable[AddApplicationRequest], nodes: Iterable[NewNodeInfo]) -> None:
        """Register again, and report applications, nodes and running allocations."""
        running, self.running = self.running, {}
        self.transport.register(self)
        found = list(nodes)
        for node in found:
            node.existing_allocations = [one for one in running.values() if one.node_id == node.node_id]
        self.running = running
        self.send(new_applications=list(apps), new_schedulable_nodes=found)


def request(app: str, key: str, fields: Mapping[str, Any] | None = None, **amounts: int) -> AllocationAsk:
    """Return an ask."""
    return AllocationAsk(key, app, resource_ask=Resource(amounts), **(fields or {}))
