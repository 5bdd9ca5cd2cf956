"""A resource manager that verifies every message from the scheduler against its own records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from tests.core.gangs import GangRM
from tests.core.integrated_service import IntegratingClock
from tests.core.kit import Decision
from yunikorn.clock import ManualClock
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry
from yunikorn.interface.commands import Answer, Command, RegisterResourceManager, ReloadConfiguration
from yunikorn.interface.messages import (
    Allocation,
    AllocationRelease,
    AllocationReleasesRequest,
    TerminationType,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource, fits, sum_of

if TYPE_CHECKING:
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

IN_TWO_STEPS = (
    TerminationType.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED,
)
"""Terminations that the RM confirms before the scheduler carries them out."""
OVER = ("Completed", "Failed", "Rejected", "Expired")
UNKNOWN = "is unknown or no longer exists: nothing was released"
Ask = tuple[str, str]
"""Application id and allocation key."""


@attrs.frozen
class LookIn:
    """A look at the partitions of a resource manager, after which its session is active again."""

    rm_id: str

    def __call__(self, scheduler: Scheduler) -> None:
        """Look in again."""
        scheduler.partitions(self.rm_id)


class CallRecordingScheduler(Scheduler):
    """A scheduler that records all calls with the time of the clock, so that `replay` can repeat them."""

    def __init__(self, registry: Registry, clock: ManualClock, timeouts: Timeouts) -> None:
        super().__init__(registry, clock, timeouts)
        self.calls: list[tuple[int, Command[Any] | LookIn]] = []

    def apply(self, command: Command[Answer]) -> Answer:
        """Record the command and apply it."""
        self.calls.append((self.clock.now(), command))
        return super().apply(command)

    def partition(self, rm_id: str, name: str = "default") -> PartitionScheduler | None:
        """Record the call, after which the session is active again, and forward it."""
        self._look_in(rm_id)
        return super().partition(rm_id, name)

    def partitions(self, rm_id: str) -> Iterator[PartitionScheduler]:
        """Record the call, after which the session is active again, and forward it."""
        self._look_in(rm_id)
        return super().partitions(rm_id)

    def _look_in(self, rm_id: str) -> None:
        if self.calls[-1][1] != LookIn(rm_id):
            self.calls.append((self.clock.now(), LookIn(rm_id)))


class _Listener:
    def __init__(self) -> None:
        self.responses: list[UpdateResponse] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        self.responses.append(response)


def replay(recorded: CallRecordingScheduler, registry: Registry, timeouts: Timeouts) -> list[UpdateResponse]:
    """Repeat the recorded calls on a new scheduler, and return its responses."""
    clock, listener = ManualClock(), _Listener()
    scheduler = Scheduler(registry, clock, timeouts)
    for now, call in recorded.calls:
        clock.set(now)
        if isinstance(call, RegisterResourceManager):
            call = attrs.evolve(call, callback=listener)
        try:
            call(scheduler)
        except ConfigError:
            assert isinstance(call, ReloadConfiguration)
    return listener.responses


@attrs.define(eq=False)
class Submitted:
    """The RM's record of one of its applications."""

    atomic: Resource | None = None
    """Size of the gang while it is Atomic and none of its members runs; None otherwise."""
    state: str = "New"
    accepted: bool = False


class StrictRM(GangRM):
    """An RM that fails the test on any invalid message.

    Invalid are: a second release of one allocation, a placement on an unknown node, a placement without a
    pending ask, an Atomic gang placed in part, and an application that ends with allocations or asks left.
    """

    def __init__(self, config: str, registry: Registry, timeouts: Timeouts, scheduler: Any = None) -> None:
        """Register at `scheduler`, by default at a new one that records all calls."""
        self.nodes: dict[str, None] = {}
        self.apps: dict[str, Submitted] = {}
        self.wanted: Counter[Ask] = Counter()
        """Pending replicas of each ask."""
        self.denied: set[Ask] = set()
        """Asks that the scheduler rejected, perhaps only a change of them."""
        self.unknown_releases = 0
        """Number of answers about unknown releases that the RM has to expect."""
        self.all_said: list[UpdateResponse] = []
        self.own: dict[str, bool] = {}
        """Allocations by uuid that the RM placed or recovered itself; True if they answer an ask."""
        self.sizes: dict[str, Resource] = {}
        """Size by uuid of the allocations that the RM placed or recovered itself."""
        self.recorded = scheduler or CallRecordingScheduler(registry, IntegratingClock(), timeouts)
        super().__init__(config, scheduler=self.recorded)
        if isinstance(self.clock, IntegratingClock):
            self.clock.watch(self.at_work().partition)

    # -- messages from the scheduler -----------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Check the response against the records, and update the records."""
        self.responses.append(response)
        self.all_said.append(response)
        for accepted in response.accepted_applications:
            self.apps[accepted.application_id].accepted = True
        for refused in response.rejected_applications:
            if not self.apps[refused.application_id].accepted:
                del self.apps[refused.application_id]
        self._take(response.new_allocations)
        for release in response.released_allocations:
            self._end(release)
        for gone in response.released_allocation_asks:
            assert gone.application_id in self.apps, f"{gone} belongs to no known application"
            self.wanted.pop((gone.application_id, gone.allocation_key), None)
        for denied in response.rejected_allocations:
            self.denied.add((denied.application_id, denied.allocation_key))
        for change in response.updated_applications:
            self._change(change.application_id, change.state)

    def _take(self, new: list[Allocation]) -> None:
        for one in new:
            assert one.uuid not in self.running, f"{one.uuid} was placed twice"
            assert one.application_id in self.apps, f"{one} belongs to no known application"
            assert one.node_id in self.nodes, f"{one} is on a node that is not there"
            app = self.apps[one.application_id]
            ask = (one.application_id, one.allocation_key)
            assert one.resource_per_alloc == self.sizes.get(one.uuid, one.resource_per_alloc)
            if one.uuid not in self.own:
                assert app.state not in (*OVER, "Failing"), f"{one} is of an application that is {app.state}"
                assert self.wanted[ask] > 0, f"{one} was placed without an ask"
            if self.own.get(one.uuid, True):
                self.wanted[ask] -= 1
            self.running[one.uuid] = one
        self._check_gangs(new)

    def _check_gangs(self, new: list[Allocation]) -> None:
        members: dict[str, list[Resource]] = {}
        for one in new:
            app = self.apps[one.application_id]
            if app.atomic is not None and one.task_group_name:
                if one.uuid in self.own:
                    app.atomic = None
                else:
                    members.setdefault(one.application_id, []).append(one.resource_per_alloc)
        for app_id, amounts in members.items():
            size = self.apps[app_id].atomic
            assert size is not None
            assert fits(sum_of(amounts), size), f"{app_id} was placed in part: {amounts} of {size}"
            self.apps[app_id].atomic = None

    def _end(self, release: AllocationRelease) -> None:
        uuid, termination = release.uuid, release.termination_type
        if release.message.endswith(UNKNOWN):
            assert self.unknown_releases, f"{release} answers nothing"
            self.unknown_releases -= 1
            return
        assert uuid in self.running, f"{release} ends what does not run"
        one = self.running[uuid]
        assert (one.application_id, one.allocation_key) == (release.application_id, release.allocation_key)
        if termination in IN_TWO_STEPS:
            assert uuid not in self.evicted, f"{uuid} was evicted before: {self.evicted[uuid]}"
            self.evicted[uuid] = release
        else:
            del self.running[uuid]
            self.evicted.pop(uuid, None)
            if termination == TerminationType.SCHEDULING_FAILED_ON_RM:
                self.wanted[one.application_id, one.allocation_key] += 1

    def _change(self, app_id: str, state: str) -> None:
        if app_id not in self.apps:
            assert state == "Expired", f"{app_id} is {state}, but unknown"
            return
        self.apps[app_id].state = state
        if state in OVER:
            left = [uuid for uuid, one in self.running.items() if one.application_id == app_id]
            assert not left, f"{app_id} is {state}, and {left} run"
            wanted = {key: count for (owner, key), count in self.wanted.items() if owner == app_id and count}
            assert not wanted, f"{app_id} is {state}, and waits for {wanted}"
            self.forget(app_id)

    def forget(self, app_id: str) -> None:
        """Drop an application and its asks from the records."""
        self.apps.pop(app_id, None)
        for ask in [ask for ask in self.wanted if ask[0] == app_id]:
            del self.wanted[ask]

    # -- messages to the scheduler -------------------------------------------------------------------------

    def alive(self) -> list[str]:
        """Return the ids of the applications that have not ended."""
        return list(self.apps)

    def ends(self, app_id: str, key: str, termination: TerminationType, uuid: str = "") -> None:
        """Release an allocation, or all of a key, whether or not the scheduler requested that."""
        found = [
            one
            for one in self.running.values()
            if one.application_id == app_id and uuid in ("", one.uuid) and key in ("", one.allocation_key)
        ]
        reported = [one for one in found if self._told(one) == termination]
        if termination == TerminationType.PLACEHOLDER_REPLACED or (reported and not uuid):
            found = reported
        if app_id not in self.apps:
            found = []
        for one in found:
            del self.running[one.uuid]
            self.evicted.pop(one.uuid, None)
        if not (uuid or reported) and termination == TerminationType.PREEMPTED_BY_SCHEDULER:
            self.drop_asks(app_id, key)
        self.unknown_releases = 0 if found else 1
        release = AllocationRelease(app_id, uuid, "", termination, "", key)
        self.update_releases(release)
        self.unknown_releases = 0

    def fails_to_start(self, one: Allocation) -> None:
        """Report that an allocation could not be started."""
        if one.uuid in self.evicted:
            # The scheduler takes the report as a confirmation, which is not answered.
            del self.running[one.uuid], self.evicted[one.uuid]
        failed = TerminationType.SCHEDULING_FAILED_ON_RM
        self.update_releases(AllocationRelease(one.application_id, one.uuid, "", failed, "odd"))
        assert one.uuid not in self.running

    def update_releases(self, *releases: AllocationRelease) -> None:
        """Send one update with these releases."""
        self.update(releases=AllocationReleasesRequest(list(releases), []))

    def _told(self, one: Allocation) -> TerminationType | None:
        return self.evicted[one.uuid].termination_type if one.uuid in self.evicted else None

    def drop_asks(self, app_id: str, key: str = "") -> None:
        """Drop the records of an ask, or of all asks of an application."""
        for ask in [ask for ask in self.wanted if ask[0] == app_id and key in ("", ask[1])]:
            del self.wanted[ask]

    def promised(self, app_id: str, key: str) -> int:
        """Return the number of replicas of an ask that wait for a placeholder to be released."""
        app = self.at_work().partition.applications.get(app_id)
        if app is None:
            return 0
        coming = [one.replacement for one in app.allocations.values() if one.replacement is not None]
        return sum(1 for real in coming if real.key == key and real.ask is app.asks.get(key))

    def schedule(self, most: int | None = None) -> list[Decision]:
        """Run the scheduler and return its placements; their number may differ from the number of decisions.

        An Atomic gang is one decision with several placements, a replacement is a decision with none.
        """
        before = len(self.responses)
        self.scheduler.schedule(most)
        reported = self.responses[before:]
        return [
            (one.application_id, one.allocation_key, one.node_id)
            for response in reported
            for one in response.new_allocations
        ]
