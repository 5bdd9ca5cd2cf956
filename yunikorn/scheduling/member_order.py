"""Order of the members of a queue: sort policy, priorities, and protection against invalid sort keys."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yunikorn.clock import SECOND
from yunikorn.errors import CONTAINED
from yunikorn.model.ask import INT32_MIN as NO_PRIORITY
from yunikorn.scheduling.plugin_timing import read_seconds

if TYPE_CHECKING:
    from yunikorn.api import AppSortPolicy, QueueSortPolicy
    from yunikorn.index.sorted_members import QueueMember, SortedMembers, SortKey
    from yunikorn.model.application import Application
    from yunikorn.scheduling.admission_classes import AdmissionGate
    from yunikorn.scheduling.plugin_failures import PluginFailures


class MemberOrder:
    """Computes the sort keys of the members of one queue: applications of a leaf, or queues of a parent.

    A sort key is (0, priority, key, tie, member), highest priority first; with priorities disabled it is (0,
    key, tie, member). A member whose policy key is invalid gets (1, ...) and is sorted behind all others in
    default order. See "Order" in docs/compatibility.md.
    """

    __slots__ = (
        "_failures",
        "_key",
        "_priority_first",
        "_refresh",
        "_tick",
        "admission_classes",
        "ages",
        "half_life",
        "origin",
        "policy",
    )

    def __init__(
        self,
        policy: AppSortPolicy | QueueSortPolicy,
        origin: str,
        failures: PluginFailures,
        *,
        priority_first: bool,
        admission_classes: AdmissionGate | None = None,
    ) -> None:
        self.policy = policy
        self.admission_classes = admission_classes
        self.origin = origin
        self._key: Callable[[Any], Any] = policy.key
        self._failures = failures
        self._priority_first = priority_first
        every = read_seconds(policy, "refresh_every", origin, failures)
        self.half_life = read_seconds(policy, "half_life", origin, failures)
        """Half-life (seconds) of the decayed usage that the policy reads; None if the policy reads none."""
        self.ages = bool(every)
        """True if keys change with time alone (the policy sets `refresh_every`)."""
        self._refresh = round(every * SECOND) if every else 0
        self._tick = -1

    def is_due(self, now: int) -> bool:
        """Return True once per refresh interval, if the policy's keys age and must be recomputed."""
        if self._refresh and now // self._refresh != self._tick:
            self._tick = now // self._refresh
            return True
        return False

    def would_be_due(self, now: int) -> bool:
        """Return the same as `is_due` without consuming the interval."""
        return bool(self._refresh) and now // self._refresh != self._tick

    def put(self, sorted_members: SortedMembers[Any], member: QueueMember) -> None:
        """Move `member` to its current position."""
        sort_key = self.sort_key(member)
        try:
            sorted_members.put(member, sort_key)
        except CONTAINED as error:
            self._failures.report(self.origin, "comparing keys of", error, member.label)
            sorted_members.put(member, behind(member))

    def renew(self, sorted_members: SortedMembers[Any], dirty: list[Any]) -> bool:
        """Reposition the only member that has changed; False if the caller must use `put`.

        The most frequent case is the first member, which was just served and still has pending requests.
        """
        member: QueueMember = dirty[0]
        block = member.block
        if block is None or self.admission_classes is not None or not member.waits():
            return False
        sort_keys = block.sort_keys
        if len(sort_keys) == 1 and not sorted_members.tops:
            # A sole member needs no comparison: it stays dirty until another member appears.
            return True
        dirty.clear()
        member.is_dirty = False
        if sort_keys[0] is not member.sort_key or sorted_members.tops:
            self.put(sorted_members, member)
            return True
        sort_key = self.sort_key(member)
        del sort_keys[0]
        try:
            insort(sort_keys, sort_key)
            member.sort_key = sort_key
        except CONTAINED as error:
            self._failures.report(self.origin, "comparing keys of", error, member.label)
            member.block = None
            sorted_members.put(member, behind(member))
        return True

    def admission_key(self, app: Application) -> SortKey:
        """Return the sort key of `app` within its admission class, which includes idle applications.

        An application without pending requests keeps the priority of its last request. Applications of equal
        priority are thus ordered by the policy's key, pending or not.
        """
        sort_key = self.sort_key(app)
        if self._priority_first and app.priority == NO_PRIORITY and sort_key[0] == 0:
            return (0, -_last_priority(app), *sort_key[2:])
        return sort_key

    def sort_key(self, member: QueueMember, *, quiet: bool = False) -> SortKey:
        """Return the current sort key of `member`; with `quiet`, plugin failures are not reported."""
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
            cause: BaseException | str = f"{key!r} is not comparable"
        except CONTAINED as error:
            cause = error
        if not quiet:
            self._failures.report(self.origin, "computing the key of", cause, member.label)
        return behind(member)


def _last_priority(app: Application) -> int:
    """Return the priority of the last placed request of `app`; 0 if it has no allocations."""
    for allocation in reversed(app.allocations.values()):
        return allocation.priority
    return 0


def _is_sound(key: tuple[Any, ...]) -> bool:
    """Return True if every part equals itself, as NaN does not; raises what the comparison raises."""
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


def behind(member: Any) -> SortKey:
    """Return a sort key behind all valid keys: by submission and arrival, or by name."""
    return (1, getattr(member, "submitted", 0), 0, member.tie, member)
