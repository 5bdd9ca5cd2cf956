"""Order of queues and of applications by their sort policies.

`MemberOrder` applies the sort policy of a queue and the priorities of its members, and replaces invalid sort
keys.

`AdmissionGate` serves application sort policies that admit only some applications of a queue. The policy
assigns every application of the queue, pending or not, to an admission class, and limits the number of
admitted applications per class. Each class keeps its admitted applications and the others in two sorted
lists. A change of an application or of a limit moves only applications across the border between these lists,
and empty classes are dropped. The cost of a decision is therefore independent of the number of applications
and classes. See `docs/decisions/archive/0041`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yunikorn.api.views import NO_USAGE
from yunikorn.clock import SECOND
from yunikorn.containment import (
    LARGEST,
    LONGEST_NAME,
    SMALLEST,
    contained,
    items_of,
    kept_key,
    number_or_none,
    plain_key,
    read_attribute,
    safe_repr,
)
from yunikorn.framework.plugin_failures import read_flag, read_seconds
from yunikorn.index.sorted_members import SortedKeys
from yunikorn.resources import INT32_MIN as NO_PRIORITY
from yunikorn.scheduling.ask_order import AskOrder

if TYPE_CHECKING:
    from yunikorn.api import AppSortPolicy, QueueSortPolicy
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.index.sorted_blocks import SortKey
    from yunikorn.index.sorted_members import QueueMember, SortedMembers
    from yunikorn.model.application import Application
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.subject_index import SubjectIndex

DEEPEST = 100
"""Largest number of levels of tuples in a key."""


class MemberOrder:
    """Computes the sort keys of the members of one queue: applications of a leaf, or queues of a parent.

    A sort key is (0, priority, key, tie, member), highest priority first; with priorities disabled it is (0,
    key, tie, member). A member whose policy key is invalid gets (1, ...) and is sorted behind all others in
    default order. See "Order" in docs/compatibility.md.
    """

    __slots__ = (
        "_failures",
        "_key",
        "_refresh",
        "_tick",
        "admission_classes",
        "allows_gangs",
        "ask_order",
        "half_life",
        "origin",
        "policy",
        "priority_first",
        "subjects",
        "time_dependent",
        "usage",
    )

    def __init__(
        self,
        policy: AppSortPolicy | QueueSortPolicy,
        origin: str,
        failures: PluginFailures,
        *,
        priority_first: bool,
        admission_classes: AdmissionGate | None = None,
        subjects: SubjectIndex | None = None,
    ) -> None:
        self.policy = policy
        self.subjects = subjects
        """Applications by what their keys depend on in the books of the policy; None without books."""
        self.admission_classes = admission_classes
        self.origin = origin
        self._key: Callable[[Any], Any] = read_attribute(policy, "key")
        self._failures = failures
        self.priority_first = priority_first
        """True if priorities come before the keys of the policy."""
        every = read_seconds(policy, "refresh_every", origin, failures)
        self.ask_order = AskOrder.of(policy, origin, failures)
        """Order of the requests of each application; None for that of arrival."""
        self.half_life = read_seconds(policy, "half_life", origin, failures)
        """Half-life (seconds) of the decayed usage that the policy reads; None if the policy reads none."""
        self.usage = NO_USAGE
        """Usage by owner that the policy reads."""
        self.allows_gangs = read_flag(policy, "gangs", origin, failures)
        """True if gangs with placeholders may run under the policy."""
        self.time_dependent = bool(every)
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
        except contained() as error:
            self._failures.report(self.origin, "comparing keys of", error, member.label)
            sorted_members.put(member, behind(member))

    def renew(self, sorted_members: SortedMembers[Any], dirty: list[Any]) -> bool:
        """Reposition the only member that has changed; False if the caller must use `put`.

        The most frequent case is the first member, which was just served and still has pending requests.
        """
        member: QueueMember = dirty[0]
        block = member.block
        if block is None or self.admission_classes is not None or not member.is_schedulable():
            return False
        sort_keys = block.entries
        if len(sort_keys) == 1 and not sorted_members.borders:
            # A sole member needs no comparison: it stays dirty until another member appears.
            return True
        dirty.clear()
        member.is_dirty = False
        if sort_keys[0] is not member.sort_key or sorted_members.borders:
            self.put(sorted_members, member)
            return True
        sort_key = self.sort_key(member)
        del sort_keys[0]
        try:
            insort(sort_keys, sort_key)
            member.sort_key = sort_key
        except contained() as error:
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
        if self.priority_first and app.priority == NO_PRIORITY and sort_key[0] == 0:
            return (0, -_last_priority(app), *sort_key[2:])
        return sort_key

    def sort_key(self, member: QueueMember, *, quiet: bool = False) -> SortKey:
        """Return the current sort key of `member`; with `quiet`, plugin failures are not reported."""
        try:
            key = self._key(member)
            kind = type(key)
            if kind is tuple:
                if len(key) == 2:
                    first, second = key
                    if type(first) is float and type(second) is float:
                        # Of most default policies, and therefore without a further call.
                        sound = first == first and second == second
                    else:
                        sound = _is_sound(key)
                else:
                    sound = _is_sound(key)
            elif kind is float:
                sound = key == key
            elif kind is int:
                sound = SMALLEST < key < LARGEST
            else:
                sound = _is_sound((key,))
            if sound:
                if self.priority_first:
                    return (0, -member.priority, key, member.tie, member)
                return (0, key, member.tie, member)
            cause: BaseException | str = f"{safe_repr(key)} is not comparable"
        except contained() as error:
            cause = error
        if not quiet:
            self._failures.report(self.origin, "computing the key of", cause, member.label)
        return behind(member)


def _last_priority(app: Application) -> int:
    """Return the priority of the last placed request of `app`; 0 if it has no allocations."""
    for allocation in reversed(app.allocations.values()):
        return allocation.priority
    return 0


def _is_sound(key: tuple[Any, ...], levels: int = DEEPEST) -> bool:
    """Return True if every part equals itself, as NaN does not, and none is huge.

    Raises what the comparison raises, and `ValueError` for more `levels` of tuples: compiled code does not
    count calls, and a deeply nested key would end the process.
    """
    if not levels:
        raise ValueError(f"a key of more than {DEEPEST} levels of tuples")
    for part in key:
        kind = type(part)
        if kind is int:
            if not SMALLEST < part < LARGEST:
                return False
        elif kind is str:
            if len(part) > LONGEST_NAME:
                return False
        elif kind is float:
            if part != part:
                return False
        elif kind is tuple:
            if not _is_sound(part, levels - 1):
                return False
        elif not bool(part == part):
            return False
    return True


def behind(member: Any) -> SortKey:
    """Return a sort key behind all valid keys: by submission and arrival, or by name."""
    return (1, getattr(member, "submitted", 0), 0, member.tie, member)


class _AdmissionClass:
    """Applications of one admission class: the admitted ones (`inside`), then the others (`outside`)."""

    __slots__ = ("inside", "limit", "outside")

    def __init__(self) -> None:
        self.inside: SortedKeys = SortedKeys()
        self.outside: SortedKeys = SortedKeys()
        self.limit: int | None = None
        """Maximum number of admitted applications; None for all."""

    def __len__(self) -> int:
        return len(self.inside) + len(self.outside)

    def add(self, app: Application, sort_key: SortKey) -> None:
        """Insert `app` at `sort_key`; `balance` applies the limit. Raises what comparing sort keys raises."""
        first = self.outside.first
        admitted = first is None or sort_key < first
        (self.inside if admitted else self.outside).add(sort_key)
        app.admitted = admitted

    def remove(self, app: Application, sort_key: SortKey) -> None:
        """Remove `app`, which is sorted at `sort_key`."""
        (self.inside if app.admitted else self.outside).remove(sort_key)

    def balance(self) -> Iterator[Application]:
        """Apply the limit; yields the applications whose admission has changed."""
        inside, outside, limit = self.inside, self.outside, self.limit
        while limit is not None and len(inside) > limit:
            sort_key = inside.take_last()
            outside.put_first(sort_key)
            sort_key[-1].admitted = False
            yield sort_key[-1]
        while outside and (limit is None or len(inside) < limit):
            sort_key = outside.take_first()
            inside.put_last(sort_key)
            sort_key[-1].admitted = True
            yield sort_key[-1]


class AdmissionGate:
    """Admission of the applications of one leaf queue, as decided by its sort policy."""

    def __init__(self, policy: AppSortPolicy, origin: str, failures: PluginFailures) -> None:
        self._admission_class: Callable[[Application], Hashable] = read_attribute(policy, "admission_class")
        self._admission_limits: Callable[[Mapping[Hashable, int]], Mapping[Hashable, int | None]] = (
            read_attribute(policy, "admission_limits")
        )
        self._origin = origin
        self._failures = failures
        self._admission_classes: dict[Hashable, _AdmissionClass] = {}
        self._counts: dict[Hashable, int] = {}
        """Number of applications per admission class."""
        self._wrapped = False
        """True if there was an admission class whose key `kept_key` has wrapped."""
        self._changed: dict[Hashable, _AdmissionClass] = {}
        """Admission classes to balance at the next review."""
        self._outdated = False
        """True if the policy must recompute the limits."""
        self._flipped: list[Application] = []
        """Applications whose own change altered their admission since the last review."""
        self._excluded: dict[int, Application] = {}

    def update(self, app: Application, sort_key: SortKey) -> None:
        """Add or reposition an application; `review` may change its admission afterwards."""
        admission_class, before, admitted = self._admission_class_of(app), app.admission_key, app.admitted
        found = self._admission_classes.get(admission_class)
        if before is not None:
            if found is None or self._admission_classes[app.admission_class] is not found:
                self.remove(app)
            elif _equal(before, sort_key):
                return
            else:
                found.remove(app, before)
        if found is None:
            found = self._admission_classes[admission_class] = _AdmissionClass()
        try:
            found.add(app, sort_key)
        except contained() as error:
            self._failures.report(self._origin, "comparing keys of", error, app.label)
            sort_key = behind(app)
            found.add(app, sort_key)
        app.admission_class, app.admission_key = admission_class, sort_key
        if app.admitted != admitted:
            self._flipped.append(app)
        self._count(admission_class, found)

    def exclude(self, app: Application, leaf: Queue) -> None:
        """Record whether `app` has pending requests but is not admitted, so that `leaf` reviews it later."""
        if app.requests.bits and not app.admitted and app.queue is leaf:
            self._excluded[app.arrival] = app
            leaf.policy_excluded |= app.bits
        elif self._excluded.pop(app.arrival, None) is not None and not self._excluded:
            leaf.policy_excluded = 0

    def remove(self, app: Application) -> None:
        """Remove an application that left the queue or its admission class."""
        if app.admission_key is not None:
            found = self._admission_classes[app.admission_class]
            found.remove(app, app.admission_key)
            app.admission_key = None
            self._count(app.admission_class, found)

    def _count(self, admission_class: Hashable, found: _AdmissionClass) -> None:
        """Update the number of applications of an admission class."""
        count = len(found)
        if count != self._counts.get(admission_class):
            self._outdated = True
        if count:
            self._counts[admission_class] = count
            self._changed[admission_class] = found
        else:
            del self._admission_classes[admission_class], self._counts[admission_class]
            self._changed.pop(admission_class, None)

    def ask_again(self) -> None:
        """Recompute the limits at the next review, even if no count has changed."""
        self._outdated = True

    def review(self) -> list[Application]:
        """Apply the limits; returns the applications whose admission may have changed."""
        if self._outdated:
            self._ask()
        flipped, self._flipped = self._flipped, []
        changed, self._changed = self._changed, {}
        return [*flipped, *(app for admission_class in changed.values() for app in admission_class.balance())]

    def _ask(self) -> None:
        """Ask the policy for the limits of all admission classes."""
        self._outdated = False
        limits: dict[Hashable, int | None] = {}
        try:
            counts = self._counts
            if self._wrapped:
                counts = {plain_key(admission_class): count for admission_class, count in counts.items()}
            answer = items_of(self._admission_limits(MappingProxyType(counts)))
            limits = {
                kept_key(admission_class, self._failed_comparison): _whole(limit)
                for admission_class, limit in answer
            }
        except contained() as error:
            # The policy is asked again at the next review.
            self._outdated = True
            self._failures.report(self._origin, "computing admission limits", error)
        for admission_class, found in self._admission_classes.items():
            limit = limits.get(admission_class)
            if found.limit != limit:
                found.limit = limit
                self._changed[admission_class] = found

    def _admission_class_of(self, app: Application) -> Hashable:
        try:
            admission_class = self._admission_class(app)
            kept = kept_key(admission_class, self._failed_comparison)
        except contained() as error:
            self._failures.report(self._origin, "choosing the admission class of", error, app.label)
            return None
        if kept is not admission_class:
            self._wrapped = True
        return kept

    def _failed_comparison(self, error: BaseException) -> None:
        self._failures.report(self._origin, "comparing admission classes", error)


def _equal(one: SortKey, other: SortKey) -> bool:
    try:
        return one == other
    except contained():
        return False


def _whole(limit: int | None) -> int | None:
    if limit is None:
        return None
    number = number_or_none(limit)
    if type(number) is not int or number < 0:
        raise ValueError(
            f"admission_limits returned {safe_repr(limit)} instead of None or a whole number, 0 or more"
        )
    return number
