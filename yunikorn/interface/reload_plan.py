"""Plan of a configuration change: everything that the new configuration needs, before anything is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.interface.sinks import Outlet
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler
    from yunikorn.scheduling.reload import Reload


@attrs.frozen
class ReloadPlan:
    """Objects that a new configuration needs, complete before the change is applied."""

    plan: Reload
    made: Mapping[str, PartitionScheduler]
    """Partitions that did not exist before, by name."""
    outlets: list[Outlet]

    def discard(self, reason: str) -> None:
        """Close the new partitions: the plan is not used."""
        discard(self.made, reason)


def discard(made: Mapping[str, PartitionScheduler], reason: str) -> None:
    """Close partitions that were made but are not used."""
    for unused in made.values():
        unused.close(reason)
