"""Usage trackers: what one user, or one group, uses and may use in one queue and below it (facts §5.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from yunikorn.resources import NOTHING, Resource, Tally, above_zero

if TYPE_CHECKING:
    from yunikorn.config.schema import LimitConfig
    from yunikorn.objects.pending_class import PendingClass

USER, GROUP = "user", "group"


class UsageTracker:
    """The usage of a user or group at a queue, and the limit there if there is one."""

    __slots__ = (
        "_applications",
        "_usage",
        "flush",
        "full",
        "kind",
        "max_applications",
        "max_resources",
        "members",
        "name",
        "over_limit",
        "path",
        "pending_classes",
    )

    def __init__(self, kind: str, name: str, path: str, settle: Callable[[], None]) -> None:
        self.kind = kind
        self.name = name
        self.path = path
        self.flush = settle
        """Books what applications hold and is not booked yet; nothing where there is a limit."""
        self._usage: Tally = {}
        self._applications: dict[str, None] = {}
        self.members = 0
        """Applications that are booked here, whether they hold something or not."""
        self.max_resources: Resource | None = None
        self.max_applications = 0
        self.full = False
        """Whether no further application may start; kept by `PendingClasses.count_changed`."""
        self.pending_classes: dict[int, PendingClass] = {}
        self.over_limit: dict[int, PendingClass] = {}
        """By bit: pending classes that the limit has no room for now."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"{self.kind} {self.name} in queue {self.path}"

    @property
    def usage(self) -> Tally:
        """What the applications that are booked here hold."""
        self.flush()
        return self._usage

    @property
    def applications(self) -> tuple[str, ...]:
        """The ids of those that count as running for a limit."""
        self.flush()
        return tuple(self._applications)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.max_resources is not None or self.max_applications > 0

    @property
    def count(self) -> int:
        """Applications that count as running for a limit."""
        return len(self._applications)

    @property
    def is_full(self) -> bool:
        """Whether as many applications run as may."""
        return 0 < self.max_applications <= len(self._applications)

    def set_limit(self, limit: LimitConfig | None) -> None:
        """Set or clear the limit; an amount of nothing but zeros counts as unset."""
        amount = limit.max_resources if limit is not None else None
        self.max_resources = amount if amount is not None and above_zero(amount) else None
        self.max_applications = limit.max_applications if limit is not None else 0

    def start(self, app_id: str) -> bool:
        """Count an application as running; returns whether it was not counted before."""
        if app_id in self._applications:
            return False
        self._applications[app_id] = None
        return True

    def stop(self, app_id: str) -> bool:
        """Count an application no more; returns whether it was counted before."""
        return self._applications.pop(app_id, app_id) is None

    def book(self, pairs: Iterable[tuple[str, int]]) -> None:
        """So much more is used; less where an amount is below 0."""
        usage = self._usage
        for name, amount in pairs:
            usage[name] = usage.get(name, 0) + amount

    def has_room(self, pairs: Sequence[tuple[str, int]]) -> bool:
        """Whether the limit on resources has room for an amount; a missing type is unlimited."""
        most = self.max_resources
        if most is not None:
            usage = self._usage
            for name, amount in pairs:
                limit = most.get(name)
                if limit is not None and usage.get(name, 0) + amount > limit:
                    return False
        return True

    @property
    def headroom(self) -> Resource:
        """What the limit leaves, for the types that it names."""
        most: Resource = self.max_resources or NOTHING
        return Resource({name: limit - self.usage.get(name, 0) for name, limit in most.items()})
