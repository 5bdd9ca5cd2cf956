"""Where a simulation writes down what it sees; the base writes nothing."""

from __future__ import annotations

from yunikorn.interface.messages import Allocation
from yunikorn.simulation.books import Submitted
from yunikorn.simulation.workload import NodeEvent


class Recorder:
    """Told of everything as it happens, in order; each method may be overridden."""

    def begin(self) -> None:
        """The core took the configuration; what follows is worth writing down."""

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """A task got its place."""

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """A task gave its place back."""

    def node_changed(self, event: NodeEvent) -> None:
        """A node joined, changed or left, and the core agreed."""

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """An application came to its end: finished, rejected or failed."""
