"""Interface of gangs to the accounting of allocations; `partition_gangs` implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.resources import Resource


class AllocationGangs(Protocol):
    """Gangs, as changes of allocations concern them."""

    def placed(self, placeholder: Allocation) -> None:
        """Account for an allocated placeholder; after the last one the application starts."""
        ...

    def found(self, placeholder: Allocation) -> None:
        """Account for a placeholder reported by a recovering RM."""
        ...

    def joined(self, allocation: Allocation) -> None:
        """Treat the rest of an atomic gang as ordinary asks when a member is found running."""
        ...

    def resized(self, placeholder: Allocation, resource: Resource) -> None:
        """Update the size of a placeholder that the RM resized."""
        ...

    def conclude(self, placeholder: Allocation) -> bool:
        """Finish the replacement when the placeholder ends; return False if undone instead."""
        ...

    def ended(self, placeholder: Allocation, *, replaced: bool) -> None:
        """Account for the end of a placeholder."""
        ...

    def returned(self, placeholder: Allocation) -> None:
        """Account for a placeholder that is pending again."""
        ...

    def rest(self, app: Application, gone: Allocation) -> None:
        """Update an application with a gang after an allocation ended."""
        ...
