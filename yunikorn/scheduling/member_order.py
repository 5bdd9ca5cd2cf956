"""The order of what is in a queue: its policy, its priorities, and a defence against bad keys."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yunikorn.clock import SECOND
from yunikorn.errors import CONTAINED
from yunikorn.objects.ask import INT32_MIN as NO_PRIORITY
from yunikorn.scheduling.said_seconds import seconds_of

if TYPE_CHECKING:
    from yunikorn.api import AppSortPolicy, QueueSortPolicy
    from yunikorn.objects.application import Application
    from yunikorn.objects.line import Line, Member, Rank
    from yunikorn.scheduling.faults import FaultLog
    from yunikorn.scheduling.lanes import LaneGate


class MemberOrder:
    """Ranks the members of one queue: applications of a leaf, queues of a parent.

    A rank is (0, priority, key, tie, member), highest priority first; with priorities disabled it is
    (0, key, tie, member). A member with a bad key gets (1, ...) and stands behind all others in default
    order. See "Order" in docs/compatibility.md.
    """

    __slots__ = (
        "_faults",
        "_key",
        "_priority_first",
        "_refresh",
        "_tick",
        "ages",
        "half_life",
        "lanes",
        "origin",
        "policy",
    )

    def __init__(
        self,
        policy: AppSortPolicy | QueueSortPolicy,
        origin: str,
        faults: FaultLog,
        *,
        priority_first: bool,
        lanes: LaneGate | None = None,
    ) -> None:
        self.policy = policy
        self.lanes = lanes
        self.origin = origin
        self._key: Callable[[Any], Any] = policy.key
        self._faults = faults
        self._priority_first = priority_first
        every = seconds_of(policy, "refresh_every", origin, faults)
        self.half_life = seconds_of(policy, "half_life", origin, faults)
        """Of the usage of the members that the policy looks at (seconds), None if it does not."""
        self.ages = bool(every)
        """Whether keys change with the time alone."""
        self._refresh = round(every * SECOND) if every else 0
        self._tick = -1

    def is_due(self, now: int) -> bool:
        """Whether the policy's keys age and it is time to compute all of them anew; asks once a tick."""
        if self._refresh and now // self._refresh != self._tick:
            self._tick = now // self._refresh
            return True
        return False

    def would_be_due(self, now: int) -> bool:
        """What `is_due` would answer, for whoever only wants to know."""
        return bool(self._refresh) and now // self._refresh != self._tick

    def put(self, line: Line[Any], member: Member) -> None:
        """Have `member` stand where it belongs."""
        rank = self.rank(member)
        try:
            line.put(member, rank)
        except CONTAINED as error:
            self._faults.report(self.origin, "comparing keys of", error, member.label)
            line.put(member, behind(member))

    def renew(self, line: Line[Any], stale: list[Any]) -> bool:
        """Have the only member that has changed stand where it belongs; False if `put` is not all it takes.

        Nearly always that is who stood in front, was served, and still waits for more.
        """
        member: Member = stale[0]
        block = member.block
        if block is None or self.lanes is not None or not member.waits():
            return False
        ranks = block.ranks
        if len(ranks) == 1 and not line.tops:
            # There is nobody to compare it with: it stays among the stale until somebody comes.
            return True
        stale.clear()
        member.touched = False
        if ranks[0] is not member.rank or line.tops:
            self.put(line, member)
            return True
        rank = self.rank(member)
        del ranks[0]
        try:
            insort(ranks, rank)
            member.rank = rank
        except CONTAINED as error:
            self._faults.report(self.origin, "comparing keys of", error, member.label)
            member.block = None
            line.put(member, behind(member))
        return True

    def lane_rank(self, app: Application) -> Rank:
        """Where `app` stands in its lane, where applications count that wait for nothing, too.

        Such an application keeps the priority of its last request, so that those of equal priority go by the
        key whether or not they wait.
        """
        rank = self.rank(app)
        if self._priority_first and app.priority == NO_PRIORITY and rank[0] == 0:
            return (0, -_last_priority(app), *rank[2:])
        return rank

    def rank(self, member: Member, *, quiet: bool = False) -> Rank:
        """Where `member` stands; `quiet` for whoever only wants to know: no fault is reported."""
        try:
            key = self._key(member)
            if type(key) is float:
                sound = key == key
            elif type(key) is tuple:
                if len(key) == 2 and type(key[0]) is float and type(key[1]) is float:
                    sound = key[0] == key[0] and key[1] == key[1]
                else:
                    sound = _is_sound(key)
            else:
                sound = bool(key == key)
            if sound:
                if self._priority_first:
                    return (0, -member.priority, key, member.tie, member)
                return (0, key, member.tie, member)
            cause: BaseException | str = f"{key!r} compares to nothing"
        except CONTAINED as error:
            cause = error
        if not quiet:
            self._faults.report(self.origin, "computing the key of", cause, member.label)
        return behind(member)


def _last_priority(app: Application) -> int:
    """The priority of the request of `app` that was placed last; 0 if it holds nothing."""
    for allocation in reversed(app.allocations.values()):
        return allocation.priority
    return 0


def _is_sound(key: tuple[Any, ...]) -> bool:
    """Whether every part equals itself, as NaN does not; raises what comparing them raises."""
    for part in key:
        kind = type(part)
        if kind is float:
            if part != part:
                return False
        elif kind is tuple:
            if not _is_sound(part):
                return False
        elif kind is not int and kind is not str and not bool(part == part):
            return False
    return True


def behind(member: Any) -> Rank:
    """The rank behind all with good keys: by submission and arrival, or by name."""
    return (1, getattr(member, "submitted", 0), 0, member.tie, member)
