"""Resource managers in a what-if: their recorded updates, with the allocation ids of the replay.

The id of an allocation depends on all earlier allocations, so recorded ids do not fit the decisions of a
what-if. Instead, the n-th allocation of an ask in the replay stands for its n-th allocation in the recording.
Preemptions, replacements and timeouts in the replay are confirmed at once, and recorded confirmations are
ignored.
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
"""Termination types for which the scheduler waits for a confirmation."""
Ask = tuple[str, str, str, str]
"""RM, partition, application and allocation key."""


class ReplayedRM:
    """Replacement for all RMs of a recording."""

    def __init__(self) -> None:
        self.unknown = 0
        """Number of released allocations that do not exist in the what-if, or not yet."""
        self._then: dict[tuple[str, str], tuple[Ask, int]] = {}
        self._counts: dict[Ask, int] = defaultdict(int)
        self._now: dict[Ask, list[str]] = defaultdict(list)
        self._to_confirm: list[UpdateRequest] = []

    def was_told(self, rm_id: str, response: UpdateResponse) -> None:
        """Process a recorded response to an RM."""
        for one in response.new_allocations:
            ask = (rm_id, one.partition_name, one.application_id, one.allocation_key)
            self._then[rm_id, one.uuid] = (ask, self._counts[ask])
            self._counts[ask] += 1

    def is_told(self, rm_id: str, response: UpdateResponse) -> None:
        """Process a response of the replay to an RM."""
        for one in response.new_allocations:
            ask = (rm_id, one.partition_name, one.application_id, one.allocation_key)
            self._now[ask].append(one.uuid)
        ended = [one for one in response.released_allocations if one.termination_type in CONFIRMED]
        if ended:
            self._to_confirm.append(UpdateRequest(rm_id, releases=AllocationReleasesRequest(ended)))

    def confirmations(self) -> list[UpdateRequest]:
        """Return the updates that confirm releases, each once."""
        waiting, self._to_confirm = self._to_confirm, []
        return waiting

    def says(self, request: UpdateRequest) -> UpdateRequest:
        """Return a recorded update with the allocation ids of the replay."""
        for node in request.new_schedulable_nodes:
            for one in node.existing_allocations:
                # The RM reports this allocation under its recorded id, so the replay uses that id as well.
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
