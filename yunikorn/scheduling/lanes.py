"""Lanes: for application policies that let only some applications of a queue take part.

The policy puts every application of the queue into a lane, whether it waits for something or not, and
says how many of each lane take part, from the front (decisions 18 and 41). The gate keeps an order and
a count per lane, so that a change of one application costs no look at the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

from yunikorn.errors import CONTAINED
from yunikorn.objects.line import Roster
from yunikorn.scheduling.member_order import behind

if TYPE_CHECKING:
    from yunikorn.api import AppSortPolicy
    from yunikorn.objects.application import Application
    from yunikorn.objects.line import Rank
    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.faults import FaultLog


class LaneGate:
    """Who of a leaf queue takes part."""

    def __init__(self, policy: AppSortPolicy, origin: str, faults: FaultLog) -> None:
        self._lane: Callable[[Application], Hashable] = policy.lane
        self._admit: Callable[[Mapping[Hashable, int]], Mapping[Hashable, int | None]] = policy.admit
        self._origin = origin
        self._faults = faults
        self._rosters: dict[Hashable, Roster[Application]] = {}
        self._fronts: dict[Hashable, list[Application]] = {}
        self._limits: Mapping[Hashable, int | None] = {}
        self._kept_out: dict[int, Application] = {}

    def update(self, app: Application, rank: Rank) -> None:
        """An application came or changed; `admitted` of others may change by `review`."""
        lane = self._lane_of(app)
        if app.lane_rank is not None:
            if app.lane == lane and app.lane_rank == rank:
                return
            self.remove(app)
        try:
            self._rosters.setdefault(lane, Roster()).add(rank)
        except CONTAINED as error:
            self._faults.report(self._origin, "comparing keys of", error, app.label)
            rank = behind(app)
            self._rosters[lane].add(rank)
        app.lane, app.lane_rank = lane, rank

    def keep_out(self, app: Application, leaf: Queue) -> None:
        """Note whether `app` waits and may not take part, for `leaf` to look again when that may change."""
        if app.requests.bits and not app.admitted and app.queue is leaf:
            self._kept_out[app.arrival] = app
            leaf.held |= app.bits
        elif self._kept_out.pop(app.arrival, None) is not None and not self._kept_out:
            leaf.held = 0

    def remove(self, app: Application) -> None:
        """An application left the queue."""
        if app.lane_rank is not None:
            self._rosters[app.lane].remove(app.lane_rank)
            app.lane_rank = None

    def review(self) -> list[Application]:
        """Let the policy decide anew who takes part; returns those for whom that changed."""
        counts = {lane: len(roster) for lane, roster in self._rosters.items() if len(roster)}
        try:
            limits = {lane: _whole(limit) for lane, limit in dict(self._admit(counts)).items()}
        except CONTAINED as error:
            self._faults.report(self._origin, "admitting lanes", error)
            limits = {}
        fronts = {
            lane: roster.front(limit)
            for lane, roster in self._rosters.items()
            if (limit := limits.get(lane)) is not None
        }
        changed = [
            lane for lane in self._rosters if (self._limits.get(lane) is None) != (limits.get(lane) is None)
        ]
        found: dict[int, Application] = {}
        for lane in {**self._fronts, **fronts}:
            for app in (*self._fronts.get(lane, ()), *fronts.get(lane, ())):
                found[app.arrival] = app
        for lane in changed:
            for app in self._rosters[lane].front(len(self._rosters[lane])):
                found[app.arrival] = app
        self._limits, self._fronts = limits, fronts
        return [app for app in found.values() if self._decide(app)]

    def _decide(self, app: Application) -> bool:
        admitted = self.is_admitted(app)
        changed = admitted != app.admitted
        app.admitted = admitted
        return changed

    def is_admitted(self, app: Application) -> bool:
        """Whether it takes part, by the last review."""
        if self._limits.get(app.lane) is None:
            return True
        return any(other is app for other in self._fronts.get(app.lane, ()))

    def _lane_of(self, app: Application) -> Hashable:
        try:
            lane = self._lane(app)
            hash(lane)
            if not bool(lane == lane):
                raise ValueError(f"{lane!r} does not equal itself")
        except CONTAINED as error:
            self._faults.report(self._origin, "choosing the lane of", error, app.label)
            return None
        return lane


def _whole(limit: int | None) -> int | None:
    if limit is None:
        return None
    if not isinstance(limit, int) or limit < 0:
        raise ValueError(f"admit answered {limit!r} instead of None or a whole number, 0 or more")
    return limit
