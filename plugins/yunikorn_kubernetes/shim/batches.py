"""Changes for the core, collected until the core takes the next update.

All changes of one turn of the event loop, and all that occur while the core is busy, are one update. The core
applies an update in a fixed order: applications, releases, nodes, allocations (docs/decisions/0030). The
methods keep the outcome equal to that of the calls in their own order. An application that is removed and
submitted again is submitted in the next batch, because the core applies removals after additions.

Requests are sent as allocations without a node. Unlike an ask, such an entry changes the allocation of its
key if the core has placed the request meanwhile, and never leads to a second one.
"""

from __future__ import annotations

from collections.abc import Callable

from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationRelease,
    NewNodeInfo,
    NodeAction,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
)


class Batches:
    """Collects changes of one resource manager."""

    def __init__(self, rm_id: str, wake: Callable[[], object]) -> None:
        """Create without changes; `wake` is called when there is something to send."""
        self._rm_id, self._wake = rm_id, wake
        self.number = 1
        """Number of the batch that is being collected."""
        self._added: dict[str, AddApplicationRequest] = {}
        self._removed: dict[str, None] = {}
        self._releases: dict[tuple[str, str, str], AllocationRelease] = {}
        self._new_nodes: dict[str, NewNodeInfo] = {}
        self._node_updates: list[UpdateNodeInfo] = []
        self._allocations: dict[str, Allocation] = {}

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to send."""
        return not (
            self._added
            or self._removed
            or self._releases
            or self._new_nodes
            or self._node_updates
            or self._allocations
        )

    def is_stale(self, number: int) -> bool:
        """Return True if an answer that arrives now cannot be about an entry of batch `number`.

        The core gets one batch at a time, so every answer is about batches before the present one.
        """
        return number >= self.number

    def take(self) -> UpdateRequest | None:
        """Return the collected changes as one update, and begin the next batch; None if there are none."""
        if self.is_empty:
            return None
        later = {app_id: self._added.pop(app_id) for app_id in self._removed if app_id in self._added}
        keys = [key for key, one in self._allocations.items() if one.application_id in later] if later else ()
        allocations_later = {key: self._allocations.pop(key) for key in keys}
        request = UpdateRequest(
            self._rm_id,
            new_applications=[*self._added.values()],
            remove_applications=[RemoveApplicationRequest(app_id) for app_id in self._removed],
            new_schedulable_nodes=[*self._new_nodes.values()],
            updated_nodes=self._node_updates,
            allocations=[*self._allocations.values()],
        )
        request.releases.allocations_to_release = [*self._releases.values()]
        self.number += 1
        self._added, self._allocations = later, allocations_later
        self._removed, self._new_nodes = {}, {}
        self._releases, self._node_updates = {}, []
        return request

    def _number_for(self, app_id: str) -> int:
        """Return the number of the batch that will have an entry about an application."""
        return self.number + 1 if app_id in self._removed else self.number

    # -- applications -------------------------------------------------------------------------------

    def add_application(self, request: AddApplicationRequest) -> int:
        """Submit an application; returns the number of its batch."""
        self._added[request.application_id] = request
        self._wake()
        return self._number_for(request.application_id)

    def remove_application(self, app_id: str, batch: int) -> None:
        """Remove an application that was submitted in `batch`, and the entries about it in this batch."""
        self._added.pop(app_id, None)
        for key in [key for key, entry in self._allocations.items() if entry.application_id == app_id]:
            del self._allocations[key]
        if batch < self.number:
            # The core would apply the removal of an application that it does not have after an addition.
            self._removed[app_id] = None
            self._wake()

    # -- allocations --------------------------------------------------------------------------------

    def put(self, allocation: Allocation) -> int:
        """Submit or change a request or an allocation; returns the number of the batch.

        An allocation with a node was made outside of the core, or is foreign.
        """
        self._allocations[allocation.allocation_key] = allocation
        self._wake()
        return self._number_for(allocation.application_id)

    def release(
        self,
        app_id: str,
        key: str,
        termination: TerminationType = TerminationType.STOPPED_BY_RM,
        message: str = "",
        *,
        uuid: str = "",
    ) -> int:
        """Release a request and its allocation, or with `uuid` only that allocation; returns the batch."""
        if not uuid:
            self._allocations.pop(key, None)
        self._releases[app_id, key, uuid] = AllocationRelease(
            app_id, uuid, termination_type=termination, message=message, allocation_key=key
        )
        self._wake()
        return self.number

    # -- nodes --------------------------------------------------------------------------------------

    def add_node(self, node: NewNodeInfo) -> int:
        """Register a node; returns the number of the batch."""
        self._new_nodes[node.node_id] = node
        self._wake()
        return self.number

    def update_node(self, update: UpdateNodeInfo) -> None:
        """Update a registered node."""
        self._node_updates.append(update)
        self._wake()

    def remove_node(self, name: str, batch: int) -> None:
        """Remove a node registered in `batch`, and the allocations on it in this batch."""
        self._new_nodes.pop(name, None)
        for key in [key for key, entry in self._allocations.items() if entry.node_id == name]:
            del self._allocations[key]
        if batch < self.number:
            self.update_node(UpdateNodeInfo(name, NodeAction.DECOMMISSION))
