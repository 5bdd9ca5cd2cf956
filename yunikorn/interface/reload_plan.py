"""Another configuration, made ready for use: nothing is changed yet (decision 11)."""

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
    """What a new configuration needs, made whole before anything is changed."""

    plan: Reload
    made: Mapping[str, PartitionScheduler]
    """Partitions that did not exist until now."""
    outlets: list[Outlet]

    def discard(self, reason: str) -> None:
        """It is not used after all."""
        discard(self.made, reason)


def discard(made: Mapping[str, PartitionScheduler], reason: str) -> None:
    """Close partitions that were made and are not used."""
    for unused in made.values():
        unused.close(reason)
