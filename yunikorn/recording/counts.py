"""Counts of the entries in responses, for comparing a what-if with its recording."""

from __future__ import annotations

import attrs

from yunikorn.interface.messages import UpdateResponse


@attrs.define
class Counts:
    """Sums over responses."""

    responses: int = 0
    allocations: int = 0
    releases: int = 0
    """Number of released allocations, for any reason."""
    rejected: int = 0
    """Number of rejected applications, asks and nodes."""
    failed_node_updates: int = 0

    def add(self, response: UpdateResponse) -> None:
        """Add the entries of a response."""
        self.responses += 1
        self.allocations += len(response.new_allocations)
        self.releases += len(response.released_allocations)
        self.rejected += len(response.rejected_applications)
        self.rejected += len(response.rejected_allocations) + len(response.rejected_nodes)
        self.failed_node_updates += len(response.failed_node_updates)

    def __str__(self) -> str:
        said = f"{self.responses} responses, {self.allocations} allocations, {self.releases} releases"
        said += f", {self.rejected} rejected"
        return said + (
            f", {self.failed_node_updates} updates of nodes failed" if self.failed_node_updates else ""
        )
