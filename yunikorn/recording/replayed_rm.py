"""Resource managers in a what-if: they say what they said, in the names that things have now.

What was decided otherwise would leave a recorded RM talking of allocations that do not exist: an allocation
is named when it is made, in the order of all. So the n-th allocation of an ask is taken for the n-th one
then. And what is preempted, replaced or timed out now is confirmed at once, whatever was confirmed then.
"""

from __future__ import annotations

from collections import defaultdict

import attrs

from yunikorn.interface.messages import (
    AllocationRelease,
    AllocationReleasesRequest,
    TerminationType,
    UpdateRequest,
    UpdateResponse,
)

CONFIRMED = (
    TerminationType.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED,
)
"""Why the scheduler has allocations end, so that it waits for a confirmation."""
Ask = tuple[str, str, str, str]
"""RM, partition, application and key."""


class ReplayedRM:
    """Stands in for all RMs of a recording."""

    def __init__(self) -> None:
        self.unknown = 0
        """Releases of allocations that are not there in the what-if, or not yet."""
        self._then: dict[tuple[str, str], tuple[Ask, int]] = {}
        self._counts: dict[Ask, int] = defaultdict(int)
        self._now: dict[Ask, list[str]] = defaultdict(list)
        self._to_confirm: list[UpdateRequest] = []

    def was_told(self, rm_id: str, response: UpdateResponse) -> None:
        """What an RM was told then."""
        for one in response.new_allocations:
            ask = (rm_id, one.partition_name, one.application_id, one.allocation_key)
            self._then[rm_id, one.uuid] = (ask, self._counts[ask])
            self._counts[ask] += 1

    def is_told(self, rm_id: str, response: UpdateResponse) -> None:
        """What an RM is told now."""
        for one in response.new_allocations:
            ask = (rm_id, one.partition_name, one.application_id, one.allocation_key)
            self._now[ask].append(one.uuid)
        ended = [one for one in response.released_allocations if one.termination_type in CONFIRMED]
        if ended:
            self._to_confirm.append(UpdateRequest(rm_id, releases=AllocationReleasesRequest(ended)))

    def confirmations(self) -> list[UpdateRequest]:
        """What is to be confirmed now."""
        waiting, self._to_confirm = self._to_confirm, []
        return waiting

    def says(self, request: UpdateRequest) -> UpdateRequest:
        """What the RM said, in the names of now."""
        for node in request.new_schedulable_nodes:
            for one in node.existing_allocations:
                # It reports this under its own name, so that name is in use here, too.
                self._then.pop((request.rm_id, one.uuid), None)
        releases = request.releases
        if not releases.allocations_to_release:
            return request
        named = [
            self._named(request.rm_id, one)
            for one in releases.allocations_to_release
            if one.termination_type not in CONFIRMED
        ]
        return attrs.evolve(request, releases=attrs.evolve(releases, allocations_to_release=named))

    def _named(self, rm_id: str, release: AllocationRelease) -> AllocationRelease:
        known = self._then.get((rm_id, release.uuid))
        if known is None:
            return release
        ask, index = known
        now = self._now[ask]
        if index >= len(now):
            self.unknown += 1
            return release
        return attrs.evolve(release, uuid=now[index])
