"""Entries of an update about applications whose checks wait for a worker: kept back, in their order.

Everything else of the update is applied at once, so that a policy that hangs delays only its own
applications (`docs/decisions/archive/0076`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from yunikorn.interface.ask_entries import ask_of
from yunikorn.interface.checks import allocation_fault
from yunikorn.interface.messages import AllocationReleasesRequest
from yunikorn.scheduling.existing_allocations import FOREIGN_TAG

if TYPE_CHECKING:
    from yunikorn.interface.ask_entries import AskEntries
    from yunikorn.interface.messages import (
        Allocation,
        AllocationAsk,
        AllocationAskRelease,
        AllocationRelease,
        UpdateRequest,
    )
    from yunikorn.interface.rm_partitions import RMPartitions
    from yunikorn.scheduling.admission.submitted_applications import Entry
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

E = TypeVar("E")
Place = tuple["PartitionScheduler", str]
"""Partition and id of a waiting application."""


class WaitingEntries:
    """Keeps back entries of the updates of one RM."""

    def __init__(
        self,
        partitions: RMPartitions,
        asks: AskEntries,
        release_ask: Callable[[AllocationAskRelease], None],
        release: Callable[[AllocationRelease], None],
    ) -> None:
        """Create for these partitions; the functions apply releases that were kept back."""
        self._partitions = partitions
        self._asks = asks
        self._release_ask, self._release = release_ask, release

    def keep_back(self, request: UpdateRequest) -> UpdateRequest:
        """Return an update without the entries of waiting applications, which are applied later."""
        if not any(len(partition.submitted) for partition in self._partitions):
            return request
        releases = request.releases
        asks = self._sort(request.asks, self._of_ask, self._defer_asks)
        ask_releases = self._sort(
            releases.allocation_asks_to_release, self._of_release, self._defer_each(self._release_ask)
        )
        ends = self._sort(releases.allocations_to_release, self._of_named, self._defer_each(self._release))
        allocations = self._sort(request.allocations, self._of_allocation, self._defer_allocations)
        return attrs.evolve(
            request,
            asks=asks,
            releases=AllocationReleasesRequest(ends, ask_releases),
            allocations=allocations,
        )

    # -- applications of entries ----------------------------------------------------------------------

    def _waits(self, partition_name: object, app_id: object) -> Place | None:
        # Names of a wrong type are refused by the checks of the entry.
        if type(partition_name) is not str or type(app_id) is not str:
            return None
        at = self._partitions.find(partition_name)
        return (at, app_id) if at is not None and app_id in at.submitted else None

    def _of_named(self, entry: Any) -> Place | None:
        return self._waits(entry.partition_name, entry.application_id)

    def _of_ask(self, entry: Any) -> Place | None:
        # An ask without an application has one of its own, with the key of the ask.
        return self._waits(entry.partition_name, entry.application_id or entry.allocation_key)

    def _of_allocation(self, one: Allocation) -> Place | None:
        tags: object = one.allocation_tags
        if type(tags) is dict and FOREIGN_TAG in tags:
            return None
        return self._of_named(one) if one.node_id else self._of_ask(one)

    def _of_release(self, gone: AllocationAskRelease) -> Place | None:
        if gone.application_id or type(gone.allocation_key) is not str or not gone.allocation_key:
            return self._of_named(gone)
        at = self._partitions.find(gone.partition_name) if type(gone.partition_name) is str else None
        app_id = "" if at is None else at.submitted.owner_of(gone.allocation_key)
        return (at, app_id) if at is not None and app_id else None

    # -- keeping back -----------------------------------------------------------------------------------

    def _sort(
        self,
        entries: list[E],
        place_of: Callable[[E], Place | None],
        defer: Callable[[PartitionScheduler, str, list[E]], None],
    ) -> list[E]:
        """Return the entries that can be applied now, and defer the others, together where possible."""
        now: list[E] = []
        for place, group in groupby(entries, key=place_of):
            if place is None:
                now += group
            else:
                defer(*place, list(group))
        return now

    def _defer_asks(self, at: PartitionScheduler, app_id: str, asks: list[AllocationAsk]) -> None:
        for is_implicit, group in groupby(asks, key=lambda ask: not ask.application_id):
            found = list(group)
            keys = [ask.allocation_key for ask in found]
            if is_implicit:
                at.submitted.defer(app_id, partial(self._take_implicit, found), keys)
            else:
                at.submitted.defer(app_id, _ignoring_reason(self._asks.take, found), keys)

    def _take_implicit(self, asks: list[AllocationAsk], reason: str) -> None:
        for ask in asks:
            self._asks.take_implicit(ask, reason)

    @staticmethod
    def _defer_each(apply: Callable[[E], object]) -> Callable[[PartitionScheduler, str, list[E]], None]:
        def defer(at: PartitionScheduler, app_id: str, entries: Iterable[E]) -> None:
            for entry in entries:
                at.submitted.defer(app_id, _ignoring_reason(apply, entry))

        return defer

    def _defer_allocations(self, at: PartitionScheduler, app_id: str, allocations: list[Allocation]) -> None:
        for one in allocations:
            # A task on a node runs already: meanwhile its room must not be given to others.
            uuid = self._asks.occupy(at, one) if one.node_id and not allocation_fault(one) else ""
            at.submitted.defer(app_id, partial(self._take_allocation, at, one, uuid), [one.allocation_key])

    def _take_allocation(self, at: PartitionScheduler, one: Allocation, uuid: str, reason: str) -> None:
        if uuid:
            at.existing.occupied.release(one.application_id, uuid, "", "")
        if one.application_id:
            self._asks.take_allocations([one])
        else:
            self._asks.take_implicit(ask_of(one), reason)


def _ignoring_reason(apply: Callable[[E], object], entry: E) -> Entry:
    return lambda reason: apply(entry)
