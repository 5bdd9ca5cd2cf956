"""Admission classes: support for application sort policies that admit only some applications of a queue.

The policy assigns every application of the queue, pending or not, to an admission class, and limits the
number of admitted applications per class. Each class keeps its admitted applications and the others in two
sorted lists. A change of an application or of a limit moves only applications across the border between these
lists, and empty classes are dropped. The cost of a decision is therefore independent of the number of
applications and classes. See `docs/decisions/0041`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from yunikorn.errors import CONTAINED
from yunikorn.index.sorted_members import SortedKeys
from yunikorn.scheduling.member_order import behind

if TYPE_CHECKING:
    from yunikorn.api import AppSortPolicy
    from yunikorn.index.sorted_members import SortKey
    from yunikorn.model.application import Application
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.plugin_failures import PluginFailures


class _AdmissionClass:
    """Applications of one admission class: the admitted ones (`inside`), then the others (`outside`)."""

    __slots__ = ("inside", "limit", "outside")

    def __init__(self) -> None:
        self.inside: SortedKeys[Application] = SortedKeys()
        self.outside: SortedKeys[Application] = SortedKeys()
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
        self._admission_class: Callable[[Application], Hashable] = policy.admission_class
        self._admission_limits: Callable[[Mapping[Hashable, int]], Mapping[Hashable, int | None]] = (
            policy.admission_limits
        )
        self._origin = origin
        self._failures = failures
        self._admission_classes: dict[Hashable, _AdmissionClass] = {}
        self._counts: dict[Hashable, int] = {}
        """Number of applications per admission class, as passed to the policy."""
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
        except CONTAINED as error:
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
            answer = dict(self._admission_limits(MappingProxyType(self._counts)))
            limits = {admission_class: _whole(limit) for admission_class, limit in answer.items()}
        except CONTAINED as error:
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
            hash(admission_class)
            if not bool(admission_class == admission_class):
                raise ValueError(f"{admission_class!r} does not equal itself")
        except CONTAINED as error:
            self._failures.report(self._origin, "choosing the admission class of", error, app.label)
            return None
        return admission_class


def _equal(one: SortKey, other: SortKey) -> bool:
    try:
        return one == other
    except CONTAINED:
        return False


def _whole(limit: int | None) -> int | None:
    if limit is None:
        return None
    if not isinstance(limit, int) or limit < 0:
        raise ValueError(f"admission_limits returned {limit!r} instead of None or a whole number, 0 or more")
    return limit
